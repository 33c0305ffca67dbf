"""Causes after experiments: which of them predict the edit that mends the port."""

import collections
import dataclasses
import re
from collections.abc import Callable, Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.edits.mistakes import Found, Mistake
from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence
from tf2verify.diagnosis.named_numbers import says
from tf2verify.diagnosis.proven_numbers import proven_cause_at
from tf2verify.records.diagnosis import BY_EXPERIMENT, OF_STARTS, Cause, Source
from tf2verify.records.experiment import Edit, Outcome
from tf2verify.sides.graphs.edits.repairs import Repair

# What a graph shows, and numbers say better where they show it.
_NUMBERS_FIRST = ('clipped_logits',)
# What is true of a port whose only mistake it is.
_OF_THE_ONLY_MISTAKE = ('returned_loss',)
# What says of which part of the loss a gradient has more or less on one side.
_OF_PARTS = ('penalty_in_gradients',)
# Steps behind a place at which an operation still belongs to it.
_NEAR = 3
_WORD = re.compile(r'[^\s,:;()]+')


def joined_repeats(found: Found) -> Found:
  """Returns what differs at one operation of tf1 in the same way as one mistake.

  A schedule that a port reads twice has its number twice, and one operation of tf1 has but one
  partner: the other one is fixed by its value.
  """
  kept: list[Mistake] = []
  for mistake in found.mistakes:
    like = next((n for n, one in enumerate(kept) if _is_repeat(mistake, one)), None)
    if like is None:
      kept.append(mistake)
      continue
    one = kept[like]
    places, repair = (*one.places, *mistake.places), one.repair.joined(mistake.repair)
    kept[like] = dataclasses.replace(one, places=places, repair=repair)
  if len(kept) == len(found.mistakes):
    return found
  by_value = sum(one.edit is Edit.VALUE for one in kept)
  numbered = [
    one
    if one.experiment is None
    else dataclasses.replace(
      one,
      experiment=dataclasses.replace(
        one.experiment, number=number, mistakes=len(kept), by_value=by_value
      ),
    )
    for number, one in enumerate(kept, 1)
  ]
  return dataclasses.replace(found, mistakes=tuple(numbered))


def _is_repeat(mistake: Mistake, other: Mistake) -> bool:
  """Returns whether a mistake that was fixed by its value is another one again."""
  if mistake.edit is not Edit.VALUE or other.edit is Edit.VALUE:
    return False
  mine, its = mistake.first, other.first
  return bool(mine.differences) and (mine.tf1_op, mine.differences) == (its.tf1_op, its.differences)


def joined_by_rules(evidence: FailedStage, causes: Sequence[Cause], found: Found) -> Found:
  """Returns mistakes of which one rule takes several for one: an operation that was moved."""
  for cause in causes:
    mistakes = found.mistakes
    everywhere = [place.evidence for mistake in mistakes for place in mistake.places]
    if len(mistakes) < 2 or not _fires(cause, evidence, everywhere):
      continue
    needed = [
      mistake
      for mistake in mistakes
      if not _fires(cause, evidence, [e for e in everywhere if not _is_at(e, mistake)])
    ]
    if len(needed) > 1 and len({mistake.edit for mistake in needed}) == 1:
      found = found.joined(needed)
  return found


def seen_beside(found: Found, alone: Callable[[Mistake], Sequence[Cause]]) -> Sequence[Cause]:
  """Returns what a stage sees whichever mistake alone is left: it is none of them.

  Args:
    found: the mistakes.
    alone: what the stage takes for the cause where one mistake alone is left.
  """
  if len(found.mistakes) < 2 or not found.passes:
    return ()
  each = [alone(mistake) for mistake in found.mistakes]
  return [
    cause
    for cause in each[0]
    if all(any(cause.text == other.text for other in known) for known in each[1:])
  ]


def with_others(causes: Sequence[Cause], others: Sequence[Cause]) -> tuple[Cause, ...]:
  """Returns causes, and those of some others that say something else."""
  rules = {cause.rule for cause in causes}
  return (*causes, *(cause for cause in others if cause.rule not in rules))


