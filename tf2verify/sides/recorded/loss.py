"""The reference's loss alone, by the graph of it that a recording has."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, final

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, RecordingError, UserCodeError
from tf2verify.recordings.recording import Recording
from tf2verify.recordings.training_entries import AloneEntry
from tf2verify.records.loss_values import Leaves, LossExample, LossProgram, LossValue
from tf2verify.records.observation import TensorRecord
from tf2verify.reference.graph_ops import ops_behind
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_function
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.build import imported, parsed
from tf2verify.sides.tf1.loss_function import loss_run, moved_output

_HOOK = 'tf1_loss'


@dataclasses.dataclass(frozen=True, eq=False)
class _Graph:
  """A recorded graph of the loss, imported.

  Attributes:
    entry: what the recording says of it.
    graph: from placeholders to the loss and its gradients.
    read: paths of the outputs that the loss reads.
    fed: placeholder of every output and label that loss and gradients read, by
      `outputs` or `labels`, and path.
  """

  entry: AloneEntry
  graph: tf.Graph
  read: frozenset[str]
  fed: Mapping[tuple[str, str], tf.Tensor]

  def names(self) -> list[str]:
    """Returns the tensors of the loss and its gradients."""
    tensors = [self.entry.loss]
    for gradient in self.entry.gradients:
      tensors += [gradient.values] + ([gradient.indices] if gradient.indices else [])
    return tensors

  def feeds(self, outputs: Leaves, labels: Leaves) -> dict[tf.Tensor, np.ndarray] | None:
    """Returns what to feed for an example; None where it is of other shapes."""
    leaves = {'outputs': outputs, 'labels': labels}
    feeds = {}
    for (kind, path), tensor in self.fed.items():
      array = leaves[kind].get(path)
      if array is None or tuple(tensor.shape.as_list()) != array.shape:
        return None
      feeds[tensor] = array
    return feeds


@final
class RecordedLossFunction:
  """Gives the recorded loss of the model's outputs, and runs its recorded graph on others."""

  def __init__(self, recording: Recording, outputs: Any, remark: Callable[[str], None]) -> None:
    """Takes a recording.

    Args:
      recording: verified.
      outputs: of the model, as recorded.
      remark: is told what a reader of the report has to know.
    """
    self._recording = recording
    self._remark = remark
    self._model = loss_function.leaves_of(outputs)
    self._imported: list[_Graph] | None = None

  def value(self, example: LossExample, perturber: Perturber | None = None) -> LossValue:
    """Returns the recorded loss and gradients, or runs the graph, here, on other outputs.

    Raises:
      NotApplicable: the graph is of other shapes.
      UserCodeError: there is no graph of the loss without the model, or it failed.
    """
    graphs = self._graphs_of_loss()
    if not self._is_model(example):
      return self._run(example, perturber)
    recorded = self._recorded(graphs[0].entry, example)
    if perturber is None:
      return recorded
    # How far rounding moves it is measured here, between two runs of the same kernels.
    return _moved_as(recorded, self._run(example, None), self._run(example, perturber))

  def inspectable(self, example: LossExample, unrolls: bool = False) -> GraphRun:
    """Returns a run of the recorded graph, here; no lines of it are recorded."""
    del unrolls  # its gradients are recorded as those of its loops
    graph = self._graph_for(example)
    found = {loss_function.VALUE_TARGET: (graph.entry.loss,)}
    for gradient in graph.entry.gradients:
      names = (gradient.values, *((gradient.indices,) if gradient.indices else ()))
      found[loss_function.gradient_target(gradient.path)] = names
    named = {'outputs': loss_function.output_name, 'labels': loss_function.label_name}
    places = {tensor.op.name: named[kind](path) for (kind, path), tensor in graph.fed.items()}
    fed = graph.feeds(example.outputs, example.labels)
    assert fed is not None, 'of the same shapes'
    return loss_run(graph.graph, found, places, fed, graph.entry.initializers, lambda _: None)

  def program(self, example: LossExample) -> LossProgram:
    """Returns what the recorded loss reads and computes."""
    found = self._graph_for(example)
    tensors = [found.graph.get_tensor_by_name(name) for name in found.names()]
    ops = [found.graph.get_operation_by_name(name) for name in ops_behind(tensors)]
    sizes = {path: example.outputs[path].size for path in found.read}
    return LossProgram(found.read, loss_function.count_of_size(ops, sizes))

  def _is_model(self, example: LossExample) -> bool:
    return not example.extreme and all(
      array is self._model.get(path) or np.array_equal(array, self._model[path], equal_nan=True)
      for path, array in example.outputs.items()
    )

  def _recorded(self, entry: AloneEntry, example: LossExample) -> LossValue:
    value = self._recording.tensor(entry.value)
    assert value is not None, 'that of the model is recorded with its value'
    gradients = {path: self._recording.tensor(known) for path, known in entry.gradient_values}
    paths = loss_function.floating_paths(example.outputs)
    return LossValue(value, tuple(TensorRecord(path, gradients.get(path)) for path in paths))

  def _run(self, example: LossExample, perturber: Perturber | None) -> LossValue:
    found = self._graph_for(example)
    outputs = example.outputs
    if perturber is not None:
      outputs = {path: moved_output(path, array, perturber) for path, array in outputs.items()}
    feeds = found.feeds(outputs, example.labels)
    assert feeds is not None, 'of the same shapes'
    if example.extreme:
      self._remark(
        f'losses of extreme outputs are those of the recorded graph of the loss, run here by '
        f'TensorFlow {tf.__version__}'
      )
    with open_session(found.graph) as session, user_code(side.TF1, f'running {_HOOK}'):
      session.run(list(found.entry.initializers))
      fetched = session.run({name: name for name in found.names()}, feeds)
    gradients = {
      gradient.path: _dense(
        fetched[gradient.values],
        None if gradient.indices is None else fetched[gradient.indices],
        outputs[gradient.path].shape,
      )
      for gradient in found.entry.gradients
    }
    paths = loss_function.floating_paths(outputs)
    return LossValue(
      np.asarray(fetched[found.entry.loss]),
      tuple(TensorRecord(path, gradients.get(path)) for path in paths),
    )

  def _graph_for(self, example: LossExample) -> _Graph:
    for known in self._graphs_of_loss():
      if known.feeds(example.outputs, example.labels) is not None:
        return known
    raise NotApplicable('the recording has the graph of the loss for other shapes')

  def _graphs_of_loss(self) -> list[_Graph]:
    if self._imported is None:
      losses = self._recording.manifest.losses
      if losses is None or losses.alone is None:
        why = 'it was not recorded' if losses is None else losses.alone_error
        raise UserCodeError(side.TF1, _HOOK, why, '')
      self._imported = [self._import(entry) for entry in (losses.alone, losses.alone_one) if entry]
    return self._imported

  def _import(self, entry: AloneEntry) -> _Graph:
    graph_def = parsed(self._recording.array(entry.graph_def).tobytes(), self._recording.path)
    refused = graph_safety.refused_ops(graph_def)
    if refused:
      raise UserCodeError(side.TF1, _HOOK, graph_safety.refusal_text(refused), '')
    graph = imported(graph_def, self._recording.path)
    found = _Graph(entry, graph, frozenset(), {})
    try:
      loss = graph.get_tensor_by_name(entry.loss)
      tensors = [graph.get_tensor_by_name(name) for name in found.names()]
      placed = {key: graph.get_tensor_by_name(name) for key, name in _placeholders(entry)}
    except (KeyError, ValueError, TypeError) as error:
      raise RecordingError(
        f'{self._recording.path}: the graph of the loss does not have the tensors that the '
        'manifest '
        f'names: {error!s:.200}; record again'
      ) from error
    behind, behind_loss = ops_behind(tensors), ops_behind([loss])
    fed = {key: tensor for key, tensor in placed.items() if tensor.op.name in behind}
    read = frozenset(
      path
      for (kind, path), tensor in placed.items()
      if kind == 'outputs' and tensor.op.name in behind_loss
    )
    return dataclasses.replace(found, read=read, fed=fed)


def _placeholders(entry: AloneEntry) -> Iterator[tuple[tuple[str, str], str]]:
  for kind, pairs in (('outputs', entry.outputs), ('labels', entry.labels)):
    for path, name in pairs:
      yield (kind, path), name


def _dense(values: Any, indices: Any, shape: tuple[int, ...]) -> np.ndarray:
  array = np.asarray(values)
  return array if indices is None else side.dense_gradient(array, np.asarray(indices), shape)


def _moved_as(recorded: LossValue, still: LossValue, moved: LossValue) -> LossValue:
  """Returns a recorded loss, moved as far as the same loss is from one run to another."""

  def shifted(known: np.ndarray, one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray:
    if one is None or other is None:
      return known
    wide = np.result_type(known.dtype, np.float64)
    return np.asarray(known.astype(wide) + (other.astype(wide) - one.astype(wide)))

  return LossValue(
    shifted(recorded.value, still.value, moved.value),
    tuple(
      TensorRecord(r.name, None)
      if r.value is None
      else TensorRecord(r.name, shifted(r.value, still.gradient(r.name), moved.gradient(r.name)))
      for r in recorded.gradients
    ),
  )
