"""A graph whose writes to variables are results, so that a step can be looked into like a call.

A training step reads and writes variables in an order that control dependencies give. Here
each write becomes what it would have written, each read after a write becomes that, and a
fused update (`ResourceApplyAdam`) becomes the operations of its formula. What is left reads
the values before the step alone, and yields the values after it.
"""

import dataclasses
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.graph_ops import op_name_of
from tf2verify.sides.graphs.graph_defs.extraction import called_functions
from tf2verify.sides.graphs.graph_defs.inlining import become, control_inputs, data_inputs
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node
from tf2verify.sides.graphs.rewriting.update_formulas import FORMULAS
from tf2verify.tensorflow_internals import graphs

v1 = tf.compat.v1
# How the names of operations begin that write the variable whose handle they take.
_WRITES = (
  'Assign',
  'ResourceApply',
  'ResourceScatter',
  'ResourceSparse',
  'ResourceStridedSliceAssign',
)
_CALLS = ('If', 'While', 'PartitionedCall', 'StatefulPartitionedCall', 'Case')
# What reads rows of a variable, and what takes them out of a tensor.
_GATHERS = {'ResourceGather': 'GatherV2', 'ResourceGatherNd': 'GatherNd'}


class WrittenOtherwise(Exception):
  """A variable is written by what cannot be taken apart; the message says by what."""


@dataclasses.dataclass(frozen=True, eq=False)
class WithoutState:
  """A GraphDef without writes.

  Attributes:
    graph_def: itself; of the operations that wrote, only the names are left.
    after: by the name of a handle's operation, the tensor that its variable holds in the end.
    origins: of every operation that was added, the name of the one that it stands for.
  """

  graph_def: Any
  after: Mapping[str, str]
  origins: Mapping[str, str]


def without_state(graph_def: Any, handles: Collection[str]) -> WithoutState:
  """Rewrites a graph so that nothing is written.

  Args:
    graph_def: the graph, which is changed.
    handles: names of the operations that yield the handles of variables.

  Raises:
    WrittenOtherwise: a variable is written within a function, or in a way without formula.
  """
  return _Rewriting(graph_def, handles).result()


