"""The reference's loss alone: in a graph of its own, without the model."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import tensorflow as tf

from tf2verify.errors import UserCodeError
from tf2verify.records.loss_values import Leaves, LossExample, LossProgram, LossValue, MetricValue
from tf2verify.records.observation import SourceLine, TensorRecord
from tf2verify.reference.graph_ops import ops_behind
from tf2verify.reference.perturbation import Perturber
from tf2verify.reference.tf1_semantics import with_either_shape
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.lines.user_sources import user_source, user_source_behind
from tf2verify.sides.graphs.reading import GraphReader, Target
from tf2verify.sides.graphs.rewriting.unrolled_loops import is_apart, take_apart
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_function
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.process.fence import fenced
from tf2verify.sides.tf1.sessions.reference_run import of_rounds

v1 = tf.compat.v1
_LOSS, _METRICS = 'tf1_loss', 'tf1_metrics'


@dataclasses.dataclass(frozen=True, eq=False)
class _Graph:
  """A graph of placeholders and what a hook makes of them."""

  graph: tf.Graph
  outputs: dict[str, tf.Tensor]
  labels: dict[str, tf.Tensor]
  made: Any

  def feeds(self, outputs: Leaves, labels: Leaves) -> dict[tf.Tensor, np.ndarray]:
    """Returns what to feed for an example."""
    return {
      **{tensor: outputs[path] for path, tensor in self.outputs.items()},
      **{tensor: labels[path] for path, tensor in self.labels.items()},
    }


@final
class Tf1LossFunction:
  """Runs `tf1_loss`, and `tf1_metrics`, on arrays; one graph per set of shapes."""

  def __init__(self, declaration: side.Declaration, outputs: Any, labels: Any) -> None:
    """Takes the nests of arrays that give the structure."""
    self._declaration = declaration
    self._outputs = outputs
    self._labels = labels
    self._graphs: dict[tuple[str, loss_function.Signature], _Graph] = {}

  def value(self, example: LossExample, perturber: Perturber | None = None) -> LossValue:
    """Runs the loss and its gradients in a fresh session; with a perturber, on moved outputs."""
    built = self._built(_LOSS, example)
    loss, gradients = built.made
    outputs = example.outputs
    if perturber is not None:
      outputs = {path: moved_output(path, array, perturber) for path, array in outputs.items()}
    with open_session(built.graph) as session, user_code(side.TF1, f'running {_LOSS}'):
      session.run(_initializers(built.graph))
      values = session.run({'loss': loss, **gradients}, built.feeds(outputs, example.labels))
    value = np.asarray(values.pop('loss'))
    return LossValue(
      value,
      tuple(
        TensorRecord(path, _dense(values.get(path), outputs[path].shape))
        for path in built.outputs
        if path in loss_function.floating_paths(outputs)
      ),
    )

  def inspectable(self, example: LossExample, unrolls: bool = False) -> GraphRun:
    """Returns a run of which every tensor can be asked for.

    Args:
      example: outputs and labels.
      unrolls: whether the rounds of loops are to stand in the graph, where that can be.
    """
    built = self._built(_LOSS, example)
    source_of: Callable[[tf.Operation], SourceLine | None] = user_source
    if unrolls and not is_apart(built.graph) and not _initializers(built.graph):
      lines = of_rounds(built.graph, functools.partial(_source_in, built.graph))
      # Where no gradient can be formed of them, as of some functions, the loops stay.
      with contextlib.suppress(LookupError, TypeError, ValueError, tf.errors.OpError):
        built, source_of = _in_rounds(built, example), lines
    loss, gradients = built.made
    found: dict[str, tuple[str, ...]] = {loss_function.VALUE_TARGET: (loss.name,)}
    for path, gradient in gradients.items():
      is_sparse = isinstance(gradient, tf.IndexedSlices)
      parts = (gradient.values, gradient.indices) if is_sparse else (gradient,)
      found[loss_function.gradient_target(path)] = tuple(part.name for part in parts)
    places = {
      **{tensor.op.name: loss_function.output_name(p) for p, tensor in built.outputs.items()},
      **{tensor.op.name: loss_function.label_name(p) for p, tensor in built.labels.items()},
    }
    fed = built.feeds(example.outputs, example.labels)
    return loss_run(built.graph, found, places, fed, _initializers(built.graph), source_of)

  def program(self, example: LossExample) -> LossProgram:
    """Returns what the loss reads and computes."""
    built = self._built(_LOSS, example)
    loss, gradients = built.made
    behind_loss = ops_behind([loss])
    reads = frozenset(p for p, tensor in built.outputs.items() if tensor.op.name in behind_loss)
    tensors = [loss]
    for gradient in gradients.values():
      tensors += [gradient.values] if isinstance(gradient, tf.IndexedSlices) else [gradient]
    ops = [built.graph.get_operation_by_name(name) for name in ops_behind(tensors)]
    sizes = {path: example.outputs[path].size for path in reads}
    kept = loss_function.count_of_size(ops, sizes)
    return LossProgram(reads, kept, user_source_behind(loss))

  def metrics(self, example: LossExample) -> tuple[MetricValue, ...]:
    """Runs the metrics in a fresh session: every update op once, then the values."""
    built = self._built(_METRICS, example)
    feeds = built.feeds(example.outputs, example.labels)
    updates = {name: update for name, (_, update) in built.made.items() if update is not None}
    values = {name: value for name, (value, _) in built.made.items()}
    with open_session(built.graph) as session, user_code(side.TF1, f'running {_METRICS}'):
      session.run(_initializers(built.graph))
      session.run(updates, feeds)
      fetched = session.run(values, feeds)
    return tuple(MetricValue(name, np.asarray(value)) for name, value in fetched.items())

  def _built(self, hook: str, example: LossExample) -> _Graph:
    key = hook, loss_function.signature(example)
    if key not in self._graphs:
      self._graphs[key] = self._build(hook, example)
    return self._graphs[key]

  def _build(self, hook: str, example: LossExample) -> _Graph:
    def build(graph: tf.Graph, v2_tensorshape: bool) -> _Graph:
      return self._build_with(graph, hook, example, v2_tensorshape)

    return with_either_shape(build, UserCodeError)

  def _build_with(
    self, graph: tf.Graph, hook: str, example: LossExample, v2_tensorshape: bool
  ) -> _Graph:
    process_state.reset_names()
    with process_state.tf1_semantics(v2_tensorshape), graph.as_default():
      outputs = {path: _placeholder(array) for path, array in example.outputs.items()}
      labels = {path: _placeholder(array) for path, array in example.labels.items()}
      with randomness.seeded(randomness.CONSTANT), fenced(hook), user_code(side.TF1, hook):
        made = getattr(self._declaration, hook)(
          loss_function.sparse(loss_function.filled(self._outputs, outputs)),
          loss_function.filled(self._labels, labels),
        )
      if hook == _METRICS:
        return _Graph(graph, outputs, labels, _metric_tensors(made))
      loss = loss_function.checked_loss(made, hook)
      floating = loss_function.floating_paths(example.outputs)
      with user_code(side.TF1, f'the gradient of {hook}'):
        found = tf.gradients(loss, [outputs[path] for path in floating])
    gradients = {path: g for path, g in zip(floating, found, strict=True) if g is not None}
    return _Graph(graph, outputs, labels, (loss, gradients))


def _source_in(graph: tf.Graph, op: tf.Operation) -> SourceLine | None:
  """Returns the user's line of an operation, which a rewritten graph does not know."""
  made = operation(graph, op.name)
  return None if made is None else user_source(made)


