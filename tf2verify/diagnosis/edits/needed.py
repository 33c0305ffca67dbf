"""Which of several edits are needed: those without which the stage does not pass."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

from tf2verify.diagnosis.edits.mistakes import STEPS, Mistake
from tf2verify.diagnosis.places.bench import Judged

# Why a search for edits ends before the stage passes.
AT_ITS_LIMIT = (
  'the search for causes ended at its time limit (the time of the stages before it, or 10 s): '
  'correct what is named here and run again to see what is left'
)
IN_VAIN = 'none of the corrections tried in the port makes the whole stage pass'
# As far apart as before, but for rounding.
NEARER = 0.99
# Independent mistakes may make up for each other in part.
_MUCH_FURTHER = 1.5
# Pairs of edits that are looked at: those of four mistakes.
_MOST_PAIRS = 6
# In which the few are looked for that are enough: singles, and pairs, of eight.
_MOST_RUNS = 15
# In which the parts of one mistake are looked for that are enough.
_MOST_RUNS_OF_PARTS = 24
# Rounds of edits one after the other that may bring the sides no nearer.
_MOST_IN_VAIN = len(STEPS)
_One = TypeVar('_One')


class Progress:
  """Tells when rounds of edits bring the steps of both sides no nearer.

  At a place the edits go from the least to the surest, one a round: each of them may be in vain.
  Of a forward pass the outputs alone are compared, which several mistakes hide until the last one
  is mended; of steps all that they change.
  """

  def __init__(self, before: Judged) -> None:
    """Takes what the stage says of the port as it is."""
    self._nearest = before.distance
    self._in_vain = 0

  def is_over(self, judged: Judged) -> bool:
    """Takes what it says after a round; returns whether further ones are hopeless."""
    is_nearer = judged.distance <= NEARER * self._nearest
    self._in_vain = 0 if is_nearer else self._in_vain + 1
    self._nearest = min(self._nearest, judged.distance)
    return self._in_vain == _MOST_IN_VAIN


def fewest(ones: Sequence[_One], passes: Callable[[list[_One]], bool]) -> list[_One]:
  """Returns the fewest of some edits with which a stage passes, the first rather.

  They are divided: what it takes of the second half, given the first, and the reverse.

  Args:
    ones: edits with all of which it passes.
    passes: returns whether it passes with some of them.
  """

  def least(known: list[_One], left: list[_One], is_new: bool) -> list[_One]:
    if is_new and passes(known):
      return []
    if len(left) == 1:
      return left
    half = len(left) // 2
    first, second = left[:half], left[half:]
    of_second = least([*known, *first], second, True)
    return [*least([*known, *of_second], first, bool(of_second)), *of_second]

  return least([], list(ones), False) if len(ones) > 1 else list(ones)


def without_needless(needed: list[_One], passes: Callable[[list[_One]], bool]) -> list[_One]:
  """Returns edits without what is not needed: two of them may undo each other.

  Args:
    needed: edits with all of which a stage passes.
    passes: returns whether it passes with some of them.
  """
  for one in list(needed):
    rest = [known for known in needed if known is not one]
    needed = rest if rest and passes(rest) else needed
  return needed


class Needed:
  """Takes away edits that the stage passes without."""

  def __init__(
    self, judged: Callable[[Sequence[Mistake]], Judged | None], is_over: Callable[[], bool]
  ) -> None:
    """Prepares.

    Args:
      judged: returns what the stage says of some edits; None where they make no graph.
      is_over: returns whether the time for experiments is used up.
    """
    self._judged = judged
    self._is_over = is_over

  def enough(self, mistakes: Sequence[Mistake], judged: Judged) -> list[Mistake]:
    """Returns the few mistakes with which alone the stage passes; all of them where none do.

    Edits that are right only together, as sums in another order, leave nothing to take away one by
    one beside the mistake.
    """
    few: list[Mistake] = []
    runs = 0
    while judged.passes and len(few) < len(mistakes) - 1:
      rest = [one for one in mistakes if not any(one is known for known in few)]
      runs += len(rest)
      if runs > _MOST_RUNS or self._is_over():
        break
      tried = [(self._judged([*few, one]), one) for one in rest]
      known = [(found, one) for found, one in tried if found is not None]
      if not known:
        break
      best, one = min(known, key=lambda found: (not found[0].passes, found[0].distance))
      few.append(one)
      if best.passes:
        return [known for known in mistakes if any(known is one for one in few)]
    return list(mistakes)

  def of_parts(self, kept: list[Mistake], judged: Judged) -> tuple[list[Mistake], Judged]:
    """Returns mistakes without the kinds of parts that the stage passes without.

    What one line computes is one mistake, an optimizer's whole update among it. Of that, what only
    reads the wrong tensor may be paired wrongly and be edited too: it is no place of the mistake.
    """
    for number, one in enumerate(kept):
      others = [known for known in kept if known is not one]
      few = self._few_kinds(_kinds_of(one), others) if judged.passes else None
      found = self._judged([*others, few]) if few is not None else None
      if few is not None and found is not None and found.passes:
        kept, judged = [*kept[:number], few, *kept[number + 1 :]], found
    return kept, judged

  def _few_kinds(self, kinds: Sequence[Mistake], others: Sequence[Mistake]) -> Mistake | None:
    """Returns the first few kinds that are enough beside other mistakes; None if all are needed."""
    runs = itertools.count()

    def passes(some: Sequence[Mistake]) -> bool:
      if next(runs) >= _MOST_RUNS_OF_PARTS or self._is_over():
        return False
      judged = self._judged([*others, *some])
      return judged is not None and judged.passes

    few = fewest(kinds, passes)
    return functools.reduce(Mistake.joined, few) if len(few) < len(kinds) else None

  def without_mates(
    self, before: Judged, kept: list[Mistake], judged: Judged
  ) -> tuple[list[Mistake], Judged]:
    """Returns mistakes without edits that undo each other; those that belong together as one.

    A factor may stand at another place in the port, or a formula be written differently: one edit
    of two leaves the sides further apart than none.
    """
    if len(kept) == 1:
      return kept, judged
    if not judged.passes:
      harmful = [one for one in kept if _is_further(self._judged([one]), before)]
      if not harmful:
        return kept, judged
      sure = [one for one in kept if one not in harmful]
      left = self._judged(sure) if sure else None
      return ([], before) if left is None else (sure, left)
    for one, other in itertools.islice(itertools.combinations(kept, 2), _MOST_PAIRS):
      others = [known for known in kept if known is not one and known is not other]
      neither = self._judged(others) if others else before
      if neither is not None and neither.passes:
        return self.without_mates(before, others, neither)
      singles = [self._judged([*others, single]) for single in (one, other)]
      if neither is not None and all(_is_further(single, neither) for single in singles):
        joined = [one.joined(other) if m is one else m for m in kept if m is not other]
        return self.without_mates(before, joined, judged)
    return kept, judged


def _kinds_of(one: Mistake) -> list[Mistake]:
  """Returns the parts of a mistake, those of one kind as one, in the order of tf1's execution.

  An optimizer has the same operations for each variable, with names of their own.
  """
  kinds: dict[tuple[object, ...], Mistake] = {}
  for part in sorted(one.parts, key=_position):
    known = part.first
    lines = (None if line is None else line.at for line in (known.tf1_source, known.tf2_source))
    kind = (part.edit, known.tf1_type, known.tf1_path, *lines)
    kinds[kind] = kinds[kind].joined(part) if kind in kinds else part
  return list(kinds.values())


def _position(part: Mistake) -> int:
  return part.places[0].source.regions.tf1.end


def _is_further(one: Judged | None, other: Judged) -> bool:
  """Returns whether the sides are much further apart; not where that is not known."""
  if one is None or one.distance < NEARER * other.distance:
    return False
  # In the distance no tensor counts for more than 1.
  is_apart = one.apart > _MUCH_FURTHER * other.apart
  return is_apart or one.distance > _MUCH_FURTHER * other.distance
