"""From a TensorFlow graph to the records of its operations."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import (
  CHOICE,
  CONSTANT,
  INPUT,
  TARGET,
  VARIABLE,
  OpGraph,
  OpRecord,
  TensorKey,
)
from tf2verify.reference.graph_ops import inputs_of, ops_run_by, reached
from tf2verify.reference.variables import static_shape
from tf2verify.sides.graphs.graph_defs.constants import constant_of
from tf2verify.sides.graphs.graph_defs.inlining import KEPT_CHOICE, shown_choice
from tf2verify.sides.graphs.graph_defs.op_order import positions
from tf2verify.sides.graphs.graph_defs.purity import is_pure
from tf2verify.sides.graphs.lines.gradient_lines import with_forward_lines
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.tensorflow_internals import graphs

# They pass their input on as it is, or say so to the gradient only.
PASSING = (
  'Identity',
  'IdentityN',
  'StopGradient',
  'PreventGradient',
  KEPT_CHOICE,
  'EnsureShape',
  'CheckNumerics',
  'PlaceholderWithDefault',
  'ReadVariableOp',
  'Enter',
  'RefIdentity',
)
_HANDLES = ('VarHandleOp', 'VariableV2', 'Variable')
_WRITES = ('Assign', 'ScatterUpdate', 'ScatterAdd', 'ScatterSub', 'ScatterNd')
_FUNCTION_ATTRIBUTES = ('body', 'cond', 'then_branch', 'else_branch')
# Name, tensors and attributes of a target.
_End = tuple[str, list[tf.Tensor], tuple[tuple[str, Any], ...]]


@dataclasses.dataclass(frozen=True)
class Target:
  """What a run yields.

  Attributes:
    name: what it is: `output ['logits']`.
    tensors: TensorFlow's names: one, or values and indices of `IndexedSlices`.
  """

  name: str
  tensors: tuple[str, ...]


def regularization_target(names: Sequence[str], number: int, taken: Collection[str]) -> str:
  """Returns how a regularization loss is called, which is known by the variables it reads.

  Args:
    names: of the variables.
    number: stands for the variables where there are none.
    taken: names that others have: the next of one name gets a ` (2)`.
  """
  name = f'regularization loss {", ".join(names) or f"number {number}"}'
  found, count = name, 1
  while found in taken:
    count += 1
    found = f'{name} ({count})'
  return found


def _value(attribute: Any) -> Any:
  """Returns an attribute of a NodeDef as a plain value."""
  kind = attribute.WhichOneof('value')
  if kind == 's':
    return attribute.s.decode('utf-8', 'replace')
  if kind == 'type':
    return tf.as_dtype(attribute.type).name
  if kind == 'shape':
    return static_shape(tf.TensorShape(attribute.shape))
  if kind == 'func':
    return attribute.func.name
  if kind == 'tensor':
    return None
  if kind == 'list':
    found = attribute.list
    if found.s:
      return tuple(text.decode('utf-8', 'replace') for text in found.s)
    if found.type:
      return tuple(tf.as_dtype(dtype).name for dtype in found.type)
    return tuple(found.i) or tuple(found.f) or tuple(found.b)
  return getattr(attribute, kind) if kind else None


def _attributes(node: Any) -> tuple[tuple[str, Any], ...]:
  kept = (
    (name, _value(value))
    for name, value in node.attr.items()
    if not name.startswith('_') or name == '_gradient_op_type'
  )
  return tuple(sorted(kept, key=lambda item: item[0]))


class GraphReader:
  """Reads the operations that some targets depend on.

  What reads a variable, a placeholder or a captured tensor becomes a leaf of the
  name that both sides know it by.
  """

  def __init__(
    self,
    graph: tf.Graph,
    variables: Mapping[str, str],
    inputs: Mapping[str, str],
    constants: Mapping[str, np.ndarray],
    source_of: Callable[[tf.Operation], SourceLine | None] = user_source,
    shows_choices: bool = False,
  ) -> None:
    """Prepares to read.

    Args:
      graph: the graph.
      variables: from the name of a handle's op to the variable's tf1 name.
      inputs: from a placeholder's op name to the input's path.
      constants: from a placeholder's op name to the value that it always has.
      source_of: tells the user's line of an operation.
      shows_choices: whether what a condition has chosen is a record of its own, of type `CHOICE`.
    """
    self._passing = frozenset(PASSING) - ({KEPT_CHOICE} if shows_choices else set())
    self._graph = graph
    self._variables = variables
    self._inputs = inputs
    self._constants = constants
    self._source_of = with_forward_lines(graph, source_of)
    graph_def = graph.as_graph_def()
    self._nodes = {node.name: node for node in graph_def.node}
    self._library = {function.signature.name: function for function in graph_def.library.function}
    self._position = positions(graph)
    self._records: list[OpRecord] = []
    self._index: dict[str, int] = {}
    self._depth: dict[str, int] = {}
    self._leaves: dict[tuple[str, str], int] = {}
    self._written: dict[str, int] = {}

  def read(self, targets: Sequence[Target], writes: Iterable[str], side: str) -> OpGraph:
    """Returns the operations behind the targets, and behind what writes variables.

    Args:
      targets: what the run yields.
      writes: names of operations, such as update ops. Those that write variables among
        them and the targets, or run before these, become targets, too: a run that
        yields the targets runs them, also where only a control dependency leads there.
      side: 'tf1' or 'tf2'.
    """
    ends = self._ends(targets, writes)
    for op in self._behind(tensor for _, tensors, _ in ends for tensor in tensors):
      self._add(op)
    for name, tensors, attributes in ends:
      keys, through = zip(*(self._resolve(tensor) for tensor in tensors), strict=True)
      self._records.append(_target_record(name, tensors, attributes, keys, through))
    return OpGraph(side, tuple(self._records), tuple(self._unread()))

  def _unread(self) -> Iterator[OpRecord]:
    """Yields the inputs that none of the operations reads."""
    for op_name, path in self._inputs.items():
      if (INPUT, path) not in self._leaves and op_name in self._position:
        tensor = self._graph.get_operation_by_name(op_name).outputs[0]
        output = (tensor.dtype.base_dtype.name, _shape(tensor))
        yield OpRecord(path, INPUT, (), outputs=(output,), tensors=(tensor.name,))

  def read_targets(self, targets: Sequence[Target], writes: Iterable[str], side: str) -> OpGraph:
    """Returns the targets of `read` alone: for a run that is asked for nothing else."""
    return OpGraph(side, tuple(_target_record(*end) for end in self._ends(targets, writes)))

  def _ends(self, targets: Sequence[Target], writes: Iterable[str]) -> list[_End]:
    """Returns the targets, and what variables are written with."""
    graph = self._graph
    found = [(t.name, [graph.get_tensor_by_name(n) for n in t.tensors], ()) for t in targets]
    run = [tensor.op for _, tensors, _ in found for tensor in tensors]
    assignments = self._assignments([*run, *map(graph.get_operation_by_name, writes)])
    return [*found, *((name, tensors, (('op', kind),)) for name, kind, tensors in assignments)]

  def _behind(self, roots: Iterable[tf.Tensor]) -> list[tf.Operation]:
    found = reached(
      [tensor.op for tensor in roots], lambda op: () if op.type in _HANDLES else inputs_of(op)
    )
    return sorted(found, key=lambda op: self._position[op.name])

  def _assignments(self, ops: Sequence[tf.Operation]) -> list[tuple[str, str, list[tf.Tensor]]]:
    """Returns the writes to variables among some operations and behind them."""
    found = []
    counts = self._written
    counts.clear()
    run = ops_run_by(ops).values()
    for op in sorted(run, key=lambda op: self._position[op.name]):
      kind = op.type.removeprefix('Resource')
      variable = self._writes(op)
      if variable is None:
        continue
      counts[variable] = counts.get(variable, 0) + 1
      number = f' ({counts[variable]})' if counts[variable] > 1 else ''
      found.append((f'update of {variable}{number}', kind, list(op.inputs)[1:]))
    return found

  def _writes(self, op: tf.Operation) -> str | None:
    """Returns the variable that an operation writes; None for another operation."""
    if not op.type.removeprefix('Resource').startswith(_WRITES) or not op.inputs:
      return None
    return self._variables.get(self._handle(op.inputs[0]).name)

  def _read_name(self, variable: str, read: tf.Operation, *others: tf.Operation) -> str:
    """Returns the name of what an operation reads of a variable: before a write, or after it."""
    if variable not in self._written:
      return variable
    before = [*read.control_inputs, *others]
    count = sum(self._writes(op) == variable for op in ops_run_by(before).values())
    number = f' ({count})' if count > 1 else ''
    return f'{variable} after its update{number}' if count else variable

  def _handle(self, tensor: tf.Tensor) -> tf.Operation:
    op = tensor.op
    while op.type in ('Identity', 'Enter', 'RefIdentity') and op.inputs:
      op = op.inputs[0].op
    return op

  def _add(self, op: tf.Operation) -> None:
    # No cycles; and what the gradient of a loop gives to the loop, which is older than that.
    place = self._position[op.name]
    inputs = [
      tensor
      for tensor in op.inputs
      if tensor.op.type != 'NextIteration' and self._position[tensor.op.name] < place
    ]
    self._depth[op.name] = self._depth_of(op, inputs)
    if op.name in self._variables:
      return  # a leaf once somebody reads it
    if op.type in self._passing and op.inputs:
      return
    if op.name in self._inputs or op.name in self._constants or op.type == 'Const':
      return
    resolved = [self._resolve(tensor, op) for tensor in inputs]
    record = OpRecord(
      shown_choice(op.name),
      CHOICE if op.type == KEPT_CHOICE else op.type,
      tuple(key for key, _ in resolved),
      _input_names(op) if len(inputs) == len(op.inputs) else (),
      tuple(passed for _, passed in resolved),
      _attributes(self._nodes[op.name]),
      tuple((self._dtype(t), _shape(t)) for t in op.outputs),
      tuple(self._fetchable(t).name for t in op.outputs),
      self._source_of(op),
      functions=self._functions(op),
      pure=is_pure(op, self._nodes[op.name], self._library),
    )
    self._index[op.name] = len(self._records)
    self._records.append(record)

  def _fetchable(self, tensor: tf.Tensor) -> tf.Tensor:
    """Returns a tensor, or what passes it on where a session does not yield it itself."""
    if self._graph.is_fetchable(tensor):
      return tensor
    passed = (op.outputs[0] for op in tensor.consumers() if op.type == 'Identity')
    return next((one for one in passed if self._graph.is_fetchable(one)), tensor)

  def _dtype(self, tensor: tf.Tensor) -> str:
    """Returns a dtype's name; within a loop of control flow v1, one that cannot be fetched."""
    hidden = self._depth[tensor.op.name] or not self._graph.is_fetchable(self._fetchable(tensor))
    return 'variant' if hidden else str(tensor.dtype.base_dtype.name)

  def _depth_of(self, op: tf.Operation, inputs: Sequence[tf.Tensor]) -> int:
    """Returns in how many loops and branches of control flow v1 an operation stands."""
    depth = max((self._depth[tensor.op.name] for tensor in inputs), default=0)
    in_loop = any(tensor.op.type in ('LoopCond', 'NextIteration') for tensor in op.inputs)
    if op.type in ('Enter', 'RefEnter') or (op.type == 'Switch' and not in_loop):
      return depth + 1
    ends = op.type in ('Exit', 'RefExit') or (op.type == 'Merge' and not in_loop)
    return max(depth - 1, 0) if ends else depth

  def _functions(self, op: tf.Operation) -> tuple[tuple[str, OpGraph], ...]:
    """Returns the functions that a loop or a condition calls."""
    found = []
    for attribute in _FUNCTION_ATTRIBUTES:
      node = self._nodes[op.name]
      name = node.attr[attribute].func.name if attribute in node.attr else ''
      if name in self._library:
        found.append((attribute, self._function(name)))
    return tuple(found)

  def _function(self, name: str) -> OpGraph:
    body = graphs.graph_of(self._library[name], self._library)
    inputs = {tensor.op.name: f'argument {n}' for n, tensor in enumerate(body.inputs)}
    reader = GraphReader(body, {}, inputs, {}, lambda _: None)
    reader._library = self._library
    targets = [Target(f'result {n}', (tensor.name,)) for n, tensor in enumerate(body.outputs)]
    return reader.read(targets, (), '')

  def _resolve(
    self, tensor: tf.Tensor, reader: tf.Operation | None = None
  ) -> tuple[TensorKey, tuple[str, ...]]:
    """Returns where a tensor comes from, and what passes it on, the producer's end first."""
    passed: list[str] = []
    first = tensor
    while tensor.op.type in self._passing and tensor.op.inputs:
      op = tensor.op
      if op.type not in ('ReadVariableOp', 'Enter'):
        passed.append(_passing_name(op, self._nodes[op.name]))
      before = tensor
      tensor = op.inputs[tensor.value_index if op.type == 'IdentityN' else 0]
      if tensor.op.name in self._variables:
        name = self._read_name(self._variables[tensor.op.name], op)
        return (self._leaf(VARIABLE, name, before), 0), tuple(passed[::-1])
    op = tensor.op
    if op.name in self._variables:
      read = reader or op  # by its handle, as a loop or a look-up reads it
      name = self._read_name(self._variables[op.name], read, *(t.op for t in read.inputs))
      key = self._leaf(VARIABLE, name, first), 0
    elif op.name in self._inputs:
      key = (self._leaf(INPUT, self._inputs[op.name], tensor), 0)
    elif op.name in self._constants:
      key = (self._leaf(CONSTANT, op.name, tensor, self._constants[op.name]), 0)
    elif op.type == 'Const':
      key = (self._leaf(CONSTANT, op.name, tensor, *constant_of(self._nodes[op.name])), 0)
    else:
      key = (self._index[op.name], tensor.value_index)
    return key, tuple(passed[::-1])

  def _leaf(
    self,
    op_type: str,
    name: str,
    tensor: tf.Tensor,
    value: np.ndarray | None = None,
    digest: str = '',
  ) -> int:
    key = (op_type, name)
    if key not in self._leaves:
      self._leaves[key] = len(self._records)
      output = (tensor.dtype.base_dtype.name, _shape(tensor))
      self._records.append(
        OpRecord(
          name,
          op_type,
          (),
          outputs=(output,),
          tensors=(tensor.name,),
          source=self._source_of(tensor.op),
          constant=value,
          digest=digest,
        )
      )
    return self._leaves[key]