def _in_rounds(built: _Graph, example: LossExample) -> _Graph:
  """Returns the loss with the rounds of its loops; its gradients are formed of these."""
  loss, gradients = built.made
  placeholders = [*built.outputs.values(), *built.labels.values()]
  kept = [loss.op.name, *(tensor.op.name for tensor in placeholders)]
  graph_def = v1.graph_util.extract_sub_graph(built.graph.as_graph_def(), kept)
  fed = built.feeds(example.outputs, example.labels)
  feeds = {tensor.name: value for tensor, value in fed.items()}

  def evaluate(tensors: Sequence[str]) -> Sequence[np.ndarray]:
    with open_session(imported(graph_def)) as session:
      return session.run(list(tensors), feeds)  # type: ignore[no-any-return]

  take_apart(graph_def, evaluate, in_parts=False)
  graph = imported(graph_def)
  outputs, labels = (
    {path: graph.get_tensor_by_name(tensor.name) for path, tensor in known.items()}
    for known in (built.outputs, built.labels)
  )
  loss = graph.get_tensor_by_name(loss.name)
  with graph.as_default():
    found = tf.gradients(loss, [outputs[path] for path in gradients])
  made = {path: one for path, one in zip(gradients, found, strict=True) if one is not None}
  return _Graph(graph, outputs, labels, (loss, made))