def joined_by_numbers(
  found: Found,
  alone: Callable[[Mistake], Sequence[Cause]],
  without: Callable[[Sequence[Repair]], Sequence[Cause]],
) -> Found:
  """Returns one mistake where a stage's numbers know all edits together, and not each one alone.

  A label smoothing of another share, say, is two numbers of the port's graph. Probabilities that
  are taken for logits may be two parts of it, of which one would be another mistake alone. So may
  be a part that a loss lacks: its value, and the gradients that follow from it.

  Args:
    found: the mistakes.
    alone: what the stage takes for the cause where one mistake alone is left.
    without: the same of a port with some edits.
  """
  mistakes = found.mistakes
  by_value = any(mistake.edit is Edit.VALUE for mistake in mistakes)
  if len(mistakes) < 2 or not found.passes or by_value:
    return found
  whole = without([])
  if not whole:
    return found
  each = [alone(mistake) for mistake in mistakes]
  if _are_told_apart(whole, each) and not _follow(whole, each):
    return found
  joined = found.joined(mistakes)
  (one,) = joined.mistakes
  assert one.experiment is not None, 'the first one has had its experiment'
  experiment = dataclasses.replace(one.experiment, edit=Edit.OPERATIONS)
  one = dataclasses.replace(one, edit=Edit.OPERATIONS, experiment=experiment)
  return dataclasses.replace(joined, mistakes=(one,))


def _are_told_apart(whole: Sequence[Cause], each: Sequence[Sequence[Cause]]) -> bool:
  """Returns whether a stage knows each mistake alone, or the one that it sees first."""
  return all(each) or any(whole[0].text == cause.text for known in each for cause in known)


def _follow(whole: Sequence[Cause], each: Sequence[Sequence[Cause]]) -> bool:
  """Returns whether the cause that is seen first is about all that the mistakes are about.

  And none of the others is seen of the port as it is, but only where the rest is corrected.
  """
  first, seen = whole[0], {cause.text for cause in whole}
  others = [known for known in each if not any(cause.text == first.text for cause in known)]
  abouts = {about for known in others for about in (known[0].explains if known else ())}
  are_hidden = all(known and known[0].explains and known[0].text not in seen for known in others)
  return bool(others) and are_hidden and abouts <= set(first.explains)


def _fires(cause: Cause, evidence: FailedStage, at: Sequence[SourceEvidence]) -> bool:
  return any(known.rule == cause.rule for known in causes_of(_with(evidence, tuple(at))))


def _is_at(evidence: SourceEvidence, mistake: Mistake) -> bool:
  return any(place.evidence is evidence for place in mistake.places)


def tested_causes(
  evidence: FailedStage,
  causes: Sequence[Cause],
  found: Found,
  recognized: Callable[[Mistake], Sequence[Cause]] | None = None,
) -> list[Cause]:
  """Returns the causes of the mistakes that were found, in their order, then what is left.

  A cause of a rule belongs to a mistake if the rule is silent without the mistake's places,
  and predicts its edit if it is silent without what differs in the graphs there, or names it.
  Where the stage passes with the edits, rules that see something else at other places are wrong.

  Args:
    evidence: what the rules have seen.
    causes: what they have found, the most specific first.
    found: the mistakes, with their experiments.
    recognized: of a stage that explains what it finds itself, by its numbers, what it takes for
      the cause where one mistake alone is left; the rules on places do not know such a graph.
  """
  if not found.mistakes:
    return list(causes)
  if recognized is not None:
    # Of one mistake alone, the stage has said what it knows of all its examples already.
    hints = {difference.hint for difference in evidence.differences}
    said = [Cause(hints.pop())] if len(found.mistakes) == len(hints) == 1 and all(hints) else []
    hidden = _OF_THE_ONLY_MISTAKE if len(found.mistakes) > 1 else ()
    known = (
      (
        mistake,
        [
          cause
          for cause in _known_of(mistake, _still_at(mistake, evidence, causes), recognized, said)
          if cause.rule not in hidden
        ],
      )
      for mistake in found.mistakes
    )
    return [one for mistake, its in known if (one := _explained(mistake, its)) is not None]
  elsewhere = {c.rule for c in causes_of(dataclasses.replace(evidence, sources=()))}
  at_each = [
    (m, proven_cause_at(m, evidence, causes) or _cause_at(m, evidence, elsewhere))
    for m in found.mistakes
  ]
  counted = collections.Counter(cause.text for _, cause in at_each if cause is not None)
  tested: list[Cause] = []
  for mistake, cause in at_each:
    its = cause
    if cause is not None and counted[cause.text] > 1 and not _is_seen_at(cause, mistake, evidence):
      its = _cause_at(mistake, evidence, {*elsewhere, cause.rule})
    if its is not None:
      tested.append(its)
  used = {cause.rule for cause in tested}
  small = (m.edit is not Edit.VALUE and not m.is_large for m in found.mistakes)
  places_known = found.passes and all(small)
  rest = [cause for cause in causes if cause.rule not in used]
  if places_known:
    # What predicts the port's numbers by a change of TF1 is tried out by that.
    rest = [cause for cause in rest if cause.rule in elsewhere or cause.change is not None]
  by_numbers = [cause for cause in rest if cause.numbers]  # at places that no experiment has found
  # What a variable starts with is no place that an edit corrects.
  starts = [cause for cause in rest if cause.rule == OF_STARTS]
  others = [cause for cause in rest if not cause.numbers and cause.rule != OF_STARTS]
  return [*by_numbers, *with_headline(tested, others), *starts]