class _Rewriting:
  """Goes through a graph, each operation after those that it waits for."""

  def __init__(self, graph_def: Any, handles: Collection[str]) -> None:
    self._graph_def = graph_def
    self._nodes = {node.name: node for node in self._graph_def.node}
    self._handles = frozenset(handles)
    self._origins: dict[str, str] = {}
    # Of each write: the variables, and what they hold after it; by the number of the write.
    self._writes: list[dict[str, str]] = []
    # By operation, the writes before it, as bits.
    self._before: dict[str, int] = {}
    # An optimizer updates each variable by the same formula.
    self._formulas: dict[Hashable, tuple[Sequence[Any], Mapping[str, str]]] = {}

  def result(self) -> WithoutState:
    """Rewrites everything."""
    order = list(_in_order(self._nodes))
    for name in order:
      self._visit(self._nodes[name])
    everything = (1 << len(self._writes)) - 1
    after = {handle: self._current(handle, everything, handle) for handle in sorted(self._handles)}
    return WithoutState(self._graph_def, after, self._origins)

  def _visit(self, node: Any) -> None:
    before = 0
    for name in node.input:
      before |= self._before.get(op_name_of(name), 0)
    self._before[node.name] = before
    if node.op == 'ReadVariableOp':
      handle = self._handle(node.input[0])
      if handle is not None and self._last(handle, before) is not None:
        self._pass_on(node, self._current(handle, before, node.name))
    elif node.op in _GATHERS:
      handle = self._handle(node.input[0])
      if handle is not None and self._last(handle, before) is not None:
        self._gather(node, self._current(handle, before, node.name))
    elif node.op in FORMULAS:
      self._expand(node, before)
      self._before[node.name] = before | (1 << (len(self._writes) - 1))
    elif self._may_write(node):
      raise WrittenOtherwise(f'{node.op} ({node.name}) writes a variable')
    elif node.op in _CALLS and any(self._is_written(name, before) for name in node.input):
      raise WrittenOtherwise(f'{node.op} ({node.name}) reads a variable after it is written')

  def _is_written(self, tensor: str, before: int) -> bool:
    """Returns whether a tensor is the handle of a variable that some writes have changed."""
    handle = self._handle(tensor)
    return handle is not None and self._last(handle, before) is not None

  def _may_write(self, node: Any) -> bool:
    if node.op.startswith(_WRITES):
      return any(self._handle(name) is not None for name in node.input)
    if node.op in _CALLS and any(self._handle(name) is not None for name in node.input):
      return _writes_inside(node, self._graph_def.library)
    return False

  def _handle(self, tensor: str) -> str | None:
    """Returns the operation of the handle that a tensor hands on; None for another tensor."""
    name = op_name_of(tensor)
    while name in self._nodes and self._nodes[name].op in ('Identity', 'Enter'):
      name = op_name_of(self._nodes[name].input[0])
    return name if name in self._handles else None

  def _last(self, handle: str, before: int) -> int | None:
    """Returns the number of the last of some writes to a variable; None without any."""
    numbers = range(before.bit_length() - 1, -1, -1)
    return next((n for n in numbers if before >> n & 1 and handle in self._writes[n]), None)

  def _current(self, handle: str, before: int, reader: str) -> str:
    """Returns the tensor that a variable holds after some writes."""
    last = self._last(handle, before)
    if last is not None:
      return self._writes[last][handle]
    name = f'{reader}/value_of/{handle}'
    if name not in self._nodes:
      node = self._graph_def.node.add(name=name, op='ReadVariableOp', input=[handle])
      node.attr['dtype'].CopyFrom(self._nodes[handle].attr['dtype'])
      self._nodes[name] = node
      self._origins[name] = reader
    return name

  def _pass_on(self, node: Any, tensor: str) -> None:
    """Makes a read hand on a tensor."""
    become(node, 'Identity', [tensor], T=node.attr['dtype'].type)

  def _gather(self, node: Any, tensor: str) -> None:
    """Makes a read of some rows take them out of a tensor."""
    node.op = _GATHERS[node.op]
    _, indices, *controls = node.input
    del node.input[:]
    node.input.extend([tensor, indices])
    node.attr['Tparams'].type = node.attr['dtype'].type
    batch = node.attr['batch_dims'].i
    for attribute in ('dtype', 'validate_indices', 'batch_dims'):
      node.attr.pop(attribute, None)
    if node.op == 'GatherV2':
      axis = self._graph_def.node.add()
      axis.CopyFrom(constant_node(f'{node.name}/axis', batch))
      self._nodes[axis.name] = axis
      self._origins[axis.name] = node.name
      node.input.append(axis.name)
      node.attr['Taxis'].type = tf.int32.as_datatype_enum
      node.attr['batch_dims'].i = batch
    node.input.extend(controls)

  def _expand(self, node: Any, before: int) -> None:
    """Makes of an update the operations of its formula, and of itself one that does nothing."""
    arguments = _arguments(node)
    handles: dict[str, str] = {}
    given: dict[str, tuple[str, Any]] = {}
    for argument, tensor in arguments.items():
      handle = self._handle(tensor)
      if handle is None:
        given[argument] = tensor, _dtype_of(node, argument)
      else:
        handles[argument] = handle
        given[argument] = (
          self._current(handle, before, node.name),
          tf.as_dtype(self._nodes[handle].attr['dtype'].type),
        )
    found = self._formula_nodes(node, given)
    self._writes.append({handles[argument]: tensor for argument, tensor in found.items()})
    controls = [f'^{op_name_of(name)}' for name in arguments.values() if self._handle(name) is None]
    controls += control_inputs(node)
    become(node, 'NoOp')
    node.input[:] = dict.fromkeys(controls)

  def _formula_nodes(self, node: Any, given: Mapping[str, tuple[str, Any]]) -> dict[str, str]:
    """Adds the operations of a formula; returns the tensors of what it makes of variables."""
    prefix = f'{node.name}/formula/'
    nodes, made = self._formula(node, {name: dtype for name, (_, dtype) in given.items()})
    tensors = {f'given/{name}': tensor for name, (tensor, _) in given.items()}
    for known in nodes:
      if known.name in tensors:
        continue
      added = self._graph_def.node.add()
      added.CopyFrom(known)
      added.name = prefix + known.name
      for number, name in enumerate(known.input):
        added.input[number] = tensors.get(op_name_of(name), prefix + name.lstrip('^'))
      self._nodes[added.name] = added
      self._origins[added.name] = node.name
    return {argument: prefix + name for argument, name in made.items()}

  def _formula(
    self, node: Any, dtypes: Mapping[str, Any]
  ) -> tuple[Sequence[Any], Mapping[str, str]]:
    """Returns the operations of a formula, and the names of what it makes of variables."""
    attributes = {
      name: value.i if value.WhichOneof('value') == 'i' else value.b
      for name, value in node.attr.items()
    }
    key = node.op, tuple(sorted(attributes.items())), tuple(dtypes.items())
    if key not in self._formulas:
      with tf.Graph().as_default() as graph:
        fed = {name: v1.placeholder(dtype, None, f'given/{name}') for name, dtype in dtypes.items()}
        made = FORMULAS[node.op](fed, attributes)
      names = {argument: tensor.op.name for argument, tensor in made.items()}
      self._formulas[key] = graph.as_graph_def().node, names
    return self._formulas[key]


def _in_order(nodes: Mapping[str, Any]) -> Iterator[str]:
  """Yields the operations, each after what it reads and waits for, but for loops."""
  done: set[str] = set()
  for first in nodes:
    pending = [first]
    under_way: set[str] = set()
    while pending:
      name = pending[-1]
      if name in done:
        pending.pop()
        continue
      inputs = (op_name_of(known) for known in nodes[name].input)
      left = [one for one in inputs if one not in done and one not in under_way and one in nodes]
      under_way.add(name)
      if left and nodes[name].op != 'NextIteration':
        pending += reversed(left)
      else:
        done.add(name)
        pending.pop()
        yield name


def _arguments(node: Any) -> dict[str, str]:
  """Returns the inputs of an operation by the names of its arguments; each is one tensor."""
  inputs = data_inputs(node)
  names = [argument.name for argument in graphs.op_definition(node.op).input_arg]
  return dict(zip(names, inputs, strict=True))


def _dtype_of(node: Any, argument: str) -> Any:
  """Returns the dtype of an argument of an update, by the attribute that gives it."""
  arguments = graphs.op_definition(node.op).input_arg
  (definition,) = (one for one in arguments if one.name == argument)
  if not definition.type_attr:
    if definition.type == tf.resource.as_datatype_enum:
      raise WrittenOtherwise(f'{node.op} ({node.name}) writes a variable that is not known')
    return tf.as_dtype(definition.type)
  return tf.as_dtype(node.attr[definition.type_attr].type)


def _writes_inside(node: Any, library: Any) -> bool:
  """Returns whether a function that an operation calls may write a variable."""
  return any(
    inner.op.startswith(_WRITES)
    for function in called_functions([node], library)
    for inner in function.node_def
  )
