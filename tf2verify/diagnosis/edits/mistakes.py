"""Mistakes of a port: sources that one edit of its text may mend, with the edit of its graph."""

import dataclasses
import functools
from collections.abc import Callable, Sequence, Set

from tf2verify.diagnosis.edits.edit_texts import (
  READABLE,
  edit_text,
  lines_text,
  marks,
  number_text,
  numbers_of,
  repeats,
  steps_of,
  values_text,
  with_settings_text,
)
from tf2verify.diagnosis.evidence.failed_stage import Standing
from tf2verify.diagnosis.patterns.operations.op_text import only_shapes
from tf2verify.diagnosis.places.looking import Place
from tf2verify.records import rounds
from tf2verify.records.diagnosis import GraphAspect, Source
from tf2verify.records.experiment import Edit, Experiment
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import OF_TF1

_THEN = ' → '
# Of more operations than these at a place, it is not said which ones are a mistake.
_LARGE = 12
# But if one side has hardly any there, the other ones are missing or extra.
_FEW = 3
# From the least to the surest; the one before the last takes all operations that lead to a place.
STEPS = (Edit.SETTING, Edit.OPERATIONS, Edit.OPERATIONS, Edit.VALUE)


def _is_large(source: Source) -> bool:
  less, more = sorted((len(source.tf1_path), len(source.tf2_path)))
  return less > _FEW and more > _LARGE