def _known_of(
  mistake: Mistake,
  at_its_places: Sequence[Cause],
  recognized: Callable[[Mistake], Sequence[Cause]],
  said: Sequence[Cause],
) -> Sequence[Cause]:
  """Returns what is known of a mistake: by its places, or by the numbers of the stage."""
  after = [cause for cause in at_its_places if cause.rule in _NUMBERS_FIRST]
  first = [cause for cause in at_its_places if cause.rule not in _NUMBERS_FIRST]
  return first or recognized(mistake) or said or after


def _still_at(mistake: Mistake, evidence: FailedStage, causes: Sequence[Cause]) -> list[Cause]:
  """Returns the causes whose rules fire at the places of a mistake, and not without a place."""
  at = [place.evidence for place in mistake.places]
  known = [cause for cause in causes if not _fires(cause, evidence, ())]
  return [cause for cause in known if _fires(cause, evidence, at)]


def sources_of(found: Found) -> dict[tuple[str, str], Source]:
  """Returns the places of mistakes, each with its experiment, by the operations of both sides."""
  at: dict[tuple[str, str], Source] = {}
  for mistake in found.mistakes:
    for place in mistake.places:
      source = dataclasses.replace(place.evidence.source, experiment=mistake.experiment)
      at.setdefault((source.tf1_op, source.tf2_op), source)
  return at


def tested_sources(sources: Sequence[Source], found: Found) -> list[Source]:
  """Returns the places of mistakes, each with its experiment; without mistakes, the sources."""
  if not found.mistakes:
    return list(sources)
  at = sources_of(found)
  known = {(source.tf1_op, source.tf2_op) for source in sources}
  kept = [at.get((s.tf1_op, s.tf2_op), s) for s in sources]
  if found.passes:  # what yields something else, and need not be edited, is no place of a mistake
    kept = [source for source in kept if source.experiment is not None or source.is_initial_value]
  firsts = [(m.first.tf1_op, m.first.tf2_op) for m in found.mistakes]
  return [*kept, *(at[key] for key in firsts if key not in known)]


