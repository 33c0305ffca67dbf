"""Which unpaired operations of two regions go together by their types."""

import difflib
from collections.abc import Sequence

from tf2verify.diagnosis.divergence.regions import RegionPair
from tf2verify.records.op_graph import OpGraph
from tf2verify.relation.op_pairs import family


def matched_by_type(tf1: OpGraph, tf2: OpGraph, pair: RegionPair) -> list[tuple[int, int]]:
  """Returns the partners at the end, last, and before them what goes together by type.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    pair: the regions.
  """
  matcher = difflib.SequenceMatcher(
    None,
    [family(tf1.ops[n].op_type) for n in pair.tf1.inner],
    [family(tf2.ops[n].op_type) for n in pair.tf2.inner],
    autojunk=False,
  )
  found = [
    (pair.tf1.inner[block.a + n], pair.tf2.inner[block.b + n])
    for block in matcher.get_matching_blocks()
    for n in range(block.size)
  ]
  return [*found, (pair.tf1.end, pair.tf2.end)]


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