@dataclasses.dataclass(frozen=True, eq=False)
class Mistake:
  """Sources that one edit of the port's text may mend, with the edit of its graph."""

  places: tuple[Place, ...]  # in the order of execution
  edit: Edit  # what kind of edit, the least sure of those at its places
  repair: Repair  # the edit
  experiment: Experiment | None = None  # what it has shown; None before the last run
  # The edit made where it was found alone, and not in all rounds of a loop: the state that leaves
  # it may be another one than in tf1. None for the same edit.
  in_one_round: Repair | None = None
  parts: 'tuple[Mistake, ...]' = ()  # what it was joined of; () for one that was found as it is
  only_scales: bool = False  # see `Proposal`

  def narrow(self) -> 'Mistake':
    """Returns the same with the edit made in one round alone."""
    repair = self.repair if self.in_one_round is None else self.in_one_round
    parts = tuple(one.narrow() for one in self.parts)
    return dataclasses.replace(self, repair=repair, in_one_round=None, parts=parts)

  def as_seen(self, first: Callable[[Place], Place]) -> 'Mistake':
    """Returns the same as it was seen before edits that it has taken the place of.

    After such an edit the port computes other values there than it does by itself.

    Args:
      first: returns the place as it was seen first.
    """
    if self.edit is Edit.SETTING:  # its places say what is set
      return self
    places = tuple(map(first, self.places))
    parts = tuple(one.as_seen(first) for one in self.parts)
    return dataclasses.replace(self, places=places, parts=parts)

  def elsewhere(self, ends: Set[str]) -> 'Mistake | None':
    """Returns the parts of it that are at none of some ends, as one; None for none."""
    parts = self.parts or (self,)
    kept = [one for one in parts if not ends & {end_of(place) for place in one.places}]
    if len(kept) == len(parts):
      return self
    return functools.reduce(Mistake.joined, kept) if kept else None

  @property
  def first(self) -> Source:
    """The first of its places, for reports."""
    return self.places[0].evidence.source

  @property
  def text(self) -> str:
    """What is different in the port, in the model's own terms; '' if it is not known."""
    if self.edit is Edit.VALUE:
      said = edit_text(self.sources) if self._is_all_there else ''
      return said or number_text(self.first) or lines_text(self.sources)
    if self.is_large:
      # What reads a large place, and differs from tf1 in little, is no mistake of its own.
      small = [] if _is_large(self.first) else [s for s in self.sources if not _is_large(s)]
      return values_text(self.sources) or edit_text(small) or with_settings_text(self.sources)
    if self.edit is Edit.SETTING:  # what else differs at these places makes no difference
      return edit_text([_as_set(place) for place in self.places])
    return edit_text(self.sources)

  @property
  def _is_all_there(self) -> bool:
    """Whether what differs in the graph at its place is all that can make other values there."""
    known = self.first
    unsure = known.rewired or known.alone or known.reads_lists or not known.differences
    unsure = unsure or self.places[0].masked_behind
    return len(self.places) == 1 and not unsure and not self.lists_any_many

  @property
  def lists_any_many(self) -> bool:
    """Whether more operations are named than a reader takes in, whatever the edit."""
    return any(
      steps_of(known) > READABLE for source in self.sources for known in source.differences
    )

  @property
  def replaces_many(self) -> bool:
    """Whether a place of it lists more operations than a reader takes in, on either side."""
    known = (known for source in self.sources for known in source.differences)
    return any(max(d.tf1.count(_THEN), d.tf2.count(_THEN)) >= READABLE for d in known)

  @property
  def is_in_loop(self) -> bool:
    """Whether one of its places is in a round of a loop."""
    return any(rounds.numbers_of(source.tf1_op) for source in self.sources)

  @property
  def sources(self) -> list[Source]:
    """Its places, for reports."""
    return [place.evidence.source for place in self.places]

  @property
  def is_large(self) -> bool:
    """Whether so many operations were replaced that it shows little but where the mistake is."""
    if self.edit is not Edit.OPERATIONS:
      return False
    return any(map(_is_large, self.sources))

  @property
  def is_long(self) -> bool:
    """Whether many operations of a side were replaced, or are."""
    return any(max(len(one.tf1_path), len(one.tf2_path)) > _LARGE for one in self.sources)

  @property
  def lists_many(self) -> bool:
    """Whether more operations are replaced than a reader takes in."""
    return self.edit is Edit.OPERATIONS and self.lists_any_many

  @property
  def is_simple(self) -> bool:
    """Whether one thing is said of it: a setting, or an operation or two."""
    all_of_them = [d for source in self.sources for d in source.differences]
    known = {(d.aspect, d.what) for d in all_of_them}
    # What a constant is computed by may be another way to write the same.
    steps = (max(steps_of(d), d.tf1.count(_THEN), d.tf2.count(_THEN)) for d in all_of_them)
    return len(known) == 1 and max(steps) < _FEW and self.edit is not Edit.VALUE

  @property
  def is_of_shapes(self) -> bool:
    """Whether it names only operations that give tensors another shape: no values follow from it.

    What these operations read, or lead to, is wired differently.
    """
    known = [d for source in self.sources for d in source.differences]
    steps = [str(step) for d in known for step in (*_steps(d.tf1_value), *_steps(d.tf2_value))]
    is_listed = all(d.aspect in (GraphAspect.EXTRA, GraphAspect.MISSING) for d in known)
    return is_listed and bool(steps) and only_shapes(steps)

  @property
  def is_scaled(self) -> bool:
    """Whether operations that were replaced yield a multiple of tf1's: a number may differ."""
    return self.edit is Edit.OPERATIONS and any(source.values for source in self.sources)

  @property
  def reads_an_edit(self) -> bool:
    """Whether it is that the port reads what another edit has put into it."""
    return any(OF_TF1 in known.tf2 for source in self.sources for known in source.differences)

  def is_like(self, other: 'Mistake') -> bool:
    """Returns whether both are one mistake of the port's text, made at several places."""
    if self.edit is not other.edit and Edit.VALUE in (self.edit, other.edit):
      return False
    if self._settings() & other._settings():  # one that enters several formulas
      return True
    if lines_of(self.places) & lines_of(other.places):
      # One number that is used twice, say: momentum, and 1 - momentum.
      return self.edit is other.edit or repeats(self.sources, other.sources)
    if self.edit is not other.edit:
      return False
    lines, its_lines = _all_lines(self.first), _all_lines(other.first)
    if self.edit is Edit.OPERATIONS and lines[1] and lines == its_lines:
      return True
    mine, its = (marks(one.first) for one in (self, other))
    ends = {end_of(place) for place in self.places} & {end_of(place) for place in other.places}
    return bool(mine and mine == its) or bool(ends) or self.shares(other)

  def _settings(self) -> set[tuple[float, float]]:
    return {pair for source in self.sources for pair in numbers_of(source)}

  def shares(self, other: 'Mistake') -> bool:
    """Returns whether both put one operation of tf1 into the port, or take out one of its own."""
    return bool(_unpaired(self.places) & _unpaired(other.places))

  def joined(self, other: 'Mistake') -> 'Mistake':
    """Returns both as one."""
    edit = max(self.edit, other.edit, key=STEPS.index)
    places = (*self.places, *other.places)
    parts = (*(self.parts or (self,)), *(other.parts or (other,)))
    found = Mistake(places, edit, self.repair.joined(other.repair), parts=parts)
    if self.in_one_round is None and other.in_one_round is None:
      return found
    one, two = (known.in_one_round or known.repair for known in (self, other))
    return dataclasses.replace(found, in_one_round=one.joined(two))


