"""From a failed stage to where the sides part and why."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.divergence.effects.loop_ends import loop_ends
from tf2verify.diagnosis.divergence.tensors.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.experimenting import (
  EXPLAIN_THEMSELVES,
  with_experiments,
  with_later_mistakes,
)
from tf2verify.diagnosis.gradient_causes import gradient_causes
from tf2verify.diagnosis.gradients.repairing import GradientRepairing
from tf2verify.diagnosis.gradients.step_stops import step_stops
from tf2verify.diagnosis.patterns.numbers.states import state_evidence
from tf2verify.diagnosis.places.bench import Bench
from tf2verify.diagnosis.places.looking import TARGET_OF, Looking, targets_of
from tf2verify.diagnosis.places.source_records import (
  MOST_SOURCES,
  VariableLines,
  initial_value_sources,
  kept_otherwise,
  stopped_sources,
)
from tf2verify.diagnosis.proven_numbers import leaves_nothing, proven_first
from tf2verify.diagnosis.steps.read_times import read_times
from tf2verify.diagnosis.tested_causes import sources_of
from tf2verify.records.diagnosis import (
  Cause,
  Diagnosis,
  GraphDifference,
  GrowthPoint,
  Source,
)
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import CONSTANT, TARGET, OpGraph
from tf2verify.relation.operations.op_pairs import is_backward

# What belongs to a variable, and follows from how it is made.
_OF_VARIABLES = ('regularization loss',)
_SHOWN_VARIABLES = 3
_GROWTH_POINTS = 48
# Rules that see where a gradient is stopped.
_OF_STOPS = ('stop_gradient', 'label_gradient')
# Rules that say what the numbers of a loss, or of a step, do not.
_OF_GRAPHS = (
  'outer_broadcast',
  'clipped_logits',
  'inference_in_step',
  'batch_norm_mode',
  'stopped_output',
)
_OF_CALLS = 'inference_in_step'
# Stages in which what differs may be gradients alone.
_WITH_GRADIENTS = ('gradients', 'loss')
_LOOPS = frozenset({'While', 'StatelessWhile'})
_OF_CHANGES = 'training_steps'
_FORWARD = ('zero_randomness', 'seeded_constant', 'seeded_num_random_ops')
_OF_GRADIENTS = 'gradients'
# 1 - 0.999 is as far from 0.001 where it is formed in float32: no fault, where there is another.
_OF_SETTINGS = 1e-4


def diagnose(
  stage: str,
  run: str,
  differences: Sequence[Difference],
  tensors: Sequence[FailedTensor],
  sides: tuple[InspectableRun, InspectableRun] | None,
  not_traceable: str = '',
  variable_lines: Mapping[str, VariableLines] | None = None,
  traced: str = 'the port',
  bench: Bench | None = None,
  only_first: bool = False,
  tf1_in_training: OpGraph | None = None,
  of_keras3: bool = False,
  further: Sequence[str] = (),
) -> Diagnosis:
  """Returns where and why the sides part.

  Args:
    stage: the failed stage's name.
    run: the run to look into, as differences name it.
    differences: the stage's findings.
    tensors: arrays behind some of them.
    sides: that run of both sides; None where it cannot be inspected.
    not_traceable: why not.
    variable_lines: the user's lines that make the variables, by tf1 name.
    traced: what of the port is traced.
    bench: the runs of the stage, to be made again with an edited port; None for no experiments.
    only_first: whether experiments end with the mistakes that the first search shows.
    tf1_in_training: as in `FailedStage`.
    of_keras3: likewise.
    further: names of targets to look behind besides those that differ.
  """
  evidence = FailedStage(
    stage,
    tuple(differences),
    tuple(tensors),
    tf1_in_training=tf1_in_training,
    of_keras3=of_keras3,
  )
  diagnosis = Diagnosis(run)
  looking: Looking | None = None
  if sides is not None:
    evidence, diagnosis, looking = _inspected(evidence, diagnosis, sides, further)
  started = initial_value_sources(evidence, run, variable_lines or {})
  if started:
    # A curve belongs to the first source; from other initial values on there is none.
    sources = (*started, *diagnosis.sources)
    diagnosis = dataclasses.replace(diagnosis, sources=sources, growth=())
  notes = list(diagnosis.notes)
  if not diagnosis.sources:
    notes += _variable_notes(evidence, run, variable_lines or {})
  if not_traceable:
    notes.append(f'{traced} cannot be traced as a graph, so no operation is named: {not_traceable}')
  explains_itself = stage in EXPLAIN_THEMSELVES
  asked = (*_OF_GRAPHS, *(_OF_STOPS if evidence.stops and not evidence.is_forward else ()))
  causes = tuple(causes_of(evidence, asked if explains_itself else None))
  causes = proven_first(evidence, causes)
  is_stop = any(cause.rule in _OF_STOPS for cause in causes)
  if evidence.stops and (is_stop or (explains_itself and not evidence.is_forward)):
    # What differs in the backward pass follows from them, however far from there.
    diagnosis = dataclasses.replace(diagnosis, sources=evidence.stops, growth=())
  diagnosis = dataclasses.replace(diagnosis, causes=causes, notes=tuple(notes))
  is_nothing = stage == _OF_CHANGES and not _is_corrected(evidence, run, causes)
  if bench is None or looking is None or is_nothing or leaves_nothing(evidence, causes):
    return diagnosis
  if stage in (_OF_CHANGES, *_FORWARD):
    told = _of_step(diagnosis, evidence, looking)
    if told.causes != diagnosis.causes:
      return with_later_mistakes(told, evidence, looking, bench)
    diagnosis = told
  if stage == _OF_GRADIENTS:
    return _with_proven_gradients(diagnosis, evidence, bench)
  return with_experiments(diagnosis, evidence, looking, bench, only_first)


def _of_step(diagnosis: Diagnosis, evidence: FailedStage, looking: Looking) -> Diagnosis:
  """Returns a diagnosis with what no edit corrects in a step, or a call; itself without any."""
  run = diagnosis.run
  try:
    timed = read_times(looking.tf1, looking.tf2, _targets(evidence, run))
    may_stop = timed is None and evidence.stage == _OF_CHANGES
    stopped = step_stops(looking, evidence, run) if may_stop else None
  except Exception as error:  # noqa: BLE001 - it must not cost the search for an edit
    said = ' '.join(f'{type(error).__name__}: {error}'.split())[:200]
    note = f'reads before and after updates, and stops, were not looked for: {said}'
    return dataclasses.replace(diagnosis, notes=(*diagnosis.notes, note))
  found = (timed.cause, (timed.source,)) if timed is not None else stopped
  if found is None:
    return diagnosis
  causes = (found[0], *diagnosis.causes)
  return dataclasses.replace(diagnosis, sources=found[1], growth=(), causes=causes)


def _variable_notes(
  evidence: FailedStage, run: str, lines: Mapping[str, VariableLines]
) -> list[str]:
  """Returns where variables are created of which something differs that no operation shows."""
  names = dict.fromkeys(
    d.tf1_subject for d in evidence.differences if d.quantity in _OF_VARIABLES and d.run == run
  )
  known = [(name, line) for name in names if (line := lines.get(name, (None, None))[1]) is not None]
  return [
    f'{name} of the port is created at {line.with_layer()}'
    # A helper that makes layers is given their settings by whoever calls it.
    + ''.join(f'; called from {caller.in_file}' for caller in line.callers[:1])
    for name, line in known[:_SHOWN_VARIABLES]
  ]


def _with_proven_gradients(diagnosis: Diagnosis, evidence: FailedStage, bench: Bench) -> Diagnosis:
  """Returns a diagnosis with mistakes that the gradient alone shows; itself if none is proven."""
  try:
    if bench.why_not():
      return diagnosis
    found = GradientRepairing(bench).found()
    if not found.mistakes:
      # A stop that no experiment proves may be one of a library's formula, without effect; the
      # one that matters may be in a loop.
      is_seen = not evidence.tf1_op_types & _LOOPS
      causes = tuple(c for c in diagnosis.causes if is_seen or c.rule not in _OF_STOPS)
      return dataclasses.replace(diagnosis, causes=causes)
    causes = tuple(gradient_causes(evidence, found))
  except Exception as error:  # noqa: BLE001 - a fault in here must not cost what was found before
    why_not = f'experiments were abandoned: {type(error).__name__}: {error}'
    return dataclasses.replace(diagnosis, without_experiments=why_not[:300])
  sources = tuple(sources_of(found).values())
  return dataclasses.replace(diagnosis, causes=causes, sources=sources, growth=())


def _targets(evidence: FailedStage, run: str) -> list[str]:
  """Returns the graphs' names of what differs in a run by more than rounding, where anything does.

  Rounding that is listed with it begins anywhere.
  """
  found = [d for d in evidence.differences if d.run == run]
  clear = targets_of((d.quantity, d.tf1_subject) for d in found if not d.may_be_rounding)
  return clear or targets_of((d.quantity, d.tf1_subject) for d in found)


def _apart(evidence: FailedStage, run: str) -> dict[str, float]:
  """Returns how far apart the targets of a run were found, by the graphs' names of them."""
  return {
    f'{TARGET_OF[d.quantity]} {d.tf1_subject}': d.array.greatest_absolute
    for d in evidence.differences
    if d.quantity in TARGET_OF and d.run == run and d.array is not None
  }


