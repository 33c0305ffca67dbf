"""The loss without the model."""

import collections.abc
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from .arrays import Array, is_string
from .errors import RecorderError
from .gradients import dense_gradient, gradient_names
from .nests import leaves_by_path, map_leaves
from .private_tensorflow import v1
from .randomness import CONSTANT, Seeding, seeded
from .recorder import Recorder
from .sequences import pairs
from .sessions import fetch, open_session
from .tf1_semantics import tf1_semantics, with_either_shape
from .user_code import user_code


def _array_leaves(nest: Any) -> Dict[str, Array]:
  found = leaves_by_path(nest).items()
  return {path: np.asarray(leaf) for path, leaf in found if leaf is not None}


class _LossAlone:
  """The graph of the loss and its gradients.

  Attributes:
    graph: of placeholders, loss and gradients.
    tensors: the placeholders by `output` or `label`, and path.
    arrays: what they stand for, by name.
    loss: a tensor.
    gradients: for the floating outputs, where there is one, with their paths.
  """

  def __init__(
    self, recorder: Recorder, graph: Any, v2_tensorshape: bool, outputs: Any, labels: Any
  ) -> None:
    self.graph = graph
    self.tensors: Dict[Tuple[str, str], Any] = {}
    self.arrays: Dict[str, Array] = {}
    with tf1_semantics(v2_tensorshape), graph.as_default(), seeded(Seeding(CONSTANT)):
      fed = self._placeholders('output', outputs), self._placeholders('label', labels)
      with user_code('the loss alone'):
        self.loss = recorder.options.loss(*fed)
      if not isinstance(self.loss, tf.Tensor) or not self.loss.dtype.is_floating:
        raise RecorderError(
          'the loss by itself is {:.80}, not a floating tensor'.format(repr(self.loss))
        )
      tensors = self.tensors.items()
      floating = [(k, t) for k, t in tensors if k[0] == 'output' and t.dtype.is_floating]
      with user_code('the gradient of the loss'):
        found = tf.gradients(self.loss, [tensor for _, tensor in floating])
    known = pairs(floating, found)
    self.gradients = [(path, g) for ((_, path), _), g in known if g is not None]

  def _placeholders(self, kind: str, nest: Any) -> Any:
    def placeholder(path: str, leaf: Any) -> Any:
      if leaf is None:
        return None
      array = np.asarray(leaf)
      dtype = tf.string if is_string(array) else tf.as_dtype(array.dtype)
      name = 'tf2verify_{}/{}'.format(kind, len(self.tensors))
      tensor = self.tensors[kind, path] = v1.placeholder(dtype, array.shape, name=name)
      self.arrays[tensor.name] = array
      return tensor

    return None if nest is None else _with_sparse(map_leaves(placeholder, nest))


def loss_alone(recorder: Recorder, outputs: Any, labels: Any, with_values: bool) -> Dict[str, Any]:
  """Records the graph of the loss and its gradients, of placeholders for outputs and labels.

  Raises:
    RecorderError: the loss cannot be computed without the model.
  """

  def build(graph: Any, v2_tensorshape: bool) -> _LossAlone:
    return _LossAlone(recorder, graph, v2_tensorshape, outputs, labels)

  alone = with_either_shape(build, RecorderError)
  graph, tensors, loss = alone.graph, alone.tensors, alone.loss
  entry: Dict[str, Any] = {
    'graph_def': recorder.writer.add(
      np.frombuffer(graph.as_graph_def().SerializeToString(deterministic=True), np.uint8)
    ),
    'outputs': [[path, tensor.name] for (k, path), tensor in tensors.items() if k == 'output'],
    'labels': [[path, tensor.name] for (k, path), tensor in tensors.items() if k == 'label'],
    'initializers': _all_initializers(graph),
    'loss': loss.name,
    'gradients': [[path, *gradient_names(gradient)] for path, gradient in alone.gradients],
    'value': None,
    'gradient_values': [],
  }
  if with_values:
    _run_loss_alone(recorder, graph, entry, alone.arrays)
  return entry


def _run_loss_alone(
  recorder: Recorder, graph: Any, entry: Dict[str, Any], arrays: Dict[str, Array]
) -> None:
  """Fills in the loss, and its gradients, on the model's outputs."""
  names = [name for _, *pair in entry['gradients'] for name in pair if name is not None]
  with open_session(graph) as session:
    fetch(session, entry['initializers'])
    found = fetch(session, [entry['loss'], *names], arrays)
  values = dict(pairs(names, found[1:]))

  def tensor(array: Array) -> Dict[str, Any]:
    return {'value': recorder.writer.add(np.asarray(array)), 'noise': None, 'repeats': True}

  entry['value'] = tensor(found[0])
  shapes = {path: arrays[name].shape for path, name in entry['outputs']}
  for path, name, indices in entry['gradients']:
    rows = None if indices is None else values[indices]
    gradient = dense_gradient({'shape': shapes[path]}, np.asarray(values[name]), rows)
    entry['gradient_values'].append([path, tensor(gradient)])


def loss_of_first(
  recorder: Recorder, outputs: Any, alone: Dict[str, Any]
) -> Optional[Dict[str, Any]]:
  """Records the graph of the loss for the first example alone; None where there is none."""
  read = {path for path, _, _ in alone['gradients']}
  leaves, labels = _array_leaves(outputs), _array_leaves(recorder.options.labels)
  # A single number, the weight of a term say, is one for all examples.
  sizes = {leaves[path].shape[:1] for path in read if leaves[path].ndim}
  if not sizes:
    return None
  sizes |= {label.shape[:1] for label in labels.values() if label.ndim}
  size = next(iter(sizes)) if len(sizes) == 1 else ()
  if not size or size[0] < 2 or any(path.endswith('.dense_shape') for path in labels):
    return None

  def first_output(path: str, leaf: Any) -> Any:
    return leaf[:1] if path in read and np.ndim(leaf) else leaf

  def first_label(_: str, leaf: Any) -> Any:
    return leaf[:1] if np.ndim(leaf) else leaf

  given = recorder.options.labels
  cut = None if given is None else map_leaves(first_label, given)
  try:
    return loss_alone(recorder, map_leaves(first_output, outputs), cut, with_values=False)
  except RecorderError:  # it is written for one batch size
    return None


def _with_sparse(nest: Any) -> Any:
  """Returns a nest with sparse tensors where the parts of one were."""
  if isinstance(nest, v1.SparseTensorValue):
    return tf.SparseTensor(*nest)
  if isinstance(nest, collections.abc.Mapping):
    return type(nest)({key: _with_sparse(nest[key]) for key in nest})  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    return type(nest)(*[_with_sparse(part) for part in nest])
  if isinstance(nest, (list, tuple)):
    return type(nest)(_with_sparse(part) for part in nest)
  return nest


def _all_initializers(graph: Any) -> List[str]:
  keys = v1.GraphKeys
  found: Dict[str, None] = {}
  for key in (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES, keys.METRIC_VARIABLES):
    found.update((variable.initializer.name, None) for variable in graph.get_collection(key))
  return list(found) + [op.name for op in graph.get_collection(keys.TABLE_INITIALIZERS)]
