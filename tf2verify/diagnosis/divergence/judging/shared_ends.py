"""What several sources have in common: one tensor without a partner that all of them read."""

import dataclasses
from collections.abc import Sequence

from tf2verify.diagnosis.divergence.tensors.regions import Region, RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource
from tf2verify.records.op_graph import OpGraph


@dataclasses.dataclass(frozen=True)
class SharedEnd:
  """An unpaired operation of each side through which all that sources share leads to them."""

  tf1: int  # the operation's position
  tf2: int
  ends: frozenset[int]  # positions of the tf1 operations that are the sources


def shared_end(tf1: OpGraph, tf2: OpGraph, sources: Sequence[FoundSource]) -> SharedEnd | None:
  """Returns what may be one quantity of both sides, of which several sources are the readers.

  Args:
    tf1: the tf1 side's graph.
    tf2: the port's.
    sources: in order of execution.
  """
  regions = [source.regions for source in sources if not source.agreement.is_rounding]
  for first in regions:
    group = [one for one in regions if _shares(one, first)]
    if len(group) < 2:
      continue
    ends = _exits(tf1, [one.tf1 for one in group])
    partners = _exits(tf2, [one.tf2 for one in group])
    if len(ends) == len(partners) == 1 and _alike(tf1, ends[0], tf2, partners[0]):
      return SharedEnd(ends[0], partners[0], frozenset(one.tf1.end for one in group))
  return None


def _shares(one: RegionPair, other: RegionPair) -> bool:
  ones = set(one.tf1.inner) & set(other.tf1.inner)
  return bool(ones and set(one.tf2.inner) & set(other.tf2.inner))


def _exits(graph: OpGraph, regions: Sequence[Region]) -> list[int]:
  """Returns, of what all regions have in common, the operations that the rest of them reads."""
  common = frozenset.intersection(*(frozenset(one.inner) for one in regions))
  rest = {n for one in regions for n in (*one.inner, one.end)} - common
  return sorted({producer for n in rest for producer, _ in graph.ops[n].inputs} & common)


def _alike(tf1: OpGraph, one: int, tf2: OpGraph, other: int) -> bool:
  """Returns whether both yield one tensor of the same dtype."""
  outputs, others = tf1.ops[one].outputs, tf2.ops[other].outputs
  return len(outputs) == len(others) == 1 and outputs[0][0] == others[0][0]
