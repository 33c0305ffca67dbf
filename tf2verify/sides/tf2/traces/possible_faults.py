"""The small faults that a port's graph can have, by its operations.

Each changes one operation, as a slip in the port would: its shapes mostly stay, and
the graph still runs.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE, OpGraph, OpRecord, TensorKey
from tf2verify.records.planted_fault import FaultKind, PlantedFault

_BATCH_NORMS = ('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
_FLAGS = {
  'transpose_a': ('MatMul',),
  'transpose_b': ('MatMul',),
  'adj_x': ('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3'),
  'adj_y': ('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3'),
  'is_training': _BATCH_NORMS,
  'align_corners': ('ResizeBilinear', 'ResizeNearestNeighbor', 'ResizeBicubic', 'ResizeArea'),
  'half_pixel_centers': ('ResizeBilinear', 'ResizeNearestNeighbor', 'ResizeBicubic'),
  'exclusive': ('Cumsum', 'Cumprod'),
  'reverse': ('Cumsum', 'Cumprod'),
}
_WINDOWED = ('Conv2D', 'DepthwiseConv2dNative', 'MaxPool', 'AvgPool', 'Conv3D')
# Non-commutative in the first two of these inputs.
_ORDERED = {
  'Sub': (0, 1),
  'RealDiv': (0, 1),
  'Div': (0, 1),
  'FloorDiv': (0, 1),
  'FloorMod': (0, 1),
  'Pow': (0, 1),
  'Atan2': (0, 1),
  'Greater': (0, 1),
  'GreaterEqual': (0, 1),
  'Less': (0, 1),
  'LessEqual': (0, 1),
  'MatMul': (0, 1),
  'BatchMatMul': (0, 1),
  'BatchMatMulV2': (0, 1),
  'BatchMatMulV3': (0, 1),
  'ConcatV2': (0, 1),
  'Pack': (0, 1),
  'Concat': (1, 2),
  'Select': (1, 2),
  'SelectV2': (1, 2),
}
_BYPASSED = (
  *('Relu', 'Relu6', 'LeakyRelu', 'Elu', 'Selu', 'Softplus', 'Softsign', 'Sigmoid', 'Tanh'),
  *('Softmax', 'LogSoftmax', 'Erf', 'Exp', 'Log', 'Log1p', 'Sqrt', 'Rsqrt', 'Square', 'Abs'),
  *('Neg', 'BiasAdd', 'Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Maximum', 'Minimum', 'LRN'),
  *('MaxPool', 'AvgPool', 'ReverseV2', 'Transpose', 'Cumsum', 'Pow', *_BATCH_NORMS),
)
# Of the same inputs and attributes, and easily taken for one another.
_SIMILAR = {
  'Relu': 'Relu6',
  'Relu6': 'Relu',
  'Elu': 'Selu',
  'Selu': 'Elu',
  'Softplus': 'Relu',
  'Tanh': 'Softsign',
  'Sigmoid': 'Tanh',
  'Floor': 'Ceil',
  'Ceil': 'Floor',
  'Round': 'Floor',
  'Maximum': 'Minimum',
  'Minimum': 'Maximum',
  'Greater': 'GreaterEqual',
  'GreaterEqual': 'Greater',
  'Less': 'LessEqual',
  'LessEqual': 'Less',
  'DivNoNan': 'RealDiv',
}
# A regularizer does not see the order of a variable's elements.
_BLIND_TO_ORDER = ('L2Loss', 'Square', 'Abs', 'Sum', TARGET)
_LARGEST_CONSTANT = 64
_LARGEST_EPSILON = 1e-3
_PLANTED = 'tf2verify_planted'
# The node of an operation, all nodes of its graph, and the values of captured constants.
_Edit = Callable[[dict[str, Any], Any, dict[str, np.ndarray]], None]


@dataclasses.dataclass(frozen=True, eq=False)
class PossibleFault:
  """A fault that a graph can have."""

  fault: PlantedFault  # the record of a report
  operations: tuple[str, ...]  # names of the faulty operations, as in the graph
  # Where these are in the body of a loop, or in a branch: the operation and attribute that lead
  # there, from the outside to the inside.
  path: tuple[tuple[str, str], ...]
  edit: _Edit  # changes the nodes

  @property
  def key(self) -> tuple[FaultKind, str, str]:
    """What is the same in another training mode's graph."""
    return self.fault.kind, self.fault.op, self.fault.what


def possible_faults(op_graph: OpGraph, prefix: str = '') -> list[PossibleFault]:
  """Returns the faults that a graph can have, by kind, then in the order of its operations.

  Args:
    op_graph: the graph.
    prefix: what to leave out at the front of names.
  """
  found = list(_faults(op_graph, prefix, ()))
  kinds = list(FaultKind)
  return sorted(found, key=lambda possible: kinds.index(possible.fault.kind))


