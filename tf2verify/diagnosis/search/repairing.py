"""Mistakes found by experiment: the port's graph edited until the stage passes.

Every edit is one that makes a part of the port's graph the reference's. An edit is proven if
the stage's own comparison passes with all of them, and does not without this one.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence

from tf2verify.diagnosis.divergence.effects.all_rounds import AllRounds, Given, Layouts, Moved
from tf2verify.diagnosis.divergence.tensors.regions import RegionPair
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource
from tf2verify.diagnosis.edits.at_place import exits_of, is_of_gradients, settings_alone, value_edit
from tf2verify.diagnosis.edits.exchanges import exchanged_variables
from tf2verify.diagnosis.edits.mistakes import (
  STEPS,
  Found,
  Mistake,
  add_to,
  end_of,
  first_of,
  of_the_port,
)
from tf2verify.diagnosis.edits.needed import AT_ITS_LIMIT, IN_VAIN, NEARER, Needed, Progress
from tf2verify.diagnosis.edits.operand_insertions import operand_insertions
from tf2verify.diagnosis.edits.single_insertions import plainer_edits, shared_insertions
from tf2verify.diagnosis.places.bench import Bench, Judged
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.diagnosis.search.seen_places import SeenPlaces
from tf2verify.records import rounds
from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.sides.graphs.edits.repairs import (
  Repair,
  Transplant,
  bypass,
  layout_of_shapes,
  transplant,
)
from tf2verify.sides.graphs.edits.wiring import CannotRepair

MOST_MISTAKES = 10
_MOST_PLACES = 48
_REPLACED_FOR_ALL, _REPLACED_WITH_THE_END = 1, 2


class Repairing:
  """Edits the port's graph at its sources until the stage passes."""

  def __init__(self, bench: Bench, only_first: bool = False) -> None:
    """Prepares.

    Args:
      bench: the runs of the stage.
      only_first: whether to end with the mistakes that the first search shows.
    """
    self._bench = bench
    self._rounds = 1 if only_first else MOST_MISTAKES
    # By the places' ends: the next step to take there, and the one that was last proposed.
    self._tried: dict[str, int] = {}
    self._steps: dict[str, int] = {}
    self._seen = SeenPlaces()
    self._mistakes: list[Mistake] = []
    self._has_tried = False

  def found(self, looking: Looking) -> Found:
    """Returns the mistakes, given the search in the port as it is."""
    before = judged = self._bench.judged([])
    first, progress, note = looking, Progress(before), ''
    for left in reversed(range(self._rounds)):
      if self._bench.is_over():
        note = AT_ITS_LIMIT
        break
      in_round = self._round(looking, judged)
      extended = self._extended(looking, in_round or judged)
      if in_round is None and extended is judged:
        note = IN_VAIN if self._has_tried else ''
        break
      judged = extended
      if judged.passes or len(self._mistakes) >= MOST_MISTAKES:
        break
      if looking.is_of_changes and progress.is_over(judged):
        note = IN_VAIN
        break
      if not left or self._bench.is_over():  # another search would be for nothing
        note = AT_ITS_LIMIT if left else ''
        break
      try:
        found = self._bench.looked_at(self._repairs(), judged.left)
      except CannotRepair as error:
        note = f'the remaining differences were not examined: {error}'[:200]
        break
      looking = looking.again(found, judged.left)
    judged = self._single(exchanged_variables(first, self._mistakes)) or judged
    judged = self._single(plainer_edits(first, self._mistakes, judged.passes)) or judged
    judged = self._single(operand_insertions(first, self._mistakes)) or judged
    return self._judged_mistakes(before, judged, note)

  def by_one_edit(self, proposed: Iterable[Mistake]) -> Found | None:
    """Returns one edit with which the stage passes; None where none of some is found to be so.

    Args:
      proposed: edits, which need no partner in tf1.
    """
    judged = self._single(proposed)
    return None if judged is None else self.by_edits(self._mistakes, judged)

  def by_edits(self, mistakes: Iterable[Mistake], judged: Judged) -> Found:
    """Returns some edits with what the stage says of all of them."""
    self._mistakes = list(mistakes)
    return self._judged_mistakes(self._bench.judged([]), judged, '')

  def _single(self, proposed: Iterable[Mistake]) -> Judged | None:
    """Makes one edit, where that alone makes the stage pass."""
    for mistake in proposed:
      if self._bench.is_over() and not mistake.first.is_correction:  # these have their own time
        break
      try:
        judged = self._bench.judged_if_passing([mistake.repair])
      except CannotRepair:
        continue
      self._has_tried = True
      if judged is not None:
        self._mistakes = [mistake]
        return judged
    return None

  def _repairs(self, mistakes: Sequence[Mistake] | None = None) -> list[Repair]:
    return [one.repair for one in (self._mistakes if mistakes is None else mistakes)]

  def _round(self, looking: Looking, before: Judged) -> Judged | None:
    """Adds what one search shows to the mistakes; returns what it comes to, None for nothing."""
    proposed = list(self._proposed(looking))
    if not proposed:
      return None
    shared = () if self._mistakes else shared_insertions(looking, proposed)
    judged = self._settings_alone(looking, proposed) or self._single(shared)
    if judged is not None:
      return judged
    apart = [part for one in proposed for part in one.parts or (one,)]
    first = first_of(looking.tf1.op_graph, apart) if looking.is_of_step else apart
    if len(first) < len(apart):
      nearer = self._judged(self._with(first))
      if nearer is not None and nearer.is_much_nearer_than(before):
        proposed = apart = first
    all_of_them = self._with(proposed)
    judged = self._judged(all_of_them)
    narrow = [one if one.in_one_round is None else one.narrow() for one in proposed]
    if narrow != proposed and not (judged is not None and judged.passes):
      fewer = self._judged(self._with(narrow))
      if fewer is not None and (judged is None or fewer.distance < judged.distance):
        if judged is not None:
          apart = [part for one in narrow for part in one.parts or (one,)]
        proposed, all_of_them, judged = narrow, self._with(narrow), fewer
    if judged is not None and judged.is_much_nearer_than(before):
      self._count(*proposed)
      self._mistakes = all_of_them
      return judged if judged.passes else self._with_the_ends(looking, proposed) or judged
    # Of further ones some may be no counterparts: the first is sure, others are seen from there.
    for one in apart:
      first = self._with([one])
      judged = self._judged(first)
      self._count(one)
      if judged is not None:
        self._mistakes = first
        return judged
    return before

  def _settings_alone(self, looking: Looking, proposed: Sequence[Mistake]) -> Judged | None:
    """Adds settings alone, where these are enough and other edits were proposed with them."""
    if all(one.edit is Edit.SETTING for one in proposed):
      return None
    settings = [one for known in proposed if (one := settings_alone(looking, known))]
    judged = self._judged(self._with(settings)) if settings else None
    if judged is None or not judged.passes:
      return None
    self._count(*settings)
    self._mistakes = self._with(settings)
    return judged

  def _with_the_ends(self, looking: Looking, proposed: Sequence[Mistake]) -> Judged | None:
    """Replaces the operations at the ends too, where that is all that was missing."""
    known = self._mistakes
    further = [self._with_its_ends(looking, one) for one in proposed]
    if further == list(proposed):
      return None
    self._mistakes = [one for one in known if not any(one is other for other in proposed)]
    all_of_them = self._with(further)
    judged = self._judged(all_of_them)
    self._mistakes = all_of_them if judged is not None and judged.passes else known
    return judged if judged is not None and judged.passes else None

  def _with_its_ends(self, looking: Looking, one: Mistake) -> Mistake:
    ends = [end_of(place) for place in one.places]
    if any(self._steps[end] != _REPLACED_FOR_ALL for end in ends):
      return one
    try:
      repairs = [self._repair(_REPLACED_WITH_THE_END, looking, place) for place in one.places]
    except CannotRepair:
      return one
    transplants = tuple(t for repair in repairs if repair for t in repair.transplants)
    return dataclasses.replace(one, repair=Repair(transplants=transplants), parts=())

  def _extended(self, looking: Looking, judged: Judged) -> Judged:
    """Makes the edits of an update at all variables whose update is written so, if that is nearer.

    An optimizer is one code for all of them, and in the first step some are hardly changed.
    """
    if judged.passes or not looking.is_of_changes or not self._mistakes or self._bench.is_over():
      return judged
    wider = looking.of_all_variables()
    known = {place.source.regions.tf1.end for one in self._mistakes for place in one.places}
    further = []
    for source in wider.divergence.unfiltered_sources()[:_MOST_PLACES]:
      if known.isdisjoint((source.regions.tf1.end, *source.regions.tf1.inner)):
        edit = self._edit_at(wider, source)
        if edit is not None and any(edit.is_like(one) for one in self._mistakes):
          further.append(edit)
    if not further:
      return judged
    all_of_them = self._with(further)
    found = self._judged(all_of_them)
    # What agreed and then does not, was edited at a place that only looks like the others.
    if found is None or not found.left <= judged.left or not found.is_much_nearer_than(judged):
      return judged
    self._count(*further)
    self._mistakes = all_of_them
    return found

  def _count(self, *mistakes: Mistake) -> None:
    for place in (place for one in mistakes for place in one.places):
      self._tried[end_of(place)] = self._steps[end_of(place)] + 1

  def _with(self, proposed: Sequence[Mistake]) -> list[Mistake]:
    """Returns the mistakes with more; those at the places of others take their places."""
    found = list(self._mistakes)
    for one in proposed:
      ends = {end_of(place) for place in one.places}
      found = [left for known in found if (left := known.elsewhere(ends)) is not None]
      add_to(found, one)
    return found

  def _judged(self, mistakes: Sequence[Mistake]) -> Judged | None:
    try:
      judged = self._bench.judged(self._repairs(mistakes))
      self._has_tried = True
      return judged
    except CannotRepair:
      return None

  def _proposed(self, looking: Looking) -> Iterator[Mistake]:
    """Yields an edit for each source, those that belong together as one."""
    looking.arriving()
    found = [s for s in looking.divergence.all_sources() if not s.agreement.is_rounding]
    found = looking.without_small(found)
    if self._bench.derives:
      found = [s for s in found if not is_of_gradients(looking, s)]
    edits = self._edits_at(looking, found[:_MOST_PLACES])
    # What reads an operation that is replaced for all its readers is looked at after that.
    replaced = [one for one in edits if self._steps[end_of(one.places[0])] == _REPLACED_FOR_ALL]
    mistakes: list[Mistake] = []
    for one in edits:
      if one not in replaced and any(one.shares(known) for known in replaced):
        continue
      add_to(mistakes, one)
    yield from mistakes

  def _edits_at(self, looking: Looking, found: Sequence[FoundSource]) -> list[Mistake]:
    """Returns an edit for each source; one for those in several rounds of a loop."""
    edits: dict[str, Mistake] = {}
    for source in found:
      place = looking.place(source)
      known = edits.get(end_of(place))
      # A loop in Python has no rounds that the graph tells.
      if known is not None and rounds.numbers_of(place.evidence.source.tf1_op):
        continue
      edit = self._edit_at(looking, source)
      if edit is not None:
        edits[end_of(place)] = edit if known is None else known.joined(edit)
    return list(edits.values())

  def _edit_at(self, looking: Looking, source: FoundSource) -> Mistake | None:
    """Returns the least edit that was not tried at a source; None where none is left."""
    place = looking.place(source)
    self._seen.see(place)
    tried = self._tried.get(end_of(place), 0)
    for step, edit in list(enumerate(STEPS))[tried:]:
      try:
        repair = self._repair(step, looking, place)
      except CannotRepair:
        continue
      if repair is not None:
        self._steps[end_of(place)] = step
        alone = self._repair(step, looking, place, in_one_round=True)
        narrow = None if alone is None or repair.size == alone.size else alone
        return Mistake((place,), edit, repair, in_one_round=narrow)
    return None

  def _repair(
    self, step: int, looking: Looking, place: Place, in_one_round: bool = False
  ) -> Repair | None:
    everywhere = looking.one_round if in_one_round else looking.all_rounds
    if STEPS[step] is Edit.SETTING:
      return Repair(changes=everywhere.changes(place.settings)) if place.settings else None
    if STEPS[step] is Edit.VALUE:
      return value_edit(looking.tf1, looking.tf2, place, everywhere)
    pair = place.source.regions
    given = {one: other for one, other in pair.entering if one is not None and other is not None}
    if step == _REPLACED_FOR_ALL:
      # That the end is another operation is seen there, without a run of the stage.
      if looking.is_before_the_end(place) is False:
        return None
      return self._before_the_end_of(looking, pair, given, everywhere)
    region = pair.tf1.inner, pair.tf1.end
    layouts = dict(looking.divergence.layouts)
    if place.source.layout is not None and place.source.output is not None:
      layouts[pair.tf1.end, place.source.output] = place.source.layout
    make = functools.partial(_transplant, looking)
    moved = everywhere.transplants((region, pair.tf2.end), given, layouts, make)
    return Repair(transplants=moved)

  def _before_the_end_of(
    self, looking: Looking, pair: RegionPair, given: Given, everywhere: AllRounds
  ) -> Repair | None:
    """Returns tf1's unpaired operations in place of the port's, for all that read these.

    None where the port has none, or where they lead to the end by more than one tensor.
    """
    ops, others = looking.tf1.op_graph.ops, looking.tf2.op_graph.ops
    op, other = ops[pair.tf1.end], others[pair.tf2.end]
    # What one adds to a variable is no value that the other one could assign.
    if len(op.inputs) != len(other.inputs) or op.attribute('op') != other.attribute('op'):
      return None
    exits = exits_of(pair, op, other)
    if len(exits) != 1:
      return None
    ((one, two),) = exits
    if two[0] not in pair.tf2.inner or two[1] or one[1]:
      return None
    if one[0] in pair.tf1.inner:
      region = [n for n in pair.tf1.inner if n != one[0]], one[0]
      layouts = dict(looking.divergence.layouts)
      held = layout_of_shapes(ops[one[0]].outputs[one[1]][1], others[two[0]].outputs[two[1]][1])
      if held is not None:
        layouts[one] = held
      make = functools.partial(_transplant, looking)
      return Repair(transplants=everywhere.transplants((region, two[0]), given, layouts, make))
    if one not in given:
      return None
    return Repair(transplants=(bypass(looking.tf2.op_graph, two[0], given[one]),))

  def _judged_mistakes(self, before: Judged, judged: Judged, note: str) -> Found:
    """Returns the mistakes that count, with what their experiments have shown."""
    if not self._mistakes:
      return Found((), False, note)
    needed = Needed(self._judged, self._bench.is_over)
    shown = [one.as_seen(self._seen.first) for one in self._mistakes]
    kept = needed.enough(shown, judged)
    for one in kept.copy():
      if len(kept) == 1:
        break
      without = [known for known in kept if known is not one]
      left = self._judged(without)
      needless = left is not None and (
        left.passes if judged.passes else left.distance <= judged.distance
      )
      if needless and left is not None:
        kept, judged = without, left
    kept, judged = needed.without_mates(before, kept, judged)
    kept, judged = needed.of_parts(of_the_port(kept), judged)
    if not judged.passes and not judged.distance <= NEARER * before.distance:
      return Found((), False, note or 'no edit of the port made the stage pass')
    outcome = Outcome.PROVEN if judged.passes else Outcome.PARTLY
    found = []
    for number, one in enumerate(kept, 1):
      # In a loop another order of computing may be nearer, and be no mistake; nor need all that
      # many operations compute.
      is_vague = one.is_in_loop or one.is_large
      is_doubtful = outcome is Outcome.PARTLY and one.edit is Edit.OPERATIONS and is_vague
      experiment = Experiment(
        one.edit,
        '' if is_doubtful else one.text,
        outcome,
        number,
        len(kept),
        judged.apart,
        judged.tensors,
        len(judged.left),
        sum(known.edit is Edit.VALUE for known in kept),
      )
      found.append(dataclasses.replace(one, experiment=experiment))
    return Found(tuple(found), judged.passes, '' if judged.passes else note)


def _transplant(looking: Looking, moved: Moved, given: Given, layouts: Layouts) -> Transplant:
  graphs, partners = (looking.tf1.op_graph, looking.tf2.op_graph), looking.divergence.pairing.tf2_of
  return transplant(looking.tf1.nodes(), *graphs, *moved, given, layouts, partners)
