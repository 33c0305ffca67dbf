"""From a failed stage to where the sides part and why."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.interventions import arriving_sources
from tf2verify.diagnosis.divergence.narrowing import Narrowing
from tf2verify.diagnosis.divergence.sources import FoundSource, InspectableRun
from tf2verify.diagnosis.divergence.trials import Trials
from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.diagnosis.patterns.states import state_evidence
from tf2verify.diagnosis.places import (
  MOST_SOURCES,
  VariableLines,
  initial_value_sources,
  source_record,
  stopped_sources,
)
from tf2verify.records.diagnosis import (
  Diagnosis,
  GraphDifference,
  GrowthPoint,
)
from tf2verify.records.difference import Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import CONSTANT, TARGET, OpGraph
from tf2verify.relation.op_pairs import is_backward

_GROWTH_POINTS = 48
# Rules that see where a gradient is stopped.
_OF_STOPS = ('stop_gradient', 'label_gradient')
_TARGET_OF = {
  'output': 'output',
  'regularization loss': 'regularization loss',
  'gradient': 'gradient',
  'state after the call': 'update of',
}


def diagnose(
  stage: str,
  run: str,
  differences: Sequence[Difference],
  tensors: Sequence[FailedTensor],
  sides: tuple[InspectableRun, InspectableRun] | None,
  not_traceable: str = '',
  variable_lines: Mapping[str, VariableLines] | None = None,
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
  """
  evidence = FailedStage(stage, tuple(differences), tuple(tensors), not_traceable=not_traceable)
  diagnosis = Diagnosis(run)
  if sides is not None:
    evidence, diagnosis = _inspected(evidence, diagnosis, *sides)
  started = initial_value_sources(evidence, run, variable_lines or {})
  if started:
    # A curve belongs to the first source; from other initial values on there is none.
    sources = (*started, *diagnosis.sources)
    diagnosis = dataclasses.replace(diagnosis, sources=sources, growth=())
  notes = list(diagnosis.notes)
  if not_traceable:
    notes.append(f'the port cannot be traced as a graph, so no operation is named: {not_traceable}')
  causes = tuple(causes_of(evidence))
  if evidence.stops and any(cause.rule in _OF_STOPS for cause in causes):
    # What differs in the backward pass follows from them, however far from there.
    diagnosis = dataclasses.replace(diagnosis, sources=evidence.stops, growth=())
  return dataclasses.replace(diagnosis, causes=causes, notes=tuple(notes))


def _targets(evidence: FailedStage, run: str) -> list[str]:
  """Returns the graphs' names of what differs in a run."""
  return [
    f'{_TARGET_OF[d.quantity]} {d.tf1_subject}'
    for d in evidence.differences
    if d.quantity in _TARGET_OF and d.run == run
  ]


def _apart(evidence: FailedStage, run: str) -> dict[str, float]:
  """Returns how far apart the targets of a run were found, by the graphs' names of them."""
  return {
    f'{_TARGET_OF[d.quantity]} {d.tf1_subject}': d.array.greatest_absolute
    for d in evidence.differences
    if d.quantity in _TARGET_OF and d.run == run and d.array is not None
  }


def _search_notes(is_cut_short: bool, not_shown: int) -> list[str]:
  notes = []
  if is_cut_short:
    notes.append('operations further on were not looked at: what differs first comes first')
  if not_shown:
    notes.append(f'{not_shown} more such operations')
  return notes


def _inspected(
  evidence: FailedStage, diagnosis: Diagnosis, tf1: InspectableRun, tf2: InspectableRun
) -> tuple[FailedStage, Diagnosis]:
  divergence = Divergence(tf1, tf2, _targets(evidence, diagnosis.run))
  is_here = divergence.reproduces(_apart(evidence, diagnosis.run))
  found = arriving_sources(divergence, tf1, tf2) if is_here else []
  if evidence.stage == 'gradients':
    found = _forward_first(found, tf1.op_graph)
  narrowing = Narrowing(tf1, tf2, divergence)
  shown = [narrowing.narrowed(source) for source in found[:MOST_SOURCES]]
  comparison = GraphComparison(divergence.pairing)
  trials = Trials(tf1, tf2, divergence.ends, divergence.as_tf2)
  sources = tuple(_tried(source, comparison, trials) for source in shown)
  gradients: list[GraphDifference] = []
  if evidence.stage == 'gradients':
    gradients = comparison.of_gradients()
  values = [n for n in divergence.behind if tf1.op_graph.ops[n].op_type != CONSTANT]
  paired = sum(divergence.pairing.tf2_of[n] is not None for n in values)
  updates = _update_counts(evidence.differences, tf1.op_graph, tf2.op_graph)
  notes = _search_notes(divergence.is_cut_short, len(found) - len(shown))
  numeric = any(difference.array is not None for difference in evidence.differences)
  if numeric and not found and not gradients and not updates:
    notes.append(
      'from the same variable values, and traced as a graph, the port yields what tf1 yields'
    )
  growth = divergence.growth(shown[0].regions.tf1.end) if shown else []
  return (
    dataclasses.replace(
      evidence,
      sources=sources,
      gradient_differences=tuple(gradients),
      stops=stopped_sources(gradients, divergence.pairing),
      updates=updates,
      states=state_evidence(evidence.tensors, diagnosis.run, tf1, tf2.op_graph),
      tf1_op_types=frozenset(op.op_type for op in tf1.op_graph.ops),
      tf2_op_types=frozenset(op.op_type for op in tf2.op_graph.ops),
      agrees_as_graph=not found,
      tf1_graph=tf1.op_graph,
      tf2_graph=tf2.op_graph,
    ),
    dataclasses.replace(
      diagnosis,
      sources=tuple(source.source for source in sources),
      gradient_differences=tuple(gradients),
      updates=updates,
      growth=_growth_points(growth, tf1.op_graph),
      operations=len(values),
      paired=paired,
      notes=tuple(notes),
    ),
  )


def _tried(source: FoundSource, comparison: GraphComparison, trials: Trials) -> SourceEvidence:
  """Returns a source with what differs in the graphs there, tried out."""
  graphs = trials.tf1.op_graph, trials.tf2.op_graph
  differences = comparison.at(source.regions)
  changes = comparison.changes(differences)
  standings = trials.standings(source, changes)
  known = zip((difference for difference, _ in changes), standings, strict=True)
  record = source_record(source, *graphs, differences)
  return SourceEvidence(record, source.tf1, source.tf2_as_tf1, tuple(known))


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


def _forward_first(found: list[FoundSource], graph: OpGraph) -> list[FoundSource]:
  """Returns the sources of the forward pass alone, where there are any: gradients follow them."""
  ends = [(source, graph.ops[source.regions.tf1.end]) for source in found]
  forward = [source for source, op in ends if not is_backward(op) and op.op_type != TARGET]
  return forward or found


def _growth_points(growth: list[tuple[int, float]], graph: OpGraph) -> tuple[GrowthPoint, ...]:
  """Returns some of the points, the first and the last among them."""
  if len(growth) > _GROWTH_POINTS:
    step = (len(growth) - 1) / (_GROWTH_POINTS - 1)
    growth = [growth[round(n * step)] for n in range(_GROWTH_POINTS)]
  return tuple(GrowthPoint(graph.ops[position].name, relative) for position, relative in growth)
