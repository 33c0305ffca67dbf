"""Mistakes that the gradient alone shows, found by experiment.

The forward passes agree, so no value tells where. All places at which they are written differently
are made tf1's, the gradients are formed anew, and then as few of them as the stage passes with.
"""

import dataclasses
import functools
from collections.abc import Sequence

from tf2verify.diagnosis.edits.mistakes import Found, Mistake, lines_of
from tf2verify.diagnosis.edits.needed import NEARER, fewest, without_needless
from tf2verify.diagnosis.gradients.places import GradientPlace, Suspicion, gradient_places
from tf2verify.diagnosis.gradients.stops import GradientStops
from tf2verify.diagnosis.gradients.texts import gradient_text, stops_text
from tf2verify.diagnosis.places.bench import Bench, Judged, Left
from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.sides.graphs.edits.wiring import CannotRepair

# Of the places that do not make the stage pass all at once, so many are tried one by one.
_MOST_ALONE = 32
_GRADIENT = 'gradient'


class _NoTime(Exception):
  """The time for experiments is used up."""


class GradientRepairing:
  """Edits the port's forward pass until its gradients are those of tf1."""

  def __init__(self, bench: Bench) -> None:
    """Takes the run of the stage."""
    self._bench = bench

  def found(self) -> Found:
    """Returns the mistakes; none where the stage does not pass with edits."""
    before = self._bench.judged([])
    failing = {name for quantity, name, _ in before.left if quantity == _GRADIENT}
    places = gradient_places(self._bench.looked_at([], before.left), failing)
    try:
      needed = self._needed(places, before)
    except _NoTime:
      return Found()
    mistakes = _in_order(needed)
    if len(mistakes) != 1 or mistakes[0].edit is not Edit.SETTING:
      # Where no pair is near a stop, no edit of a pair is possible, or others make up for it.
      stops = GradientStops(self._bench).mistakes()
      mistakes = stops if stops and len(stops) <= (len(mistakes) or len(stops)) else mistakes
    return self._proven(mistakes, before.left)

  def _needed(self, places: Sequence[GradientPlace], before: Judged) -> list[GradientPlace]:
    """Returns as few places as the stage passes with; none where it passes with none."""
    wanted: list[GradientPlace] = []
    for suspicion in Suspicion:
      more = [one for one in places if one.suspicion is suspicion]
      if not more:
        continue
      # What stops a gradient at a place that is replaced as a whole is in that already.
      replaced = {_end(one) for one in more}
      wanted = [one for one in wanted if not one.repair.inputs or _end(one) not in replaced]
      passing = self._passing([*wanted, *more], before)
      if passing:
        needed = without_needless(fewest(passing, self._passes), self._passes)
        needed = without_needless(self._smaller(needed, places), self._passes)
        return [*needed, *_same_edits(needed, places)] if self._passes(needed) else []
      wanted += more
    return []

  def _smaller(
    self, needed: list[GradientPlace], places: Sequence[GradientPlace]
  ) -> list[GradientPlace]:
    """Returns the same with the least edit of each place with which the stage still passes."""
    for one in [known for known in needed if known.suspicion is Suspicion.REGION]:
      for other in places:
        if other.suspicion is Suspicion.PATH and _end(other) == _end(one):
          instead = [other if known is one else known for known in needed]
          needed = instead if self._passes(instead) else needed
    return needed

  def _passing(self, places: Sequence[GradientPlace], before: Judged) -> list[GradientPlace]:
    """Returns those of some places with which the stage passes: all, or what mends by itself."""
    if self._passes(places):
      return list(places)
    kept: list[GradientPlace] = []
    distance = before.distance
    for one in places[:_MOST_ALONE]:
      judged = self._judged([*kept, one])
      if judged is not None and (judged.passes or judged.distance <= NEARER * distance):
        kept.append(one)
        distance = judged.distance
        if judged.passes:
          return kept
    return []

  def _proven(self, mistakes: Sequence[Mistake], before: Left) -> Found:
    """Returns mistakes that are all needed; none where one is not."""
    if not mistakes or not before:
      return Found()
    try:
      judged = self._bench.judged([one.repair for one in mistakes])
    except CannotRepair:
      return Found()
    if not judged.passes:
      return Found()
    for one in mistakes:
      others = [known.repair for known in mistakes if known is not one]
      try:
        if self._bench.judged(others).passes:
          return Found()
      except CannotRepair:
        pass
    found = []
    for number, one in enumerate(mistakes, 1):
      counts = number, len(mistakes), judged.apart, judged.tensors
      experiment = Experiment(one.edit, _text(one), Outcome.PROVEN, *counts)
      found.append(dataclasses.replace(one, experiment=experiment))
    return Found(tuple(found), True)

  def _passes(self, places: Sequence[GradientPlace]) -> bool:
    judged = self._judged(places)
    return judged is not None and judged.passes

  def _judged(self, places: Sequence[GradientPlace]) -> Judged | None:
    if self._bench.is_over():
      raise _NoTime
    try:
      return self._bench.judged([mistake.repair for mistake in _in_order(places)])
    except CannotRepair:
      return None


def _end(place: GradientPlace) -> int:
  return place.place.source.regions.tf1.end


def _are_one(one: Mistake, other: Mistake) -> bool:
  """Returns whether both are of one line of the port's text, or of one operation."""
  return one.shares(other) or bool(lines_of(one.places) & lines_of(other.places))


def _text(mistake: Mistake) -> str:
  return stops_text(mistake.sources) if mistake.is_large else gradient_text(mistake.sources)


def _same_edits(
  needed: Sequence[GradientPlace], places: Sequence[GradientPlace]
) -> list[GradientPlace]:
  """Returns further places that an edit mends as well: one stop, what reads it being several."""
  known = {name for one in needed for name in one.repair.passing}
  return [
    one
    for one in places
    if one.repair.passing
    and known >= set(one.repair.passing)
    and not one.repair.inputs
    and all(one is not other for other in needed)
  ]


def _in_order(places: Sequence[GradientPlace]) -> list[Mistake]:
  """Returns the edits of places in the order of execution, those of one mistake as one."""
  mistakes: list[Mistake] = []
  for one in sorted(places, key=_end):
    is_setting = one.suspicion is Suspicion.PATH or bool(one.repair.changes)
    mistake = Mistake((one.place,), Edit.SETTING if is_setting else Edit.OPERATIONS, one.repair)
    alike = [known for known in mistakes if _are_one(known, mistake)]
    if not alike:
      mistakes.append(mistake)
      continue
    first = mistakes.index(alike[0])
    joined = functools.reduce(Mistake.joined, (*alike, mistake))
    mistakes = [known for known in mistakes if all(known is not other for other in alike)]
    mistakes.insert(first, joined)
  return mistakes
