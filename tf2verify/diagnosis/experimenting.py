"""A diagnosis with what edits of the port have shown."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.edits.mistakes import Found, Mistake
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.operations.op_text import only_shapes
from tf2verify.diagnosis.places.bench import Bench
from tf2verify.diagnosis.places.looking import Looking, Place
from tf2verify.diagnosis.proven_numbers import joined_by_proof
from tf2verify.diagnosis.search.chosen_branches import chosen_branch
from tf2verify.diagnosis.search.each_alone import (
  completed,
  in_sequence,
  says_little,
  with_each_alone,
)
from tf2verify.diagnosis.search.edits_in_turn import edits_in_turn
from tf2verify.diagnosis.search.joined_gradients import joined_gradients
from tf2verify.diagnosis.search.line_edits import line_edits, step_edits
from tf2verify.diagnosis.search.missing_rounds import missing_round
from tf2verify.diagnosis.search.repairing import Repairing
from tf2verify.diagnosis.search.unread_inputs import unread_inputs
from tf2verify.diagnosis.steps.python_numbers import python_number_edits
from tf2verify.diagnosis.tested_causes import (
  joined_by_numbers,
  joined_by_rules,
  joined_repeats,
  seen_beside,
  tested_causes,
  tested_sources,
  with_others,
)
from tf2verify.records.diagnosis import (
  BY_EXPERIMENT,
  Cause,
  Diagnosis,
  GraphAspect,
  GraphDifference,
)
from tf2verify.records.experiment import Edit
from tf2verify.records.op_graph import VARIABLE
from tf2verify.sides.graphs.edits.repairs import Repair

# Stages that explain what they find themselves; the search shows the place.
_OF_STEPS = 'training_steps'
EXPLAIN_THEMSELVES = ('loss', _OF_STEPS)
# Rules by which a side has no operation for what differs: there is nothing to edit, and no line.
_OF_NOTHING = ('pruned',)
# Rules by which one operation on the gradients of all variables differs: edits of one variable
# after the other, or of one line, make no other of it.
_OF_ALL_GRADIENTS = ('clipping_in_slots',)
# Rules that say of an operation that it is before another one in tf1, and not after it.
_OF_MOVES = ('activation_order',)
_TRANSPOSE = 'Transpose'
_SLICES = frozenset(('StridedSlice', 'Slice', 'GatherV2'))
_FROM_TF1 = 'initial values differ as well; experiments begin with those of tf1'
_OTHER_START = 'the values before the step differ, which no edit of its graph can correct'


def with_experiments(
  diagnosis: Diagnosis, evidence: FailedStage, looking: Looking, bench: Bench, only_first: bool
) -> Diagnosis:
  """Returns a diagnosis after experiments."""
  try:
    explains_itself = evidence.stage in EXPLAIN_THEMSELVES
    is_other_start = explains_itself and any(one.is_initial_value for one in diagnosis.sources)
    why_not = _OTHER_START if is_other_start else bench.why_not()
    if why_not:
      # Initial values that differ are no part of the graph, and nothing is missed.
      is_start = bool(diagnosis.sources) and all(one.is_initial_value for one in diagnosis.sources)
      # What numbers prove needs no experiment.
      is_proven = any(cause.numbers for cause in diagnosis.causes)
      said = '' if is_proven or (is_start and not explains_itself) else why_not
      return dataclasses.replace(diagnosis, without_experiments=said)
    named = bench.causes([]) if explains_itself else ()
    if _is_left_out(evidence, diagnosis.run, named):
      return dataclasses.replace(diagnosis, sources=(), growth=(), experimented=True)
    is_of_all = any(cause.rule in _OF_ALL_GRADIENTS for cause in named)
    repairing = Repairing(bench, only_first or is_of_all)
    one_edit = repairing.by_one_edit(step_edits(looking))
    if not one_edit and not diagnosis.causes:
      one_edit = repairing.by_one_edit(python_number_edits(looking))
    found = one_edit or repairing.found(looking)
    if explains_itself and not found.passes and not is_of_all:
      in_turn = edits_in_turn(bench, looking, diagnosis.run, _single_edits)
      found = repairing.by_edits(*in_turn) if in_turn else found
    told, found = _told(diagnosis, evidence, bench, found)
    told = _in_short(told, looking, found)
    simpler = None if is_of_all else _simpler(repairing, bench, looking, told, found)
    if simpler is not None:
      known = told
      told, _ = _told(diagnosis, evidence, bench, simpler)
      told = _in_words_of_moves(known, told)
    told = _with_setting(told, looking)
    return _with_unread(told, looking) if explains_itself else told
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost what was found before
    why_not = f'experiments were abandoned: {type(error).__name__}: {error}'
    return dataclasses.replace(diagnosis, without_experiments=why_not[:300])


def _simpler(
  repairing: Repairing, bench: Bench, looking: Looking, told: Diagnosis, found: Found
) -> Found | None:
  """Returns edits that say more than those that were found; None where none are known."""
  doubtful = any(_is_doubtful(looking, told, one) for one in found.mistakes)
  is_vague = doubtful or _is_unexplained(told, found)
  alone = found
  if found.passes and len(found.mistakes) > 1 and not looking.is_of_step:
    # One edit for all of several mistakes, each of which is needed, is seldom found.
    alone = with_each_alone(bench, looking, found)
    # Where one edit is enough after all, it is told better of the port without the others' edits.
    is_one = len(alone.mistakes) == 1
    says_all = not any(says_little(looking, one) for one in alone.mistakes)
    if alone is not found and says_all and not is_one:
      return alone
  simpler = repairing.by_one_edit(line_edits(looking)) if is_vague else None
  if simpler is not None and simpler.mistakes:
    return simpler
  if is_vague and looking.is_of_step and found.passes and len(found.mistakes) > 1:
    in_turn = edits_in_turn(bench, looking, told.run, _single_edits)
    if in_turn:
      return repairing.by_edits(*in_turn)
  completing = completed(bench, looking, found)
  is_known = any(cause.rule != BY_EXPERIMENT for cause in told.causes)
  if completing is None and is_vague and not looking.is_of_step and not is_known:
    completing = in_sequence(bench, looking, alone)
  if completing is not None:
    return repairing.by_edits(completing, bench.judged([one.repair for one in completing]))
  if looking.is_of_step:
    alone = with_each_alone(bench, looking, found)
  return None if alone is found else alone


def _in_words_of_moves(known: Diagnosis, told: Diagnosis) -> Diagnosis:
  """Returns a diagnosis of an operation that was moved, in the words of the rule that had seen it.

  Args:
    known: the diagnosis before a single edit was found.
    told: the one by that edit.
  """
  rules, edits = known.causes, told.causes
  if len(rules) != 1 or len(edits) != 1 or rules[0].rule not in _OF_MOVES:
    return told
  if edits[0].rule != BY_EXPERIMENT or not edits[0].is_proven:
    return told
  cause = dataclasses.replace(edits[0], text=rules[0].text, evidence=edits[0].text)
  return dataclasses.replace(told, causes=(dataclasses.replace(cause, rule=rules[0].rule),))


def with_later_mistakes(
  diagnosis: Diagnosis, evidence: FailedStage, looking: Looking, bench: Bench
) -> Diagnosis:
  """Returns a diagnosis of a step that is known to be explained, with mistakes of later steps."""
  if evidence.stage != _OF_STEPS:
    return diagnosis
  try:
    found = None if bench.why_not() else edits_in_turn(bench, looking, diagnosis.run, _single_edits)
    if found is None or len(found[0]) == 1:
      return diagnosis
    told, _ = _told(diagnosis, evidence, bench, Repairing(bench).by_edits(*found))
    return told
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost what was found before
    note = f'later steps were not examined: {type(error).__name__}: {error}'[:300]
    return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, note))


def _single_edits(looking: Looking) -> Iterator[Mistake]:
  yield from step_edits(looking)
  yield from python_number_edits(looking)
  yield from line_edits(looking)


def _with_setting(diagnosis: Diagnosis, looking: Looking) -> Diagnosis:
  """Returns a diagnosis with the setting that alone makes the first place differ as a cause.

  For one without any that is proven, or of a rule. The rest of the port may not run with what the
  place then yields: with other paddings that is another shape, unless the dilation behind it is
  corrected as well.
  """
  if any(cause.is_proven or cause.rule != BY_EXPERIMENT for cause in diagnosis.causes):
    return diagnosis
  places = [looking.place(source) for source in looking.arriving()[:1]]
  sure = [one for one in places if one.settings and _are_counterparts(one)]
  said = [Mistake((one,), Edit.SETTING, Repair(changes=one.settings)).text for one in sure]
  known = [cause.text for cause in diagnosis.causes]
  first = tuple(Cause(text) for text in said if text and not any(text in one for one in known))
  return dataclasses.replace(diagnosis, causes=(*first, *diagnosis.causes))


def _in_short(diagnosis: Diagnosis, looking: Looking, found: Found) -> Diagnosis:
  """Returns a diagnosis with rounds, or choices, that the port lacks in place of operations."""
  by_tf1 = [one for one in found.mistakes if one.edit is Edit.OPERATIONS]
  said = {
    id(one.experiment): missing_round(looking, one) or chosen_branch(looking, one) for one in by_tf1
  }
  causes = tuple(
    dataclasses.replace(cause, text=text)
    if cause.rule == BY_EXPERIMENT and (text := said.get(id(cause.experiment)))
    else cause
    for cause in diagnosis.causes
  )
  return dataclasses.replace(diagnosis, causes=causes)


def _with_unread(diagnosis: Diagnosis, looking: Looking) -> Diagnosis:
  """Returns a diagnosis with inputs that the port does not read: a note beside other causes."""
  unread = unread_inputs(looking)
  if not unread:
    return diagnosis
  if not diagnosis.causes:
    return dataclasses.replace(diagnosis, causes=(Cause(unread),))
  return dataclasses.replace(diagnosis, notes=(unread, *diagnosis.notes))


def _are_counterparts(place: Place) -> bool:
  """Returns whether a place yields on both sides what may be one quantity, by what it reads.

  One of many slices may be paired with any other, and can be set as that one is.
  """
  is_slice = place.evidence.source.tf1_type in _SLICES
  return not (place.source.regions.is_rewired or is_slice)


def _is_left_out(evidence: FailedStage, run: str, causes: Sequence[Cause]) -> bool:
  """Returns whether all that differs in a run is of variables that one side does not update."""
  subjects = {known.tf1_subject for known in evidence.differences if known.run == run}
  return any(c.rule in _OF_NOTHING and subjects <= set(c.variables) for c in causes[:1])


def _is_unexplained(diagnosis: Diagnosis, found: Found) -> bool:
  """Returns whether a simple edit of one line would say more than what was found."""
  by_experiment = [one.experiment for one in diagnosis.causes if one.rule == BY_EXPERIMENT]
  named = [one.experiment for one in diagnosis.causes]
  return not found.passes or any(
    one.experiment not in named or (one.experiment in by_experiment and not one.is_simple)
    for one in found.mistakes
  )


def _is_doubtful(looking: Looking, told: Diagnosis, mistake: Mistake) -> bool:
  """Returns whether what was found may be how a simpler mistake looks."""
  if (looking.is_of_step and mistake.is_scaled) or _is_of_order(looking, mistake):
    return True
  rules = [one.rule for one in told.causes if one.experiment is mistake.experiment]
  is_vague = rules == [BY_EXPERIMENT] and not looking.is_of_step
  return is_vague and _reads_others(looking, mistake)


def _is_of_order(looking: Looking, mistake: Mistake) -> bool:
  """Returns whether a mistake is an order of axes alone, where the port's tensors have another one.

  What was wrong before may look so: distances from j to i in place of those from i to j.
  """
  steps = [step for source in mistake.sources for d in source.differences for step in _steps(d)]
  if not steps or not only_shapes(step for step in steps if step != _TRANSPOSE):
    return False
  places = filter(looking.has, mistake.places)
  entering = (key for place in places for key, _ in place.source.regions.entering)
  return any(key in looking.divergence.layouts for key in entering if key is not None)


def _reads_others(looking: Looking, mistake: Mistake) -> bool:
  """Returns whether each side's operations read a variable there that the other side's do not.

  What they are may be two spellings of one function, and the variable the mistake.
  """
  graphs = looking.tf1.op_graph, looking.tf2.op_graph
  for place in filter(looking.has, mistake.places):
    regions = place.source.regions
    alone = [
      key
      for number, graph in enumerate(graphs)
      for pair in regions.entering
      if (key := pair[number]) is not None and graph.ops[key[0]].op_type == VARIABLE
      if pair[1 - number] not in (regions.tf2, regions.tf1)[number].frontier
    ]
    if len(alone) > 1:
      return True
  return False


def _steps(known: GraphDifference) -> Sequence[str]:
  """Returns the types of the operations that are missing or extra; '' for another difference."""
  if known.aspect not in (GraphAspect.EXTRA, GraphAspect.MISSING):
    return ('',)
  return [*(known.tf1_value or ()), *(known.tf2_value or ())]


def _told(
  diagnosis: Diagnosis, evidence: FailedStage, bench: Bench, found: Found
) -> tuple[Diagnosis, Found]:
  """Returns a diagnosis with what experiments have found, those joined that are one mistake."""
  explains_itself = evidence.stage in EXPLAIN_THEMSELVES
  recognized = None
  beside: Sequence[Cause] = ()
  found = joined_repeats(found)
  if explains_itself:
    beside = seen_beside(found, functools.partial(_recognized, bench, found))
    found = joined_by_numbers(found, functools.partial(_recognized, bench, found), bench.causes)
    recognized = functools.partial(_recognized, bench, found)
  else:
    found = joined_by_rules(evidence, diagnosis.causes, joined_gradients(found))
    found = joined_by_proof(evidence, diagnosis.causes, found)
  sources = tested_sources(diagnosis.sources, found)
  is_same_start = (
    sources[:1] and diagnosis.sources[:1] and (sources[0].tf1_op == diagnosis.sources[0].tf1_op)
  )
  places = {line for mistake in found.mistakes for line in _lines_of(mistake)}
  known = [note for note in diagnosis.notes if not any(f'({line}) also' in note for line in places)]
  starts = any(source.is_initial_value for source in diagnosis.sources) and not explains_itself
  notes = [found.note] if found.note and found.mistakes else []
  notes += [_FROM_TF1] if starts and found.mistakes else []
  told = dataclasses.replace(
    diagnosis,
    causes=with_others(tested_causes(evidence, diagnosis.causes, found, recognized), beside),
    sources=tuple(sources),
    growth=diagnosis.growth if is_same_start else (),
    notes=(*known, *notes),
    without_experiments='' if found.mistakes else found.note,
    experimented=True,
  )
  return told, found


def _lines_of(mistake: Mistake) -> Iterator[str]:
  """Yields the port's lines at the places of a mistake: what differs there is told already."""
  for place in mistake.places:
    source = place.evidence.source.tf2_source
    if source is not None:
      yield source.short


def _recognized(bench: Bench, found: Found, mistake: Mistake) -> Sequence[Cause]:
  """Returns what a stage takes for the cause where this mistake alone is left in the port."""
  others = [known.repair for known in found.mistakes if known is not mistake]
  return bench.causes(others) if found.passes else ()