def _faults(
  graph: OpGraph, prefix: str, path: tuple[tuple[str, str], ...]
) -> Iterator[PossibleFault]:
  consumers = graph.consumers()
  # In the body of a loop, what counts its steps is left alone: it might never end.
  steps = bool(path)

  def possible(
    kind: FaultKind, op: OpRecord, what: str, before: Any, after: Any, edit: _Edit, *also: OpRecord
  ) -> PossibleFault:
    names = (*(f'{outer}/{attribute}' for outer, attribute in path), op.name)
    name = '/'.join(part.removeprefix(prefix) for part in names)
    fault = PlantedFault(kind, name, op.op_type, what, _text(before), _text(after), op.source)
    return PossibleFault(fault, (op.name, *(one.name for one in also)), path, edit)

  for position, op in enumerate(graph.ops):
    if op.op_type == CONSTANT:
      readers = [graph.ops[n] for n, _ in consumers[position] if graph.ops[n].op_type != TARGET]
      yield from _constant_faults(op, readers, possible)
    elif not op.is_leaf and op.op_type != TARGET:
      if not steps or op.outputs[0][0].startswith(('float', 'bfloat', 'complex')):
        yield from _attribute_faults(graph, op, possible)
        yield from _swapped_inputs(graph, op, possible)
        yield from _bypasses(graph, op, possible)
        yield from _exchanged(op, possible)
      for attribute, body in op.functions:
        if attribute != 'cond':
          yield from _faults(body, prefix, (*path, (op.name, attribute)))
  yield from _variable_faults(graph, consumers, possible)


_Maker = Callable[..., PossibleFault]


def _attribute_faults(graph: OpGraph, op: OpRecord, possible: _Maker) -> Iterator[PossibleFault]:
  for name, after in _other_values(graph, op):
    before = op.attribute(name)

    def edit(
      body: dict[str, Any], nodes: Any, constants: Any, name: str = name, after: Any = after
    ) -> None:
      attribute = body[op.name].attr[name]
      if isinstance(after, bool):
        attribute.b = after
      elif isinstance(after, float):
        attribute.f = after
      elif isinstance(after, str):
        attribute.s = after.encode()
      else:
        attribute.list.i[:] = after

    yield possible(FaultKind.ATTRIBUTE, op, name, before, after, edit)


def _other_values(graph: OpGraph, op: OpRecord) -> Iterator[tuple[str, Any]]:
  """Yields attributes with the value that a port may have by mistake."""
  attributes = dict(op.attributes)
  for name, op_types in _FLAGS.items():
    if op.op_type not in op_types or name not in attributes:
      continue
    if not name.startswith(('transpose', 'adj')) or _are_square(graph, op):
      yield name, not attributes[name]
  if op.op_type in _BATCH_NORMS:
    yield 'epsilon', 1e-3 if attributes['epsilon'] < 5e-4 else 1e-5
    if attributes.get('exponential_avg_factor', 1.0) != 1.0:
      # Of 0.99 as of 0.999: the other decay.
      kept = attributes['exponential_avg_factor']
      yield 'exponential_avg_factor', kept / 10 if kept > 5e-3 else kept * 10
  if op.op_type == 'LeakyRelu':
    yield 'alpha', 0.3 if attributes['alpha'] < 0.25 else 0.2
  if op.op_type == 'LRN':
    yield 'bias', attributes['bias'] + 1.0
    yield 'alpha', attributes['alpha'] * 1.1
  if op.op_type == 'MirrorPad':
    yield 'mode', 'SYMMETRIC' if attributes['mode'] == 'REFLECT' else 'REFLECT'
  if op.op_type in _WINDOWED and _pads(graph, op):
    yield 'padding', 'VALID' if attributes['padding'] == 'SAME' else 'SAME'
    strides, dilations = attributes.get('strides'), attributes.get('dilations')
    same = attributes['padding'] == 'SAME'
    if op.op_type == 'Conv2D' and same and strides == dilations == (1, 1, 1, 1):
      channels_last = attributes.get('data_format') == 'NHWC'
      yield 'dilations', (1, 2, 2, 1) if channels_last else (1, 1, 2, 2)


