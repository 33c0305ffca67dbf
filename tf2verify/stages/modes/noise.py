"""Which differences between execution modes rounding explains."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from tf2verify.numerics import restored_values
from tf2verify.numerics.noise import Kind
from tf2verify.records import execution_mode as words
from tf2verify.records.execution_mode import ModeCall
from tf2verify.records.tensor_key import Run, TensorKey
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.modes.execution_modes import PortModes
from tf2verify.stages.comparison.noise import rounding
from tf2verify.stages.modes.comparison import Judged, Pair, tolerance_of
from tf2verify.stages.stage import CaseUnderTest

# The norm of what a mode that rounds differently may move of a gradient behind equal outputs, as a
# share of its own: a few of many activations are next to a kink.
_MOST_MOVED = 0.1

# A mode, and the number of the call.
Call = tuple[str, int]


def judged_by_noise(
  case: CaseUnderTest,
  port: PortModes,
  pairs: Sequence[Pair],
  unmoved: Sequence[ModeCall],
  rounding_calls: Collection[Call] = (),
) -> list[Judged]:
  """Judges differences by how far rounding moves the port in eager mode.

  One series of moved runs serves all modes. A mode that differs excuses nothing in its
  own call, but in those of others.

  Args:
    case: the case.
    port: is run again.
    pairs: what differs in one call, or in two calls from the same inputs.
    unmoved: runs of that call in eager mode, from the values as they are.
    rounding_calls: those whose outputs or losses differ from eager mode bit by bit.

  Returns:
    One for every pair that rounding may explain; none where the noise could not be
    measured.
  """
  kinked = _Kinks(frozenset(rounding_calls))
  groups = [_suspects(case, group) for group in kinked.groups(pairs)]
  wanted = wanted_of([pair for group in groups for pair, _ in group])
  left = iter(unmoved)

  def rerun(perturber: Perturber | None, _: frozenset[TensorKey]) -> Run:
    call = next(left, None) if perturber is None else None
    if call is None:
      training, number = pairs[0].training, pairs[0].number
      (call,) = port.again(training, number, perturber=perturber, wanted=wanted)
    return call.values()

  suspects = [[s for _, s in group] for group in groups]
  found = rounding.sort_out_together(suspects, rerun)
  if port.narrow_bits and any(map(_differs, found)):
    coarse = rounding.sort_out_together(suspects, rerun, port.narrow_bits)
    both = zip(found, coarse, strict=True)
    found = tuple(one if _differs(other) or not other.judged else other for one, other in both)
  return _judged(pairs, groups, found, kinked)


def _differs(found: rounding.Sorted) -> bool:
  return any(noise.kind is Kind.DIFFERENT for _, noise in found.judged)


def wanted_of(pairs: Sequence[Pair]) -> words.Wanted:
  """Returns what is to be asked for to judge the pairs."""
  return frozenset(pair.key for pair in pairs)


def same_bits(pairs: Sequence[Pair], call: ModeCall) -> bool:
  """Returns whether a call in eager mode gave what the pairs have of it."""
  found = call.values()
  return all(
    one is other or (one is not None and other is not None and restored_values.same(one, other))
    for one, other in ((pair.eager.value, found.get(pair.key)) for pair in pairs)
  )


@dataclasses.dataclass(frozen=True)
class _Kinks:
  """Where a call has rounded differently than eager mode, and so may be on a kink's other side."""

  calls: frozenset[Call]

  def is_behind(self, pair: Pair) -> bool:
    """Returns whether a pair is computed from outputs that were rounded differently."""
    rounds = pair.mode == words.JIT or (pair.mode, pair.number) in self.calls
    return rounds and not is_forward(pair)

  def groups(self, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Returns the pairs call by call, what was computed forward before what is behind it."""
    groups: dict[tuple[str, int, bool], list[Pair]] = {}
    for pair in sorted(pairs, key=self.is_behind):
      groups.setdefault((pair.mode, pair.number, self.is_behind(pair)), []).append(pair)
    return list(groups.values())


def is_forward(pair: Pair) -> bool:
  """Returns whether a pair is an output or a loss, which gradients and state come from."""
  return pair.column in ('outputs', 'losses')


def _nearly_the_same(pair: Pair) -> bool:
  """Returns whether only a small part of a tensor is another, as behind the kink of a relu."""
  one, other = pair.eager.value, pair.other.value
  if one is None or other is None or one.shape != other.shape:
    return False
  wide, moved = (value.reshape(-1).astype(np.float64) for value in (one, other))
  return bool(np.linalg.norm(moved - wide) <= _MOST_MOVED * np.linalg.norm(wide))


def _suspects(case: CaseUnderTest, pairs: Sequence[Pair]) -> list[tuple[Pair, rounding.Suspect]]:
  """Returns the pairs that rounding may explain."""
  found = []
  for pair in pairs:
    one, other = pair.eager.value, pair.other.value
    if pair.difference is None or one is None or other is None:
      continue
    if rounding.may_be_rounding(pair.difference, one):
      allowed = tolerance_of(case, pair.other.quantity).for_dtype(one.dtype)
      found.append((pair, rounding.Suspect(pair.difference, one, other, allowed)))
  return found


def _judged(
  pairs: Sequence[Pair],
  groups: Sequence[Sequence[tuple[Pair, rounding.Suspect]]],
  found: Sequence[rounding.Sorted],
  kinked: _Kinks,
) -> list[Judged]:
  """Returns the judgements; gradients and state depend on what is before them."""
  measured = [
    Judged(pair, noise)
    for group, item in zip(groups, found, strict=True)
    if item.judged
    for (pair, _), (_, noise) in zip(group, item.judged, strict=True)
  ]
  excused = {id(item.pair) for item in measured if item.kind is not Kind.DIFFERENT}
  parted = {
    (pair.mode, pair.number)
    for pair in pairs
    if not kinked.is_behind(pair) and id(pair) not in excused
  }
  return [
    dataclasses.replace(
      item,
      behind_equals=kinked.is_behind(item.pair)
      and (item.pair.mode, item.pair.number) not in parted
      and _nearly_the_same(item.pair),
    )
    for item in measured
  ]
