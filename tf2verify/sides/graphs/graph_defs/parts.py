"""Parts of a graph that are run alone, from given values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import Inserted, NodeChange
from tf2verify.sides.graphs.graph_defs.inlining import control_inputs, data_inputs, with_output
from tf2verify.sides.graphs.graph_defs.new_nodes import constant_node, new_node
from tf2verify.tensorflow_internals.graphs import op_definition

v1 = tf.compat.v1

# Reads rows of a variable by its handle.
_GATHER = 'ResourceGather'
_MOST_CONSTANT = 64


class Part:
  """The nodes between some given tensors and some wanted ones, under names of their own.

  Attributes:
    nodes: NodeDefs.
    fetches: the wanted tensors.
    feeds: the given ones.
    read: names of the handles' operations of variables that are read of which no value is given.
    unknown: what is read of variables after a write, of which no value is given.
  """

  def __init__(
    self,
    prefix: str,
    nodes: Mapping[str, Any],
    reads: Mapping[str, str],
    wanted: Sequence[str],
    given: Mapping[str, np.ndarray],
    changes: Sequence[NodeChange] = (),
    late: Mapping[str, str] | None = None,
  ) -> None:
    self.nodes: list[Any] = []
    self.feeds: dict[str, np.ndarray] = {}
    self.read: set[str] = set()
    self.unknown: set[str] = set()
    self._late = late or {}
    self._prefix = prefix
    self._nodes = nodes
    self._reads = reads
    self._given = given
    self._changes = changes
    self._done: set[str] = set()
    self._constants: dict[str, str] = {}
    self._pending: list[str] = []
    self.fetches = [with_output(self._input(name)) for name in wanted]
    while self._pending:
      name = self._pending.pop()
      if name not in self._done:
        self._done.add(name)
        self._copy(nodes[name])

  @property
  def reads_state(self) -> bool:
    """Whether a variable is read of which no value is given."""
    return bool(self.read)

  def _copy(self, node: Any) -> None:
    copied = v1.NodeDef()
    copied.CopyFrom(node)
    copied.name = self._prefix + node.name
    del copied.input[:]
    changes = [change for change in self._changes if change.op == node.name]
    replaced = {slot: value for change in changes for slot, value in change.inputs}
    other = {slot: tensor for change in changes for slot, tensor in change.other}
    data = data_inputs(node)
    for slot, name in enumerate(data):
      if slot in replaced:
        copied.input.append(self._value(f'{node.name}/{slot}', replaced[slot]))
      else:
        copied.input.append(self._input(with_output(other.get(slot, name))))
    for change in changes:
      for one in change.inserted:
        operand = self._input(one.tensor) if one.tensor else ''
        cut = self._nodes[one.sliced_as] if one.sliced_as else None
        bounds = [] if cut is None else [self._input(with_output(name)) for name in bounds_of(cut)]
        self.nodes += insert(copied, one, operand, cut, bounds)
    if node.op == _GATHER and self._is_given(data[0]):
      self._gather_from_value(copied)
    for attribute in ('_class', '_output_shapes'):
      copied.attr.pop(attribute, None)
    for change in changes:
      for attribute, value in change.attributes:
        set_attribute(copied.attr[attribute], value)
      set_kind(copied, change)
    self.nodes.append(copied)

  def _is_given(self, handle: str) -> bool:
    """Returns whether the value of a variable is given."""
    return self._known_as(with_output(handle)) in self._given

  def _input(self, tensor: str) -> str:
    if tensor not in self._given:
      tensor = self._known_as(tensor)
    name, _, number = tensor.rpartition(':')
    if tensor in self._given:
      is_constant = self._nodes[name].op == 'Const'
      return (self._constant if is_constant else self._placeholder)(tensor, self._given[tensor])
    if name in self._late:
      self.unknown.add(self._late[name])
    producer = self._nodes[name]
    if producer.op == 'IdentityN':  # a loop in rounds: what else it yields is not wanted
      return self._input(with_output(producer.input[int(number)]))
    if producer.op in ('VarHandleOp', 'VariableV2', 'Variable'):
      self.read.add(producer.name)  # of the graph's own variables: a loop captures handles
      return tensor
    if producer.op == 'Placeholder':
      raise KeyError(tensor)  # of which no value is given
    self._pending.append(producer.name)
    return self._prefix + tensor

  def _known_as(self, tensor: str) -> str:
    """Returns the name under which a read of a variable may be given."""
    node = self._nodes[tensor.rpartition(':')[0]]
    if node.name in self._late:
      return self._late[node.name]
    handle = node.input[0] if node.op == 'ReadVariableOp' else node.name
    read = self._reads.get(with_output(handle).rpartition(':')[0], tensor)
    return read if read in self._given else tensor

  def _placeholder(self, tensor: str, value: np.ndarray) -> str:
    name = self._prefix + 'given/' + tensor.replace(':', '_')
    if name + ':0' not in self.feeds:
      self.feeds[name + ':0'] = value
      node = new_node(name, 'Placeholder', dtype=_dtype_of(value))
      # With its shape the import refuses what does not fit: some kernels end the process instead.
      node.attr['shape'].shape.CopyFrom(tf.TensorShape(value.shape).as_proto())
      self.nodes.append(node)
    return name

  def _constant(self, tensor: str, value: np.ndarray) -> str:
    """Returns what yields the value of a constant: shapes follow from bounds of slices, say."""
    if tensor not in self._constants:
      self._constants[tensor] = self._value(tensor.replace(':', '_'), value)
    return self._constants[tensor]

  def _gather_from_value(self, node: Any) -> None:
    """Makes what reads rows of a variable by its handle read those of its value."""
    axis = self._value(f'{node.name}/axis', np.int32(node.attr['batch_dims'].i))
    node.op = 'GatherV2'
    node.input.append(axis)
    node.attr['Tparams'].CopyFrom(node.attr['dtype'])
    node.attr['Taxis'].type = tf.int32.as_datatype_enum
    for attribute in ('dtype', 'validate_indices'):
      node.attr.pop(attribute, None)

  def _value(self, name: str, value: Any) -> str:
    """Returns what yields a value: a constant where shapes may follow from it, as from an axis."""
    array = np.asarray(value)
    if array.size > _MOST_CONSTANT or array.dtype.kind not in 'iuf':
      return self._placeholder(name, value)
    self.nodes.append(constant_node(f'{self._prefix}given/{name}', array))
    return f'{self._prefix}given/{name}'


def insert(
  node: Any, one: Inserted, operand: str = '', cut: Any = None, bounds: Sequence[str] = ()
) -> list[Any]:
  """Has an input of a NodeDef pass through another operation.

  Args:
    node: the NodeDef; its data inputs come first.
    one: what is inserted.
    operand: the tensor that is its second operand, where that is one.
    cut: the NodeDef as which the operand is sliced; None for the whole operand.
    bounds: what that reads besides the tensor.

  Returns:
    The NodeDefs that this adds to the graph. They are of 32 bits.

  Raises:
    KeyError: the operation has no such input.
  """
  if one.slot >= len(node.input) or node.input[one.slot].startswith('^'):
    raise KeyError(f'input {one.slot}')
  name = f'{node.name}/tf2verify_inserted_{one.slot}'
  added: list[Any] = []
  read = node.input[one.slot]
  while read.startswith(name):  # another one is there, which is before this one
    name += '_then'
  if one.apart:
    read = _reshaped(added, f'{name}/apart', read, one.apart)
  if cut is not None:
    sliced = v1.NodeDef(name=f'{name}/slice', op=cut.op, input=[operand, *bounds])
    for attribute in cut.attr:
      if not attribute.startswith('_'):
        sliced.attr[attribute].CopyFrom(cut.attr[attribute])
    added.append(sliced)
    operand = sliced.name
  made = new_node(name, one.op_type, [read], T=tf.float32)
  added.append(made)
  if one.order:
    made.attr['Tperm'].type = tf.int32.as_datatype_enum
    operand = _constant(added, f'{name}/number', np.asarray(one.order, np.int32))
  elif one.number is not None:
    operand = _constant(added, f'{name}/number', np.asarray(one.number, np.float32))
  if operand:
    made.input.append(operand)
  node.input[one.slot] = (
    _reshaped(added, f'{name}/joined', name, one.joined) if one.joined else name
  )
  return added


def bounds_of(cut: Any) -> list[str]:
  """Returns what the NodeDef of a slice reads besides the tensor."""
  return [name for name in cut.input if not name.startswith('^')][1:]


def _constant(added: list[Any], name: str, value: np.ndarray) -> str:
  added.append(constant_node(name, value))
  return name


def _reshaped(added: list[Any], name: str, read: str, shape: Sequence[int]) -> str:
  size = _constant(added, f'{name}/shape', np.asarray(shape, np.int32))
  added.append(new_node(name, 'Reshape', [read, size], T=tf.float32, Tshape=tf.int32))
  return name


def set_kind(node: Any, change: NodeChange) -> None:
  """Gives a NodeDef another type, and its inputs another order.

  Raises:
    KeyError: it has no such inputs, or there is no such type.
  """
  if change.reads:
    data = data_inputs(node)
    if max(change.reads) >= len(data):
      raise KeyError(f'input {max(change.reads)}')
    control = control_inputs(node)
    node.input[:] = [*(data[number] for number in change.reads), *control]
  if change.op_type:
    definition = op_definition(change.op_type)
    if definition is None:
      raise KeyError(change.op_type)
    node.op = change.op_type
    known = {attribute.name for attribute in definition.attr}
    for name in [name for name in node.attr if name not in known]:
      del node.attr[name]


def set_attribute(attribute: Any, value: Any) -> None:
  """Gives an attribute of a NodeDef another value of its own kind.

  Raises:
    KeyError: its kind is not one of numbers, texts and lists of them.
  """
  kind = attribute.WhichOneof('value')
  if kind == 's':
    attribute.s = str(value).encode()
  elif kind in ('i', 'f', 'b'):
    setattr(attribute, kind, value)
  elif kind == 'list' and attribute.list.i and value:
    attribute.list.i[:] = value
  else:
    raise KeyError(kind)


def _dtype_of(value: np.ndarray) -> tf.DType:
  return tf.string if value.dtype.kind in 'SUO' else tf.as_dtype(value.dtype)
