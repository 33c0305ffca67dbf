"""What two regions are computed from, where their operations differ as well."""

from collections.abc import Sequence

from tf2verify.diagnosis.divergence.regions import RegionPair
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpGraph, TensorKey

# Operations that leave the elements in their order, and all but always their values.
_ONLY_SHAPE = frozenset({'Reshape', 'Squeeze', 'ExpandDims', 'Identity', 'Cast'})


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
  op, slot = next(
    (tf1.ops[n], slot)
    for n in (*pair.tf1.inner, pair.tf1.end)
    for slot, key in enumerate(tf1.ops[n].inputs)
    if key == ones[0]
  )
  return [
    GraphDifference(
      GraphAspect.WIRING,
      op.name,
      op.op_type,
      op.input_names[slot] if op.input_names else f'input {slot}',
      tensor_text(tf1, ones[0]),
      tensor_text(tf2, others[0]),
      tf1.ops[ones[0][0]].op_type,
      tf2.ops[others[0][0]].op_type,
    )
  ]


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
