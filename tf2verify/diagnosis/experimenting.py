"""A diagnosis with what edits of the port have shown."""

import dataclasses
import functools
from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.bench import Bench
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.looking import Looking
from tf2verify.diagnosis.mistakes import Found, Mistake
from tf2verify.diagnosis.proven_numbers import joined_by_proof
from tf2verify.diagnosis.repairing import Repairing
from tf2verify.diagnosis.tested_causes import (
  joined_by_numbers,
  joined_by_rules,
  joined_repeats,
  seen_beside,
  tested_causes,
  tested_sources,
  with_others,
)
from tf2verify.records.diagnosis import BY_EXPERIMENT, Cause, Diagnosis

# Stages that explain what they find themselves; the search shows the place.
EXPLAIN_THEMSELVES = ('loss', 'training_steps')
# Rules by which a side has no operation for what differs: there is nothing to edit, and no line.
_OF_NOTHING = ('pruned',)
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
      said = '' if is_start and not explains_itself else why_not
      return dataclasses.replace(diagnosis, without_experiments=said)
    if explains_itself and _is_left_out(evidence, diagnosis.run, bench.causes([])):
      return dataclasses.replace(diagnosis, sources=(), growth=(), experimented=True)
    repairing = Repairing(bench, only_first)
    found = repairing.found(looking)
    told, found = _told(diagnosis, evidence, bench, found)
    if _is_unexplained(told, found):
      simpler = repairing.by_one_line(looking)
      if simpler is not None and simpler.mistakes:
        told, _ = _told(diagnosis, evidence, bench, simpler)
    return told
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost what was found before
    why_not = f'experiments were abandoned: {type(error).__name__}: {error}'
    return dataclasses.replace(diagnosis, without_experiments=why_not[:300])


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
    found = joined_by_rules(evidence, diagnosis.causes, found)
    found = joined_by_proof(evidence, diagnosis.causes, found)
  sources = tested_sources(diagnosis.sources, found)
  is_same_start = (
    sources[:1] and diagnosis.sources[:1] and (sources[0].tf1_op == diagnosis.sources[0].tf1_op)
  )
  places = {line for mistake in found.mistakes for line in _lines_of(mistake)}
  known = [note for note in diagnosis.notes if not any(f'({line}) also' in note for line in places)]
  notes = (*known, *([found.note] if found.note and found.mistakes else []))
  told = dataclasses.replace(
    diagnosis,
    causes=with_others(tested_causes(evidence, diagnosis.causes, found, recognized), beside),
    sources=tuple(sources),
    growth=diagnosis.growth if is_same_start else (),
    notes=notes,
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