def _cause_at(mistake: Mistake, evidence: FailedStage, elsewhere: set[str]) -> Cause | None:
  """Returns the cause of a mistake: what a rule says of its places, or its edit itself."""
  at = tuple(place.evidence for place in mistake.places)
  here = [c for c in causes_of(_with(evidence, at)) if c.rule not in elsewhere]
  bare = tuple(_without_differences(one) for one in at)
  silent = {c.rule for c in here} - {c.rule for c in causes_of(_with(evidence, bare))}
  experiment = mistake.experiment
  assert experiment is not None
  sure = mistake.edit is Edit.SETTING or (_has_one_difference(at) and not mistake.is_large)
  for cause in here:
    is_edit = cause.rule in silent or any(says(cause, one.source) for one in at)
    if mistake.edit is not Edit.VALUE and sure and is_edit:
      return dataclasses.replace(cause, experiment=experiment, predicts=True)
  # A setting says all that there is to say; of operations a rule may know what they are for.
  if here and mistake.edit is not Edit.SETTING:
    return dataclasses.replace(here[0], experiment=experiment)
  # Much that is put in place of the port's corrects much, and the right port may be written so.
  is_guess = experiment.outcome is Outcome.PARTLY and mistake.edit is not Edit.SETTING
  if not experiment.text or (
    is_guess and (mistake.replaces_many or _is_given_what_enters(mistake))
  ):
    return None
  is_edit = mistake.edit is not Edit.VALUE  # of a value, the graph tells what may have made it
  return Cause(experiment.text, '', BY_EXPERIMENT, experiment=experiment, predicts=is_edit)


def _is_given_what_enters(mistake: Mistake) -> bool:
  """Returns whether a place got tf1's value that reads other tensors than in tf1.

  That corrects whatever is wrong before the place, too.
  """
  return mistake.edit is Edit.VALUE and all(source.rewired for source in mistake.sources)


def _is_seen_at(cause: Cause, mistake: Mistake, evidence: FailedStage) -> bool:
  """Returns whether the operation that a cause has seen is at a mistake's places.

  A rule that looks at the whole graph says the same of each of several mistakes.
  """
  graph = evidence.tf1_graph
  if graph is None:
    return False
  regions = [place.source.regions.tf1 for place in mistake.places]
  at = {n for region in regions for n in (*region.inner, region.end)}
  for _ in range(_NEAR):
    # What reads random numbers, say, is what the rule has seen.
    at |= {n for n, op in enumerate(graph.ops) if any(producer in at for producer, _ in op.inputs)}
  names = {graph.ops[n].name for n in at}
  return not names.isdisjoint(_WORD.findall(cause.evidence))


def _explained(mistake: Mistake, known: Sequence[Cause]) -> Cause | None:
  """Returns the cause of a mistake: its edit, or what was recognized of it alone."""
  experiment = mistake.experiment
  assert experiment is not None
  # The stage may know better what a part of the difference is.
  is_part = experiment.outcome is Outcome.PARTLY and mistake.edit is not Edit.SETTING
  if not experiment.text or is_part:
    return None
  is_edit = mistake.edit is not Edit.VALUE
  edit = Cause(experiment.text, '', BY_EXPERIMENT, experiment=experiment, predicts=is_edit)
  for cause in known:
    if all(says(cause, place.evidence.source) for place in mistake.places):
      return dataclasses.replace(cause, experiment=experiment, predicts=True)
  is_sure = any(c.numbers or (mistake.only_scales and c.rule in _OF_PARTS) for c in known[:1])
  if known and (mistake.edit is not Edit.SETTING or is_sure):
    seen = known[0].evidence or experiment.text
    return dataclasses.replace(known[0], evidence=seen, experiment=experiment)
  return edit


def _with(evidence: FailedStage, sources: tuple[SourceEvidence, ...]) -> FailedStage:
  return dataclasses.replace(evidence, sources=sources)


def _without_differences(one: SourceEvidence) -> SourceEvidence:
  return dataclasses.replace(one, source=dataclasses.replace(one.source, differences=()))


def _has_one_difference(sources: Sequence[SourceEvidence]) -> bool:
  return all(len({d.aspect for d in one.source.differences}) == 1 for one in sources)


def with_headline(tested: list[Cause], rest: list[Cause]) -> list[Cause]:
  """Returns all causes; one that no place shows goes with the edit that no rule explains."""
  unexplained = [cause for cause in tested if cause.rule == BY_EXPERIMENT]
  if len(unexplained) == 1 and len(rest) == 1:
    known = dataclasses.replace(rest[0], experiment=unexplained[0].experiment)
    return [known if cause is unexplained[0] else cause for cause in tested]
  return [*tested, *rest]