def loss_run(
  graph: tf.Graph,
  found: Mapping[str, tuple[str, ...]],
  places: Mapping[str, str],
  feeds: Mapping[Any, np.ndarray],
  start: Sequence[Any],
  source_of: Callable[[tf.Operation], SourceLine | None],
) -> GraphRun:
  """Returns a run of a graph of the loss alone of which every tensor can be asked for.

  Args:
    graph: the graph.
    found: what it yields: names of tensors by what they are.
    places: what both sides call the placeholders, by the names of their operations.
    feeds: by placeholder.
    start: what a session runs first.
    source_of: tells the user's line of an operation.
  """
  targets = [Target(name, tensors) for name, tensors in found.items()]
  op_graph = GraphReader(graph, {}, places, {}, source_of).read(targets, (), side.TF1)
  fed = {tensor.name: value for tensor, value in feeds.items()}
  return GraphRun(op_graph, graph, fed, lambda session: session.run(list(start)), {})


def _placeholder(array: np.ndarray) -> tf.Tensor:
  dtype = tf.string if array.dtype.kind in 'SUO' else tf.as_dtype(array.dtype)
  return v1.placeholder(dtype, array.shape)


def moved_output(path: str, array: np.ndarray, perturber: Perturber) -> np.ndarray:
  """Returns an output that a loss reads, moved by one unit in the last place."""
  if not np.issubdtype(array.dtype, np.floating):
    return array
  if array.size and array.min() >= 0 and array.max() <= 1:
    return perturber.input(path, array)  # probabilities of exactly 0 and 1 are meant
  return perturber.variable(f'input {path}', array)


def _initializers(graph: tf.Graph) -> list[Any]:
  keys = v1.GraphKeys
  variables = {
    id(variable): variable
    for key in (keys.GLOBAL_VARIABLES, keys.LOCAL_VARIABLES, keys.METRIC_VARIABLES)
    for variable in graph.get_collection(key)
  }
  tables = graph.get_collection(keys.TABLE_INITIALIZERS)
  return [*(variable.initializer for variable in variables.values()), *tables]


def _dense(gradient: Any, shape: tuple[int, ...]) -> np.ndarray | None:
  if gradient is None:
    return None
  if hasattr(gradient, 'indices'):  # what a session makes of IndexedSlices
    return side.dense_gradient(np.asarray(gradient.values), np.asarray(gradient.indices), shape)
  return np.asarray(gradient)


def _metric_tensors(made: Any) -> dict[str, tuple[Any, Any]]:
  checked = loss_function.checked_metrics(made, _METRICS)
  return {
    name: metric if isinstance(metric, tuple) else (metric, None)
    for name, metric in checked.items()
  }
