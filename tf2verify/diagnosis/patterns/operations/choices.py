"""What two operations choose between, where a mask tells them which."""

from collections.abc import Sequence

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.patterns.numbers.known_values import same_everywhere
from tf2verify.diagnosis.patterns.operations.reads import tensor_text
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing, family

_CHOICE = 'SelectV2'


def chosen_from_elsewhere(pairing: Pairing, pair: RegionPair) -> list[GraphDifference]:
  """Returns which value of the port stands where tf1 chooses another one.

  The mask may be written the other way round, and in another shape: with other values that says
  nothing. Where the values are the same ones, or their counterparts are not known, nothing is
  returned.

  Args:
    pairing: of the graphs.
    pair: regions that end at such operations on both sides.
  """
  tf1, tf2 = pairing.tf1, pairing.tf2
  op, other = tf1.ops[pair.tf1.end], tf2.ops[pair.tf2.end]
  if not family(op.op_type) == family(other.op_type) == _CHOICE:
    return []
  known = dict(pair.entering)
  missing: list[TensorKey] = []
  extra = list(other.inputs[1:])
  for key in op.inputs[1:]:
    number = same_everywhere(tf1, key[0])
    if number is not None:
      found = next((one for one in extra if same_everywhere(tf2, one[0]) == number), None)
    else:
      partner = pairing.tf2_of[key[0]]
      counterpart = known.get(key) or (None if partner is None else (partner, key[1]))
      if counterpart is None:
        return []
      found = counterpart if counterpart in extra else None
    if found is None:
      missing.append(key)
    else:
      extra.remove(found)
  if any(same_everywhere(tf1, one[0]) is not None for one in missing) and any(
    same_everywhere(tf2, two[0]) is not None for two in extra
  ):
    return []  # two numbers: that they differ is said as of any constant
  return [
    GraphDifference(
      GraphAspect.WIRING,
      op.name,
      op.op_type,
      'a value',
      _text(tf1, one),
      _text(tf2, two),
      tf1.ops[one[0]].op_type,
      tf2.ops[two[0]].op_type,
    )
    for one, two in zip(missing, _in_the_order_of(tf1, missing, tf2, extra), strict=True)
  ]


def _text(graph: OpGraph, key: TensorKey) -> str:
  number = same_everywhere(graph, key[0])
  return tensor_text(graph, key) if number is None else f'the number {number:g}'


def _in_the_order_of(
  graph: OpGraph, wanted: Sequence[TensorKey], others: OpGraph, found: Sequence[TensorKey]
) -> list[TensorKey]:
  """Returns tensors in the order of others, as far as the types of what yields them tell."""
  left, ordered = list(found), list[TensorKey]()
  for key in wanted:
    kind = family(graph.ops[key[0]].op_type)
    alike = (one for one in left if family(others.ops[one[0]].op_type) == kind)
    ordered.append(next(alike, left[0]))
    left.remove(ordered[-1])
  return ordered