def _is_computed(evidence: FailedStage, run: str) -> bool:
  """Returns whether anything differs in a run that an operation yields.

  Where only initial values differ, none makes that; nor what one side lacks after a step.
  """
  is_change = evidence.stage == _OF_CHANGES
  return any(
    d.quantity in TARGET_OF and not (is_change and d.aspect is Aspect.PRESENCE)
    for d in evidence.differences
    if d.run == run
  )


def _is_seen(looking: Looking, apart: Mapping[str, float]) -> bool:
  """Returns whether the graphs of a step show what differs: nothing may be found of it."""
  return looking.divergence.reproduces(apart)


def _is_corrected(evidence: FailedStage, run: str, causes: Sequence[Cause]) -> bool:
  """Returns whether edits of operations may correct a step.

  Not what one side lacks after it; nor in which mode a step calls the model.
  """
  return _is_computed(evidence, run) and all(cause.rule != _OF_CALLS for cause in causes)


def _search_notes(is_cut_short: bool, not_shown: int) -> list[str]:
  notes = []
  if is_cut_short:
    notes.append('later operations were not examined: fix the first differences first')
  if not_shown:
    notes.append(f'{not_shown} more such operations')
  return notes


def _starts(looking: Looking, evidence: FailedStage, run: str) -> tuple[Source, ...]:
  # A slot of a gradient that is only rounding differs by its rounding.
  clear = [d for d in evidence.differences if d.run == run and not d.may_be_rounding]
  apart = frozenset(targets_of((d.quantity, d.tf1_subject) for d in clear))
  pairing = looking.divergence.pairing
  return kept_otherwise(pairing, looking.tf1, looking.tf2, _OF_SETTINGS, apart)


