"""Numbers that Python reads of a graph while it is traced: `if int(step) % 5 == 0`."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.reference.graph_ops import reached
from tf2verify.sides.graphs.graph_defs.extraction import behind
from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.lines.source_lines import user_line
from tf2verify.sides.graphs.rewriting.settled_numbers import settle
from tf2verify.tensorflow_internals import graphs

# Each runs the graph so far: a step that asks for more is a loop over numbers.
_MOST = 50
# What they yield depends on nothing but the shape of what they read.
_OF_SHAPES = {
  'Shape': lambda tensor: tensor.shape.as_list(),
  'Size': lambda tensor: tensor.shape.num_elements(),
  'Rank': lambda tensor: tensor.shape.rank,
}

# Returns the value of a tensor of a graph that is under way, given what its placeholders are fed.
Evaluates = Callable[[tf.Tensor, Mapping[str, np.ndarray]], np.ndarray]


@dataclasses.dataclass(frozen=True)
class ReadNumber:
  """A number of one run that Python has read, so that the graph is that of this run."""

  line: SourceLine | None  # of the user's that reads it
  of_counts: bool  # whether it follows from counts of steps alone
  tensor: str  # its name in the graph


@dataclasses.dataclass(frozen=True)
class Number:
  """A result that may be a number which was read of the graph: `return float(loss)`."""

  value: Any


class CannotBeRead(TypeError):
  """A tensor of a graph has no number that Python could read."""


class NumbersRead:
  """Answers what Python asks the tensors of a graph for, and remembers it.

  What follows from shapes alone is the same in every run. Anything else is a number of this run,
  so that the graph is that of this run only.
  """

  def __init__(self, graph: Any, evaluate: Evaluates | None) -> None:
    """Takes the graph.

    Args:
      graph: that is traced.
      evaluate: returns values that do not follow from shapes; None where these are not read.
    """
    self._graph = graph
    self._evaluate = evaluate
    self._known: dict[int, tuple[tf.Tensor, np.ndarray]] = {}
    self.feeds: Mapping[str, np.ndarray] = {}  # by the names of placeholders
    self.of_this_run: list[ReadNumber] = []

  def value_of(self, tensor: tf.Tensor) -> np.ndarray:
    """Returns the number that a tensor has.

    Raises:
      CannotBeRead: it is none, or not known.
    """
    if id(tensor) in self._known:
      return self._known[id(tensor)][1]
    if tensor.graph is not self._graph:
      raise CannotBeRead(f'{tensor.name} is no number of the graph that is traced')
    if tensor.shape.rank != 0:
      return self._value_of_array(tensor)
    found = value_by_shapes(tensor)
    if found is None:
      if self._evaluate is None or len(self._known) >= _MOST:
        raise CannotBeRead(f'the value of {tensor.name} is not known while the graph is traced')
      self.of_this_run.append(ReadNumber(user_line(), _follows_from_counts(tensor), tensor.name))
      with tf.init_scope():
        found = self._evaluate(tensor, self.feeds)
    self._known[id(tensor)] = tensor, found
    return found

  def _value_of_array(self, tensor: tf.Tensor) -> np.ndarray:
    """Returns what a variable holds that the graph has not written yet: `tf.Variable(w.numpy())`.

    Raises:
      CannotBeRead: it is anything else.
    """
    handle = _unwritten(tensor)
    outer = next((one for one, inner in self._graph.captures if inner is handle), None)
    if self._evaluate is None or outer is None:
      raise CannotBeRead(f'{tensor.name} is no number of the graph that is traced')
    self.of_this_run.append(ReadNumber(user_line(), False, tensor.name))
    with tf.init_scope():
      found = tf.raw_ops.ReadVariableOp(resource=outer, dtype=tensor.dtype).numpy()
    self._known[id(tensor)] = tensor, found
    return np.array(found)

  def resolved(self, result: Any) -> Any:
    """Returns a result; of a `Number`, the tensor that it was read of, None where it was not."""
    if not isinstance(result, Number):
      return result
    read = reversed(self._known.values())
    return next((tensor for tensor, known in read if known == result.value), None)


def _unwritten(tensor: tf.Tensor) -> tf.Tensor | None:
  """Returns the handle of the variable that a tensor is read of; None where it may be written."""
  op = tensor.op
  while op.type == 'Identity':
    op = op.inputs[0].op
  if op.type != 'ReadVariableOp':
    return None
  handle = op.inputs[0]
  reads = ('ReadVariableOp', 'VariableShape', 'ResourceGather')
  return handle if all(one.type in reads for one in handle.consumers()) else None


def _follows_from_counts(tensor: tf.Tensor) -> bool:
  ops = reached([tensor.op], lambda op: [read.op for read in op.inputs])
  reads = [op for op in ops if op.type == 'ReadVariableOp']
  others = [op for op in ops if op.type == 'Placeholder' and op.outputs[0].dtype != tf.resource]
  return bool(reads) and not others and all(op.outputs[0].dtype.is_integer for op in reads)


def value_by_shapes(tensor: tf.Tensor) -> np.ndarray | None:
  """Returns the value of a tensor that follows from constants and known shapes; None elsewhere."""
  known = tf.get_static_value(tensor)
  if known is not None:
    return np.asarray(known)
  ops: dict[str, Any] = {}

  def inputs(op: Any) -> list[Any]:
    ops[op.name] = op
    return [] if _shape_read_by(op) is not None else [read.op for read in op.inputs]

  list(reached([tensor.op], inputs))
  if any(not op.inputs and op.type != 'Const' for op in ops.values()):
    return None
  if any(op.op_def.is_stateful or op.control_inputs for op in ops.values()):
    return None
  part = behind(_without_reads(tensor.graph.as_graph_def(), ops), [tensor.op.name])
  with open_session(imported(part)) as session:
    return np.asarray(session.run(tensor.name))


def _shape_read_by(op: Any) -> np.ndarray | None:
  """Returns what an operation yields of a shape that is known; None for any other one."""
  if op.type not in _OF_SHAPES or not op.inputs[0].shape.is_fully_defined():
    return None
  return np.asarray(_OF_SHAPES[op.type](op.inputs[0]), op.outputs[0].dtype.as_numpy_dtype)


def _without_reads(graph_def: Any, ops: Mapping[str, Any]) -> Any:
  """Makes constants of what a graph reads of shapes."""
  for node in graph_def.node:
    value = _shape_read_by(ops[node.name]) if node.name in ops else None
    if value is not None:
      settle(node, value)
  return graph_def


def in_order(graph: Any) -> Any:
  """Returns a copy of a graph under way whose reads wait for the writes before them.

  In the graph itself, `AutomaticControlDependencies` sees to that once it is complete.
  """
  copy = graphs.FuncGraph('under_way')
  with copy.as_default(), graphs.AutomaticControlDependencies():
    # What nothing reads yet cannot be mapped.
    captured = [(outer, inner) for outer, inner in graph.captures if inner.consumers()]
    mapped = {
      inner.name: copy.capture(outer, f'tf2verify_captured/{number}')
      for number, (outer, inner) in enumerate(captured)
    }
    tf.import_graph_def(_without(graph.as_graph_def(), graph.captures), mapped, name='')
  return copy


def _without(graph_def: Any, captures: Iterable[tuple[Any, tf.Tensor]]) -> Any:
  """Leaves out the placeholders of what a graph captures, which its copy captures itself."""
  left_out = {inner.op.name for _, inner in captures}
  kept = [node for node in graph_def.node if node.name not in left_out]
  del graph_def.node[:]
  graph_def.node.extend(kept)
  return graph_def
