"""What two operations choose between, where a mask tells them which."""

from collections.abc import Callable, Sequence

from tf2verify.diagnosis.divergence.regions import RegionPair
from tf2verify.diagnosis.patterns.reads import tensor_text
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.relation.op_pairs import Pairing, family

_CHOICE = 'SelectV2'


def chosen_from_elsewhere(
  pairing: Pairing, pair: RegionPair, is_constant: Callable[[OpGraph, TensorKey], bool]
) -> list[GraphDifference]:
  """Returns which value of the port stands where tf1 chooses another one.

  The mask may be written the other way round, and in another shape: with other values that says
  nothing. Where the values are the same ones, or their counterparts are not known, nothing is
  returned.

  Args:
    pairing: of the graphs.
    pair: regions that end at such operations on both sides.
    is_constant: returns whether a tensor of a graph is a constant.
  """
  tf1, tf2 = pairing.tf1, pairing.tf2
  op, other = tf1.ops[pair.tf1.end], tf2.ops[pair.tf2.end]
  if not family(op.op_type) == family(other.op_type) == _CHOICE:
    return []
  known = dict(pair.entering)
  expected: dict[TensorKey, TensorKey] = {}
  for key in op.inputs[1:]:
    if not is_constant(tf1, key):
      partner = pairing.tf2_of[key[0]]
      counterpart = known.get(key) or (None if partner is None else (partner, key[1]))
      if counterpart is None:
        return []
      expected[counterpart] = key
  have = [key for key in other.inputs[1:] if not is_constant(tf2, key)]
  missing = [key for counterpart, key in expected.items() if counterpart not in have]
  extra = [key for key in have if key not in expected]
  if not missing or len(missing) != len(extra):
    return []
  return [
    GraphDifference(
      GraphAspect.WIRING,
      op.name,
      op.op_type,
      'a value',
      tensor_text(tf1, one),
      tensor_text(tf2, two),
      tf1.ops[one[0]].op_type,
      tf2.ops[two[0]].op_type,
    )
    for one, two in zip(missing, _in_the_order_of(tf1, missing, tf2, extra), strict=True)
  ]


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
