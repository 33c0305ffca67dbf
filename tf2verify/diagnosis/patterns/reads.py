"""What two regions are computed from, where their operations differ as well."""

from collections.abc import Sequence

from tf2verify.diagnosis.divergence.regions import RegionPair
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import CONSTANT, OpGraph, TensorKey

# Operations that leave the elements in their order, and all but always their values.
_ONLY_SHAPE = frozenset({'Reshape', 'Squeeze', 'ExpandDims', 'Identity', 'Cast'})

_CHOICES = frozenset({'Select', 'SelectV2'})


def read_from_elsewhere(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> list[GraphDifference]:
  """Returns the tensor that each side reads, and the other does not.

  There is none where a side reads several, since it is not known which go together.
  """
  entering = dict(pair.entering)
  back = {other: one for one, other in pair.entering}
  ones = [key for key in pair.tf1.frontier if entering.get(key) not in pair.tf2.frontier]
  others = [key for key in pair.tf2.frontier if back.get(key) not in pair.tf1.frontier]
  if len(ones) != 1 or len(others) != 1:
    return []
  reader, slot = next(
    (n, slot)
    for n in (*pair.tf1.inner, pair.tf1.end)
    for slot, key in enumerate(tf1.ops[n].inputs)
    if key == ones[0]
  )
  return [_read(tf1, tf2, reader, slot, (ones[0], others[0]))]


def _read(
  tf1: OpGraph, tf2: OpGraph, reader: int, slot: int, read: tuple[TensorKey, TensorKey]
) -> GraphDifference:
  op = tf1.ops[reader]
  one, other = read
  return GraphDifference(
    GraphAspect.WIRING,
    op.name,
    op.op_type,
    op.input_names[slot] if op.input_names else f'input {slot}',
    tensor_text(tf1, one),
    tensor_text(tf2, other),
    tf1.ops[one[0]].op_type,
    tf2.ops[other[0]].op_type,
  )


def reads_another_choice(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> list[GraphDifference]:
  """Returns which tensor the end reads where one side reads what a mask chooses, unpaired.

  Of the states of a loop, say, the port hands on another one than tf1: neither that choice has a
  partner nor what makes its mask. None where the ends read other tensors as well.
  """
  op, other = tf1.ops[pair.tf1.end], tf2.ops[pair.tf2.end]
  if op.op_type != other.op_type or len(op.inputs) != len(other.inputs):
    return []
  entering = dict(pair.entering)
  both = list(zip(op.inputs, other.inputs, strict=True))
  slots = [
    slot
    for slot, (one, two) in enumerate(both)
    if not (one in entering and entering[one] == two)
    and not tf1.ops[one[0]].op_type == tf2.ops[two[0]].op_type == CONSTANT
  ]
  if len(slots) != 1:
    return []
  one, two = both[slots[0]]
  if (one[0] in pair.tf1.inner) == (two[0] in pair.tf2.inner):
    return []
  read = _without_shapes(tf1, one), _without_shapes(tf2, two)
  chosen = tf1.ops[read[0][0]] if one[0] in pair.tf1.inner else tf2.ops[read[1][0]]
  if chosen.op_type not in _CHOICES:
    return []
  return [_read(tf1, tf2, pair.tf1.end, slots[0], read)]


def _without_shapes(graph: OpGraph, key: TensorKey) -> TensorKey:
  while graph.ops[key[0]].op_type in _ONLY_SHAPE and graph.ops[key[0]].inputs:
    key = graph.ops[key[0]].inputs[0]
  return key


def only_shapes_differ(
  tf1: OpGraph, tf2: OpGraph, pair: RegionPair, matched: Sequence[tuple[int, int]]
) -> bool:
  """Returns whether the operations without a partner leave all elements in their order."""
  ones, others = ({both[side] for both in matched} for side in (0, 1))
  types = {
    *(tf1.ops[n].op_type for n in pair.tf1.inner if n not in ones),
    *(tf2.ops[n].op_type for n in pair.tf2.inner if n not in others),
  }
  return types <= _ONLY_SHAPE


def tensor_text(graph: OpGraph, key: TensorKey) -> str:
  """Returns what a tensor is called in reports."""
  op = graph.ops[key[0]]
  if op.op_type == 'input':
    return f'the input {op.name}'.rstrip()
  if op.op_type == 'variable':
    return f'variable {op.name}'
  number = f', output {key[1]}' if len(op.tensors) > 1 else ''
  return f'{op.name}{number}'