def _target_record(
  name: str,
  tensors: Sequence[tf.Tensor],
  attributes: tuple[tuple[str, Any], ...],
  keys: tuple[TensorKey, ...] = (),
  through: tuple[tuple[str, ...], ...] = (),
) -> OpRecord:
  outputs = tuple((t.dtype.base_dtype.name, _shape(t)) for t in tensors)
  names = tuple(tensor.name for tensor in tensors)
  return OpRecord(name, TARGET, keys, (), through, attributes, outputs, names)


def _input_names(op: tf.Operation) -> tuple[str, ...]:
  arguments = op.op_def.input_arg
  names = []
  for argument in arguments:
    many = argument.number_attr or argument.type_list_attr
    number = len(op.inputs) - len(arguments) + 1 if many else 1
    names += [argument.name] if number == 1 else [f'{argument.name}[{n}]' for n in range(number)]
  return tuple(names) if len(names) == len(op.inputs) else ()


def _passing_name(op: tf.Operation, node: Any) -> str:
  if '_gradient_op_type' in node.attr:
    return (
      'custom gradient'
      if op.type == 'IdentityN'
      else f'gradient of {_value(node.attr["_gradient_op_type"])}'
    )
  return str(op.type)


def _shape(tensor: tf.Tensor) -> tuple[int | None, ...] | None:
  shape = tf.TensorShape(tensor.shape)
  return None if shape.rank is None else tuple(shape.as_list())