def _without_effect(looking: Looking) -> list[str]:
  """Returns the operations that differ for nothing of what fails, as notes."""
  notes = []
  for source in looking.clearly_without_effect[:_SHOWN_VARIABLES]:
    op = looking.tf1.op_graph.ops[source.regions.tf1.end]
    line = looking.tf2.op_graph.ops[source.regions.tf2.end].source
    place = '' if line is None else f' ({line.short})'
    notes.append(f'{op.name}{place} also differs, without effect on what fails')
  return notes


def _inspected(
  evidence: FailedStage,
  diagnosis: Diagnosis,
  sides: tuple[InspectableRun, InspectableRun],
  further: Sequence[str],
) -> tuple[FailedStage, Diagnosis, Looking]:
  tf1, tf2 = sides
  # After a step a variable differs by a part of its change, which is small compared to its value.
  is_change = evidence.stage == _OF_CHANGES
  least = _OF_SETTINGS if is_change else 0.0
  looking = Looking(tf1, tf2, _targets(evidence, diagnosis.run), least, further=further)
  apart = _apart(evidence, diagnosis.run)
  is_here = is_change or looking.divergence.reproduces(apart)
  found = looking.arriving() if is_here and _is_computed(evidence, diagnosis.run) else []
  divergence, comparison = looking.divergence, looking.comparison
  with_gradients = evidence.stage in _WITH_GRADIENTS
  if with_gradients:
    found = _forward(found, tf1.op_graph) or found
  found = looking.without_small(found)
  if is_change and looking.are_small(found) and not divergence.reproduces(apart):
    found = []  # rounding: what fails comes from elsewhere, as a state that starts differently
  shown = [looking.narrowed(source) for source in found[:MOST_SOURCES]]
  sources = tuple(looking.place(source).evidence for source in found[:MOST_SOURCES])
  gradients = comparison.of_gradients() if with_gradients else list[GraphDifference]()
  values = [n for n in divergence.behind if tf1.op_graph.ops[n].op_type != CONSTANT]
  updates = _update_counts(evidence.differences, tf1.op_graph, tf2.op_graph)
  notes = _search_notes(divergence.is_cut_short, len(found) - len(shown))
  if found:  # without any, one of those may be what fails
    notes += _without_effect(looking)
  numeric = any(difference.array is not None for difference in evidence.differences)
  starts = _starts(looking, evidence, diagnosis.run) if is_change else ()
  agrees = not found and not looking.without_effect and not (is_change and _is_seen(looking, apart))
  if numeric and agrees and not gradients and not updates and not starts:
    notes.append('with the same variable values, and traced as a graph, the port agrees with tf1')
  # A curve belongs to the first source; from other values before the step on there is none.
  growth = divergence.growth(shown[0].regions.tf1.end) if shown and not starts else []
  return (
    dataclasses.replace(
      evidence,
      sources=sources,
      gradient_differences=tuple(gradients),
      stops=stopped_sources(gradients, divergence.pairing),
      is_forward=bool(_forward(found, tf1.op_graph)),
      updates=updates,
      states=state_evidence(evidence.tensors, diagnosis.run, tf1, tf2.op_graph),
      tf1_op_types=frozenset(op.op_type for op in tf1.op_graph.ops),
      tf2_op_types=frozenset(op.op_type for op in tf2.op_graph.ops),
      agrees_as_graph=agrees,
      tf1_graph=tf1.op_graph,
      tf2_graph=tf2.op_graph,
      loop_ends=() if is_change else loop_ends(tf1, tf2, divergence.ends, found),
    ),
    dataclasses.replace(
      diagnosis,
      sources=(*starts, *(source.source for source in sources)),
      gradient_differences=tuple(gradients),
      updates=updates,
      growth=_growth_points(growth, tf1.op_graph),
      operations=len(values),
      paired=sum(divergence.pairing.tf2_of[n] is not None for n in values),
      notes=tuple(notes),
    ),
    looking,
  )