def add_to(mistakes: list[Mistake], one: Mistake) -> None:
  """Adds a mistake to others; joins it with the one that is like it."""
  alike = next((known for known in mistakes if known.is_like(one)), None)
  if alike is None:
    mistakes.append(one)
  else:
    mistakes[mistakes.index(alike)] = alike.joined(one)


def of_the_port(mistakes: Sequence[Mistake]) -> list[Mistake]:
  """Returns the mistakes of the port: what undoes a part of an edit belongs to that edit."""
  own = [one for one in mistakes if not one.reads_an_edit]
  if not own or len(own) == len(mistakes):
    return list(mistakes)
  undone = [one.repair for one in mistakes if one.reads_an_edit]
  repair = functools.reduce(Repair.joined, undone, own[0].repair)
  return [dataclasses.replace(own[0], repair=repair), *own[1:]]


def first_of(graph: OpGraph, mistakes: Sequence[Mistake]) -> list[Mistake]:
  """Returns those that none of the others leads to, in the graph of tf1.

  What reads a place that differs was paired by what it reads: it may not be the counterpart.
  """
  ends = [one.places[0].source.regions.tf1.end for one in mistakes]
  before = {end: graph.ancestors([end]) - {end} for end in ends}
  return [one for one, end in zip(mistakes, ends, strict=True) if before[end].isdisjoint(ends)]


@dataclasses.dataclass(frozen=True)
class Found:
  """What experiments have shown."""

  # In the order in which they were found, each with its experiment.
  mistakes: tuple[Mistake, ...] = ()
  passes: bool = False  # whether the stage passes with all their edits
  note: str = ''  # why the search ended before it did; ''

  def joined(self, mistakes: Sequence[Mistake]) -> 'Found':
    """Returns the same with some of the mistakes as one."""
    first, *others = mistakes
    one = first
    for other in others:
      one = one.joined(other)
    kept = [one if m is first else m for m in self.mistakes if all(m is not o for o in others)]
    experiment = first.experiment
    assert experiment is not None
    numbered = [
      dataclasses.replace(
        mistake,
        experiment=dataclasses.replace(
          mistake.experiment or experiment,
          number=number,
          mistakes=len(kept),
          text=mistake.text,
        ),
      )
      for number, mistake in enumerate(kept, 1)
    ]
    return dataclasses.replace(self, mistakes=tuple(numbered))


def end_of(place: Place) -> str:
  """Returns the port's operation at a place, the same in all rounds of a loop."""
  return rounds.without(place.evidence.source.tf2_op)


def _steps(value: object) -> tuple[object, ...]:
  return value if isinstance(value, tuple) else ()


def _as_set(place: Place) -> Source:
  """Returns a place with the settings alone that mend it."""
  source = place.evidence.source
  sole = [known for known, standing in place.evidence.standings if standing is Standing.SOLE]
  kept = tuple(known for known in source.differences if any(known is one for one in sole))
  return dataclasses.replace(source, differences=kept) if kept else source


def _line(place: Place) -> tuple[str, int] | None:
  """Returns the port's line, or tf1's where no line of the port made what is there: in a layer."""
  source = place.evidence.source.tf2_source or place.evidence.source.tf1_source
  return None if source is None else source.at


def lines_of(places: Sequence[Place]) -> set[tuple[str, int]]:
  """Returns the lines of places, as far as they are known."""
  return {line for place in places if (line := _line(place)) is not None}


def _all_lines(source: Source) -> tuple[SourceLine | None, frozenset[tuple[str, int]]]:
  """Returns the line of tf1 at a place, and all those of the port, whichever is the last one."""
  known = (line for line in (source.tf2_source, *source.tf2_lines) if line is not None)
  return source.tf1_source, frozenset(line.at for line in known)


def _unpaired(places: Sequence[Place]) -> set[tuple[str, str]]:
  """Returns operations without a partner, and those of tf1 that are read in place of others."""
  found = {(side, rounds.without(name)) for place in places for side, name in place.unpaired}
  differences = (d for place in places for d in place.evidence.source.differences)
  # Of an operation with several outputs, two of them that are exchanged.
  read = (rounds.whole(d.tf1) for d in differences if d.aspect is GraphAspect.WIRING)
  return found | {('tf1', rounds.without(name)) for name in read}
