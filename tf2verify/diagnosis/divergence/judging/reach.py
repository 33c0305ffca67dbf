"""Whether a difference gets anywhere: what reads it may still agree."""

import math
from collections.abc import Mapping, Set

from tf2verify.numerics.agreement import Agreement
from tf2verify.records.op_graph import OpGraph, TensorKey

# A difference that is rounding, and this share of what it was, is gone.
_FADED = 1e-3
# What roundings of many operations may add up to at the end, in machine epsilons.
_LATE_ROUNDING_EPSILONS = 256


class Reach:
  """How far differences get in the tf1 graph."""

  def __init__(
    self, graph: OpGraph, behind: Set[int], agreements: Mapping[TensorKey, Agreement]
  ) -> None:
    """Looks at one search.

    Args:
      graph: the tf1 side's graph.
      behind: positions of the operations behind what differs.
      agreements: of the outputs compared.
    """
    self._ops = graph.ops
    self._consumers = graph.consumers()
    self._behind = behind
    self._agreements = agreements

  def has_faded(self, source: int, before: Agreement) -> bool:
    """Returns whether a difference is gone, up to rounding, on every way to what is compared.

    A factor of the port may stand at another place, say: what is between the two places differs,
    and what comes after both agrees. Only what has a partner is compared.

    Args:
      source: its position.
      before: the agreement of its outputs.
    """
    pending, seen = [source], {source}
    while pending:
      readers = {reader for reader, _ in self._consumers[pending.pop()]} & self._behind
      if not readers:
        return False  # the source is an end, or leads to one that was not compared
      for reader in readers - seen:
        seen.add(reader)
        read = {self._ops[n].inputs[slot][1] for n, slot in self._consumers[reader]} or {0}
        found = [self._agreements[reader, n] for n in read if (reader, n) in self._agreements]
        if len(found) < len(read) or not all(_has_faded(one, before) for one in found):
          pending.append(reader)
    return True


def is_gone(found: Agreement, apart: float) -> bool:
  """Returns whether nothing but rounding is left of a difference.

  Args:
    found: what is left.
    apart: the greatest difference before; infinite where none is known.
  """
  if found.identical or math.isinf(apart):
    return found.is_rounding
  is_small = found.relative <= _LATE_ROUNDING_EPSILONS * found.epsilon
  return is_small and found.absolute <= _FADED * apart


def _has_faded(found: Agreement, before: Agreement) -> bool:
  return found.is_rounding and (found.identical or found.absolute <= _FADED * before.absolute)
