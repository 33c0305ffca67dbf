"""Which sources have no effect on what fails.

A mask hides what an RNN yields past the end of a sequence, or what is added to a masked logit; a
factor of zero hides anything. There the sides may differ, and what fails comes from elsewhere: it
is the same with TF1's value in the port, and with the port's in TF1.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.divergence.effects.all_rounds import AllRounds
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.numerics.agreement import ROUNDING_EPSILONS, agreement
from tf2verify.records.op_graph import TARGET
from tf2verify.reference.arrays import widened
from tf2verify.sides.graphs.edits.repairs import GivenValue

# What fails may change by this share of its difference: by rounding. A small mistake beside a large
# one changes it by more.
_SHARE = 1e-5
# Elements that differ by this share of their own size differ by more than rounding.
_ELEMENT = 1e-4
_MOST_TRIED = 16
# So many sources with an effect are enough: what is shown first is one of them.
_ENOUGH = 3


@dataclasses.dataclass(frozen=True, eq=False)
class WithoutEffect:
  """A source without an effect on what fails."""

  source: FoundSource
  # What TF1 has there, by the names of the port's tensors; empty if all it leads to agrees anyway.
  given: Mapping[str, np.ndarray]


def sources_without_effect(
  divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun
) -> list[WithoutEffect]:
  """Returns the sources that explain nothing of what fails, of the first in order of execution.

  Args:
    divergence: the search.
    tf1: the tf1 side's run.
    tf2: the tf2 side's.
  """
  sources = [one for one in divergence.sources() if not one.agreement.is_rounding]
  if not sources:
    return []
  trial = _Exchange(divergence, tf1, tf2)
  found: list[WithoutEffect] = []
  with_effect = 0
  for source in sources[:_MOST_TRIED] if trial.fails else ():
    given = {} if divergence.has_faded(source) else trial.without_effect(source)
    if given is not None:
      found.append(WithoutEffect(source, given))
      continue
    with_effect += 1
    if with_effect == _ENOUGH:
      break
  return found


class _Exchange:
  """Exchanges the values of both sides at a source, and looks at what fails.

  Attributes:
    fails: whether anything does.
  """

  def __init__(self, divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun) -> None:
    self._divergence = divergence
    self._sides = tf1, tf2
    self._everywhere = AllRounds(divergence.pairing)
    ops, others = tf1.op_graph.ops, tf2.op_graph.ops
    ends = [(n, m) for n, m in divergence.ends if ops[n].tensors and others[m].tensors]
    ends = [(n, m) for n, m in ends if not is_opaque(ops[n].outputs[0][0])]
    self._tensors = [ops[n].tensors[0] for n, _ in ends], [others[m].tensors[0] for _, m in ends]
    self._values = tf1.fetch(self._tensors[0]), tf2.fetch(self._tensors[1])
    alike = [ops[n].attribute('op') == others[m].attribute('op') for n, m in ends]
    apart = [agreement(one, other) for one, other in zip(*self._values, strict=True)]
    self.fails = not all(one.is_rounding for one in apart)
    self._allowed = [
      _SHARE * one.absolute if is_alike and np.isfinite(one.absolute) else 0.0
      for is_alike, one in zip(alike, apart, strict=True)
    ]

  def without_effect(self, source: FoundSource) -> Mapping[str, np.ndarray] | None:
    """Returns TF1's values at a source, by the port's tensors; None if it has an effect."""
    op = self._sides[0].op_graph.ops[source.regions.tf1.end]
    # One that was run alone has other inputs in the port: its value says more than it does.
    if source.alone or source.output is None or op.op_type == TARGET:
      return None
    exchanged = self._exchanged(source)
    if exchanged is None:
      return None
    for side in (1, 0):
      found = self._sides[side].refetched(self._tensors[side], exchanged[side])
      if found is None or not self._is_unchanged(self._values[side], found):
        return None
    return exchanged[1]

  def _is_unchanged(self, before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> bool:
    changes = (agreement(one, other) for one, other in zip(before, after, strict=True))
    return all(
      change.identical or change.absolute <= allowed
      for change, allowed in zip(changes, self._allowed, strict=True)
    )

  def _exchanged(
    self, source: FoundSource
  ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None:
    """Returns what each side is given of the other's values, where these differ.

    Their rounding stays their own, which has an effect as well.
    """
    ours, theirs = (run.op_graph.ops for run in self._sides)
    end, partner = source.regions.tf1.end, source.regions.tf2.end
    op, other = ours[end], theirs[partner]
    known = [k for n, k in self._divergence.agreements if n == end and k < len(other.tensors)]
    given: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = {}, {}
    for number in known:
      layout = self._divergence.layouts.get((end, number))
      one = GivenValue(op.tensors[number], other.tensors[number])
      pairs = self._everywhere.values(one, op.name, other.name)
      values = self._sides[0].fetch([pair.tf1 for pair in pairs])
      held = self._sides[1].fetch([pair.tf2 for pair in pairs])
      for pair, tf1, tf2 in zip(pairs, values, held, strict=True):
        as_tf1 = tf2 if layout is None else layout.to_tf1(tf2)
        if as_tf1.shape != tf1.shape or as_tf1.dtype != tf1.dtype:
          return None
        differs = _differs(tf1, as_tf1)
        given[0][pair.tf1] = np.where(differs, as_tf1, tf1)
        mended = np.where(differs, tf1, as_tf1)
        given[1][pair.tf2] = mended if layout is None else layout.to_tf2(mended)
    return given if given[0] else None


def _differs(tf1: np.ndarray, tf2: np.ndarray) -> np.ndarray:
  """Returns where two arrays differ by more than rounding."""
  if tf1.dtype.kind not in 'fcV':
    return np.asarray(tf1 != tf2)
  one, other = widened(tf1), widened(tf2)
  found = agreement(tf1, tf2)
  same = (one == other) | (np.isnan(one) & np.isnan(other))
  with np.errstate(all='ignore'):
    apart = np.abs(one - other)
    least = np.minimum(
      ROUNDING_EPSILONS * found.epsilon * found.scale,
      _ELEMENT * np.maximum(np.abs(one), np.abs(other)),
    )
    is_small = np.isfinite(apart) & (apart <= least)
  return np.asarray(~same & ~is_small)
