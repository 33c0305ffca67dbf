"""What both losses have in common: what they are fed, what they may return."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.loss_values import Leaves, LossExample
from tf2verify.reference import nests
from tf2verify.sides.losses import loss_parts
from tf2verify.tensorflow_internals import keras3

# What hands its input on, or is not a result of the computation.
_NO_TENSOR_OF_ITS_OWN = (
  'Placeholder',
  'Identity',
  'IdentityN',
  'Reshape',
  'ExpandDims',
  'Squeeze',
  'StopGradient',
  'PreventGradient',
  'Const',
  'ReadVariableOp',
)
Signature = tuple[tuple[str, tuple[int, ...], str], ...]
# How a graph of the loss alone, and findings on it, call what it yields.
VALUE_TARGET = 'loss value'
TOTAL = 'total loss'
_IN_MODEL = 'model loss '


def output_name(path: str) -> str:
  """Returns how both sides' graphs, and findings, call an output that a loss reads."""
  return f'outputs{path}'


def label_name(path: str) -> str:
  """Returns how both sides' graphs call a label."""
  return f'labels{path}'


def is_label(name: str) -> bool:
  """Returns whether both sides' graphs call a label so, and not an input."""
  return name.startswith('labels')


def gradient_target(path: str) -> str:
  """Returns how both sides' graphs call the gradient of the loss by an output."""
  return f'loss gradient {output_name(path)}'


def part_name(place: str) -> str:
  """Returns what findings call a part of a loss."""
  return f'part {place}'


def target_in_model(what: str) -> str:
  """Returns how both sides' graphs of a model with losses call a loss, a total or a part."""
  return f'{_IN_MODEL}{what}'


def is_in_model(target: str) -> bool:
  """Returns whether a target of a graph is a loss, a total or a part within the model."""
  return target.startswith(_IN_MODEL)


def leaves_of(nest: Any) -> dict[str, np.ndarray]:
  """Returns the arrays of a nest by path; None and other leaves are left out."""
  found: dict[str, np.ndarray] = {}

  def keep(path: str, leaf: Any) -> None:
    if isinstance(leaf, (np.ndarray, np.generic)):
      found[path] = np.asarray(leaf)

  nests.map_leaves(keep, nest)
  return found


def filled(nest: Any, leaves: Mapping[str, Any]) -> Any:
  """Returns the nest with other leaves; a path that is not among them keeps its own."""
  return nests.map_leaves(lambda path, leaf: leaves.get(path, leaf), nest)


def sparse(nest: Any) -> Any:
  """Returns outputs with tensors where the arrays of a `SparseTensorValue` were."""
  if isinstance(nest, tf.compat.v1.SparseTensorValue):
    return tf.SparseTensor(*nest)
  if isinstance(nest, Mapping):
    return type(nest)({key: sparse(item) for key, item in nest.items()})  # type: ignore[call-arg]
  if isinstance(nest, tuple) and hasattr(nest, '_fields'):
    return type(nest)(*(sparse(item) for item in nest))
  if isinstance(nest, (list, tuple)):
    return type(nest)(sparse(item) for item in nest)
  return nest


def signature(example: LossExample) -> Signature:
  """Returns shapes and dtypes, by which graphs and traces are kept."""
  both = (
    ((f'outputs{p}', a) for p, a in example.outputs.items()),
    ((f'labels{p}', a) for p, a in example.labels.items()),
  )
  return tuple((path, array.shape, array.dtype.name) for part in both for path, array in part)


def checked_loss(loss: Any, hook: str) -> Any:
  """Returns a loss, of a nest of parts the one that stands for it, as a tensor.

  Raises:
    CaseDefinitionError: it is not a floating tensor.
  """
  loss = loss_parts.main_of(loss, hook)
  if loss is None:
    raise CaseDefinitionError(f'{hook} returned None: usually a missing `return`; return the loss')
  if isinstance(loss, tf.Variable):
    loss = loss.read_value()
  if not isinstance(loss, tf.Tensor):
    raise CaseDefinitionError(
      f'{hook} returned a {type(loss).__name__}; it must be a floating tensor, a scalar or one '
      'loss per example, or a nest of such parts'
    )
  if not loss.dtype.is_floating:
    raise CaseDefinitionError(
      f'{hook} returned a tensor of dtype {loss.dtype.name}; a loss must be floating, since it is '
      'differentiated'
    )
  return loss


def floating_paths(leaves: Leaves) -> list[str]:
  """Returns the paths of what a loss can be differentiated by."""
  return [path for path, leaf in leaves.items() if tf.as_dtype(leaf.dtype).is_floating]


def counts_as_kept(op_type: str) -> bool:
  """Returns whether the results of ops of a type take memory of their own."""
  return op_type not in _NO_TENSOR_OF_ITS_OWN


def count_of_size(ops: Iterable[tf.Operation], sizes: Mapping[str, int]) -> dict[str, int]:
  """Counts the ops that make a floating tensor of as many elements as each output has."""
  found = dict.fromkeys(sizes, 0)
  for op in ops:
    if not counts_as_kept(op.type):
      continue
    made = {
      tensor.shape.num_elements()
      for tensor in op.outputs
      if tensor.dtype.is_floating and tensor.shape.rank is not None
    }
    for path, size in sizes.items():
      found[path] += size in made
  return found


def checked_metrics(made: Any, hook: str) -> dict[str, Any]:
  """Returns metrics by name.

  Raises:
    CaseDefinitionError: the hook returned something else.
  """
  if not isinstance(made, Mapping) or not made:
    raise CaseDefinitionError(
      f'{hook} returned {made!r:.80}; it must be a dictionary from name to metric, with at least '
      'one'
    )
  for name, metric in made.items():
    value = metric[0] if isinstance(metric, tuple) and len(metric) == 2 else metric
    metric_object = isinstance(value, tf_keras.metrics.Metric) or keras3.is_metric(value)
    if metric_object and hook.startswith('tf2'):
      continue
    if not isinstance(value, (tf.Tensor, tf.Variable, np.ndarray, np.generic, float, int)):
      raise CaseDefinitionError(
        f'{hook} returned a {type(metric).__name__} for {name!r}; it must be a tensor'
        + (', or (value, update op)' if hook.startswith('tf1') else ', or an updated Keras metric')
      )
  return {str(name): metric for name, metric in made.items()}
