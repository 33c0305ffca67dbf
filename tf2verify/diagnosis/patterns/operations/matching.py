"""Which unpaired operations of two regions go together by their types."""

import difflib
from collections.abc import Sequence

from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.patterns.operations.op_text import SHAPING
from tf2verify.diagnosis.patterns.operations.windows import PADS, WINDOWED
from tf2verify.records.op_graph import OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import kind

# Pairs of pairs of operations of which the order is looked at.
_MOST_LOOKED_AT = 400


def matched_by_type(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> list[tuple[int, int]]:
  """Returns the partners at the end, last, and before them what goes together by type.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    pair: the regions.
  """
  matcher = difflib.SequenceMatcher(
    None,
    [kind(tf1.ops[n]) for n in pair.tf1.inner],
    [kind(tf2.ops[n]) for n in pair.tf2.inner],
    autojunk=False,
  )
  found = [
    (pair.tf1.inner[block.a + n], pair.tf2.inner[block.b + n])
    for block in matcher.get_matching_blocks()
    for n in range(block.size)
  ]
  return [*found, (pair.tf1.end, pair.tf2.end)]


def passed_by(
  tf1: OpGraph,
  tf2: OpGraph,
  matched: Sequence[tuple[int, int]],
  unmatched: tuple[Sequence[int], Sequence[int]],
) -> list[tuple[int, int]]:
  """Returns what goes together and stands before an operation on one side, after it on the other.

  A mean of maxima is another number than the maximum of a mean.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    matched: as `matched_by_type` returns them.
    unmatched: positions of operations of either side that are not.
  """
  graphs = tf1, tf2
  moved = [
    (n, m)
    for n in unmatched[0]
    for m in unmatched[1]
    if kind(tf1.ops[n]) == kind(tf2.ops[m]) and tf1.ops[n].op_type not in SHAPING
  ]
  if not moved or len(moved) * len(matched) > _MOST_LOOKED_AT:
    return []
  before = [
    {n: g.ancestors([n]) for n in (*(p[side] for p in matched), *(p[side] for p in moved))}
    for side, g in enumerate(graphs)
  ]
  found = []
  for one, other in matched[:-1]:
    orders = [
      (n in before[0][one], one in before[0][n], m in before[1][other], other in before[1][m])
      for n, m in moved
    ]
    is_moved = any((a and d) or (b and c) for a, b, c, d in orders)
    if is_moved and tf1.ops[one].op_type not in SHAPING:
      found.append((one, other))
  return found


def starts_elsewhere(
  tf1: OpGraph, tf2: OpGraph, pair: RegionPair, matched: Sequence[tuple[int, int]]
) -> bool:
  """Returns whether one of two alike reads what enters, and the other what is made of that.

  An epsilon is added to the variance, and to the root of it.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    pair: the regions.
    matched: as `matched_by_type` returns them.
  """
  inner = set(pair.tf1.inner), set(pair.tf2.inner)
  known = dict(matched)
  for one, other in matched[:-1]:
    made = [n for n, _ in tf1.ops[one].inputs if n in inner[0]]
    other_made = [m for m, _ in tf2.ops[other].inputs if m in inner[1]]
    paired = any(known.get(n) in other_made for n in made)
    if bool(made) != bool(other_made) and not paired:
      return True
  return False


def both_start(tf1: OpGraph, tf2: OpGraph, pair: RegionPair, one: int, other: int) -> bool:
  """Returns whether two windows read one tensor that enters, padded or not.

  They are counterparts, however long what follows is.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    pair: the regions.
    one: an operation of tf1.
    other: the one of the port that has its type.
  """
  if not tf1.ops[one].op_type.startswith(WINDOWED):
    return False
  return (_padded(tf1, one), _padded(tf2, other)) in pair.entering


def _padded(graph: OpGraph, position: int) -> TensorKey:
  """Returns what an operation reads first, or what is padded to that."""
  key = graph.ops[position].inputs[0]
  while graph.ops[key[0]].op_type in PADS:
    key = graph.ops[key[0]].inputs[0]
  return key