def _update_counts(
  differences: Sequence[Difference], tf1: OpGraph, tf2: OpGraph
) -> tuple[tuple[str, int, int], ...]:
  """Returns the variables of another state afterwards that are not written equally often."""
  found = []
  for difference in differences:
    if difference.quantity != 'state after the call':
      continue
    variable = difference.tf1_subject
    pattern = re.compile(rf'update of {re.escape(variable)}( \(\d+\))?')
    counts = [sum(bool(pattern.fullmatch(name)) for name in g.targets()) for g in (tf1, tf2)]
    if counts[0] != counts[1]:
      found.append((variable, counts[0], counts[1]))
  return tuple(dict.fromkeys(found))


def _forward(found: list[FoundSource], graph: OpGraph) -> list[FoundSource]:
  ends = [(source, graph.ops[source.regions.tf1.end]) for source in found]
  return [source for source, op in ends if not is_backward(op) and op.op_type != TARGET]


def _growth_points(growth: list[tuple[int, float]], graph: OpGraph) -> tuple[GrowthPoint, ...]:
  """Returns some of the points, the first and the last among them."""
  if len(growth) > _GROWTH_POINTS:
    step = (len(growth) - 1) / (_GROWTH_POINTS - 1)
    growth = [growth[round(n * step)] for n in range(_GROWTH_POINTS)]
  return tuple(GrowthPoint(graph.ops[position].name, relative) for position, relative in growth)