def _pads(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether SAME would pad: else it is another word for VALID."""
  shape = graph.ops[op.inputs[0][0]].outputs[op.inputs[0][1]][1]
  kernel = op.attribute('ksize')
  if kernel is None:
    window = graph.ops[op.inputs[1][0]].outputs[op.inputs[1][1]][1]
    kernel = None if window is None else (1, *window[:-2], 1)
  strides = op.attribute('strides')
  if shape is None or kernel is None or op.attribute('data_format') not in ('NHWC', 'NDHWC'):
    return True
  for size, extent, stride in zip(shape, kernel, strides, strict=True):
    if extent == stride == 1:
      continue
    if size is None or extent is None or (-(-size // stride) - 1) * stride + extent > size:
      return True
  return False


def _are_square(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether both of an operation's inputs are matrices of one square shape."""
  shapes = {graph.ops[producer].outputs[number][1] for producer, number in op.inputs[:2]}
  (shape, *others) = shapes
  return not others and shape is not None and len(shape) >= 2 and shape[-1] == shape[-2]


def _swapped_inputs(graph: OpGraph, op: OpRecord, possible: _Maker) -> Iterator[PossibleFault]:
  slots = _ORDERED.get(op.op_type)
  if slots is None or max(slots) >= len(op.inputs):
    return
  first, second = slots
  if op.op_type.startswith('Concat') and op.inputs[second][0] == op.inputs[-1][0]:
    return  # one input, and the axis
  if op.inputs[first] == op.inputs[second] or _equal_constants(graph, op, first, second):
    return
  if op.op_type.endswith(('MatMul', 'MatMulV2', 'MatMulV3')) and not _are_square(graph, op):
    return

  def edit(body: dict[str, Any], nodes: Any, constants: Any) -> None:
    node = body[op.name]
    node.input[first], node.input[second] = node.input[second], node.input[first]

  names = [graph.ops[op.inputs[slot][0]].name for slot in slots]
  what = f'inputs {first} and {second}'
  yield possible(FaultKind.SWAPPED_INPUTS, op, what, ', '.join(names), ', '.join(names[::-1]), edit)


def _equal_constants(graph: OpGraph, op: OpRecord, first: int, second: int) -> bool:
  one, other = (graph.ops[op.inputs[slot][0]].constant for slot in (first, second))
  return one is not None and other is not None and bool(np.array_equal(one, other))


def _constant_faults(
  leaf: OpRecord, readers: Sequence[OpRecord], possible: _Maker
) -> Iterator[PossibleFault]:
  value = leaf.constant
  if value is None or not readers or not 0 < value.size <= _LARGEST_CONSTANT:
    return
  after = _changed(value, readers[0])
  if after is None or not np.isfinite(value).all():
    return

  def edit(body: dict[str, Any], nodes: Any, constants: dict[str, np.ndarray]) -> None:
    if leaf.name in constants:
      constants[leaf.name] = after
    else:
      tensor = tf.make_tensor_proto(after, shape=after.shape)
      body[leaf.name].attr['value'].tensor.CopyFrom(tensor)

  first, *others = dict.fromkeys(readers)
  made = possible(FaultKind.CONSTANT, first, f'constant {leaf.name}', value, after, edit, *others)
  yield made


def _changed(value: np.ndarray, reader: OpRecord) -> np.ndarray | None:
  """Returns another value for a constant; None where that would not be a small fault."""
  if value.dtype.kind == 'f':
    if value.size == 1 and 0 < abs(value.item()) <= _LARGEST_EPSILON:
      return np.asarray(value / 100, value.dtype)  # 1e-12 for 1e-10
    changed = value * 1.1 if value.any() else value + 0.1
    return np.asarray(changed, value.dtype)
  if reader.op_type in ('Pad', 'PadV2', 'MirrorPad') and value.ndim == 2 and value.any():
    # The same shape, shifted: what an explicit padding before a stride is about.
    after: np.ndarray = value.copy()
    axis = int(np.argmax(value.any(axis=1)))
    step = 1 if value[axis, 0] else -1
    after[axis] += np.asarray([-step, step], value.dtype)
    return after
  return None


def _bypasses(graph: OpGraph, op: OpRecord, possible: _Maker) -> Iterator[PossibleFault]:
  if op.op_type not in _BYPASSED:
    return
  slot = next((n for n, key in enumerate(op.inputs) if _can_stand_for(graph, op, key)), None)
  if slot is None or _does_nothing(graph, op, slot):
    return

  def edit(body: dict[str, Any], nodes: Any, constants: Any) -> None:
    node = body[op.name]
    kept = node.input[slot]
    del node.input[:]
    node.input.append(kept)
    node.op = 'Identity'
    node.attr.clear()
    node.attr['T'].type = tf.as_dtype(op.outputs[0][0]).as_datatype_enum

  source = graph.ops[op.inputs[slot][0]].name
  yield possible(FaultKind.BYPASS, op, 'left out', op.op_type, source, edit)


def _exchanged(op: OpRecord, possible: _Maker) -> Iterator[PossibleFault]:
  after = _SIMILAR.get(op.op_type)
  if after is None:
    return

  def edit(body: dict[str, Any], nodes: Any, constants: Any) -> None:
    body[op.name].op = after

  yield possible(FaultKind.OTHER_OPERATION, op, 'operation', op.op_type, after, edit)


def _can_stand_for(graph: OpGraph, op: OpRecord, key: TensorKey) -> bool:
  """Returns whether an input has the shape and dtype of an operation's output."""
  producer = graph.ops[key[0]]
  if producer.op_type in (CONSTANT, VARIABLE):
    return False
  return op.outputs[0][1] is not None and producer.outputs[key[1]] == op.outputs[0]


def _does_nothing(graph: OpGraph, op: OpRecord, slot: int) -> bool:
  """Returns whether an operation is `x + 0`, `x * 1`, or pools single elements."""
  if op.op_type in ('MaxPool', 'AvgPool'):
    return bool(op.attribute('ksize') == (1, 1, 1, 1))
  neutral = {'Add': 0, 'AddV2': 0, 'Sub': 0, 'Mul': 1, 'RealDiv': 1, 'Pow': 1}.get(op.op_type)
  if neutral is None:
    return False
  constants = [graph.ops[p].constant for n, (p, _) in enumerate(op.inputs) if n != slot]
  return any(value is not None and bool(np.all(value == neutral)) for value in constants)


def _variable_faults(
  graph: OpGraph, consumers: Sequence[Sequence[tuple[int, int]]], possible: _Maker
) -> Iterator[PossibleFault]:
  """Yields variables read transposed, and pairs of one shape read for one another."""
  latest: dict[tuple[Any, ...], tuple[OpRecord, OpRecord, int]] = {}
  for position, leaf in enumerate(graph.ops):
    if leaf.op_type != VARIABLE or leaf.outputs[0][1] is None:
      continue
    reads = ((graph.ops[n], slot) for n, slot in consumers[position])
    told = ((op, slot) for op, slot in reads if op.op_type not in _BLIND_TO_ORDER)
    op, slot = next(told, (None, 0))
    if op is None:
      continue
    shape = leaf.outputs[0][1]
    if len(shape) >= 2 and shape[-1] == shape[-2] != 1:
      yield _transposed(leaf, op, slot, possible)
    if leaf.outputs[0] in latest:
      yield _swapped(latest[leaf.outputs[0]], (leaf, op, slot), possible)
    latest[leaf.outputs[0]] = leaf, op, slot


def _transposed(leaf: OpRecord, op: OpRecord, slot: int, possible: _Maker) -> PossibleFault:
  rank = len(leaf.outputs[0][1] or ())
  order = (*range(rank - 2), rank - 1, rank - 2)

  def edit(body: dict[str, Any], nodes: Any, constants: Any) -> None:
    perm = nodes.add(name=f'{_PLANTED}/perm', op='Const')
    perm.attr['dtype'].type = tf.int32.as_datatype_enum
    perm.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(np.asarray(order, np.int32)))
    transpose = nodes.add(name=f'{_PLANTED}/transpose', op='Transpose')
    transpose.input.extend([body[op.name].input[slot], perm.name])
    transpose.attr['T'].type = tf.as_dtype(leaf.outputs[0][0]).as_datatype_enum
    transpose.attr['Tperm'].type = tf.int32.as_datatype_enum
    body[op.name].input[slot] = transpose.name

  axes = tuple(range(rank))
  return possible(FaultKind.TRANSPOSED, op, f'variable {leaf.name}', axes, order, edit)


def _swapped(
  one: tuple[OpRecord, OpRecord, int], other: tuple[OpRecord, OpRecord, int], possible: _Maker
) -> PossibleFault:
  (leaf, op, slot), (leaf_2, op_2, slot_2) = one, other

  def edit(body: dict[str, Any], nodes: Any, constants: Any) -> None:
    first, second = body[op.name], body[op_2.name]
    first.input[slot], second.input[slot_2] = second.input[slot_2], first.input[slot]

  what = f'variables {leaf.name} and {leaf_2.name}'
  kind = FaultKind.SWAPPED_VARIABLES
  return possible(kind, op, what, leaf.name, leaf_2.name, edit, op_2)


def _text(value: Any) -> str:
  if isinstance(value, np.ndarray):
    if value.dtype.kind != 'f' or value.size > 1:
      return ' '.join(str(value if value.size <= 8 else value.reshape(-1)[:8]).split())
    return f'{value.item():.7g}'
  return f'{value:g}' if isinstance(value, float) else str(value)
