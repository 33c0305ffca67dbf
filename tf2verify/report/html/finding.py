"""What is wrong with a case, in the order in which a reader wants to know it."""

import dataclasses
from collections.abc import Sequence

from tf2verify.records.diagnosis import (
  BY_EXPERIMENT,
  Diagnosis,
  GraphAspect,
  GraphDifference,
  Source,
)
from tf2verify.records.diagnosis_text import (
  alike_sources,
  cause_label,
  graph_difference_text,
  more_lines_text,
  operations_text,
  source_name,
  source_size_text,
  statistics_text,
  times_text,
)
from tf2verify.records.difference import Difference
from tf2verify.records.graph_notes import without_effect
from tf2verify.records.observation import SourceLine
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_text import difference_lines, outcome_text

_SHOWN_PLACES = 3
_SHOWN_CAUSES = 6
_SHOWN_DIFFERENCES = 3
_INITIAL_VALUE = 'initial value'
# What a name of an input or an attribute stands for.
_NAMED = {GraphAspect.CONSTANT: 'the constant', GraphAspect.ATTRIBUTE: 'the attribute'}


@dataclasses.dataclass(frozen=True)
class CauseView:
  """A likely cause."""

  text: str  # one sentence
  evidence: str = ''  # what was seen; '' for a stage's own hint
  label: str = 'likely cause'  # how sure it is
  is_proven: bool = False  # whether an experiment has proven it
  is_of_graph: bool = False  # whether it names operations alone, and no mistake


@dataclasses.dataclass(frozen=True)
class SideView:
  """One side of a place where the sides part."""

  name: str  # 'tf1' or 'tf2'
  line: SourceLine | None  # the user's line; None where it is not known
  computes: str  # the operations, as text
  statistics: str  # of what they give; '' where it is not known


@dataclasses.dataclass(frozen=True)
class PlaceView:
  """A place where the sides part."""

  name: str  # which operation
  text: str  # how its outputs differ
  sides: tuple[SideView, ...]  # tf1, tf2
  values: str  # what sets the values of the port apart; '' where nothing does
  differences: tuple[str, ...]  # of the graphs, as text
  others: tuple[str, ...]  # names of the places that part in the same way


@dataclasses.dataclass(frozen=True)
class MistakeView:
  """A cause, and where the sides part by it."""

  cause: CauseView
  place: PlaceView | None  # None where it is not known


@dataclasses.dataclass(frozen=True)
class DifferenceView:
  """A difference, in words."""

  text: str  # of what, and how many elements
  details: tuple[str, ...]  # the numbers or texts of both sides


@dataclasses.dataclass(frozen=True)
class FindingView:
  """The first stage of a case that is not well."""

  stage: str  # its name
  number: int  # its rung
  status: Status  # how it ended
  outcome: str  # how much differs, or why nothing can be told
  causes: tuple[CauseView, ...]  # likely ones, the most specific first
  more_causes: int  # how many are left out here; the table of differences has them
  without_cause: str  # what to say where none is known; '' where one is
  graphs_differ: bool  # whether that names a difference of the graphs
  differences: tuple[DifferenceView, ...]  # the first ones, where no cause speaks of them
  more_differences: int  # how many are left out here; 0 where none is shown
  places: tuple[PlaceView, ...]  # where the sides part first
  place: PlaceView | None  # the first one, if it is that of the first cause
  further: tuple[MistakeView, ...]  # the causes after the first one
  more_places: int  # how many groups of places are left out; the JSON report has them
  facts: tuple[str, ...]  # what else was seen: gradient paths, updates, pairs
  passed: tuple[str, ...]  # names of the stages that passed before
  traceback: str  # of the user's code; '' without an error
  run: str  # which run was looked into; '' without a diagnosis
  # The difference that stands first, where the lines of both sides are not known.
  where: DifferenceView | None
  run_again: str  # the command that runs the stage again; '' but for the first stage that failed

  @property
  def is_for_reader(self) -> bool:
    """Whether the lines of both sides are known, and no cause says what to write there."""
    known = bool(self.places) and all(side.line is not None for side in self.places[0].sides)
    return known and (not self.causes or self.causes[0].is_of_graph)

  @property
  def headline(self) -> str:
    """The likely cause if there is one, else what differs first: in the graphs, in numbers."""
    if self.causes:
      return self.causes[0].text
    if self.graphs_differ:
      return self.without_cause
    first = f'; first {self.differences[0].text}' if self.differences else ''
    return f'{self.outcome}{first}'


def finding_of(case: CaseVerdict) -> FindingView | None:
  """Returns what is wrong first; None for a case in which nothing is."""
  return next(iter(findings_of(case)), None)


def findings_of(case: CaseVerdict) -> tuple[FindingView, ...]:
  """Returns what is wrong, of each stage that failed; none depends on another."""
  return tuple(_finding(case, stage) for stage in case.failures)


def _finding(case: CaseVerdict, stage: StageVerdict) -> FindingView:
  diagnosis = stage.diagnosis or Diagnosis()
  passed = (known for known in case.stages if known.status is Status.PASSED)
  before = [known for known in passed if known.number < stage.number]
  causes = _causes(stage)
  groups = alike_sources(diagnosis.sources)
  of_graphs = [known for source in diagnosis.sources for known in source.differences]
  of_graphs += diagnosis.gradient_differences
  without = ''
  if not causes and stage.diagnosis is not None:
    without = 'no known mistake matches'
    if of_graphs:
      without = f'no known mistake matches; the graphs differ: {_graph_text(of_graphs[0])}'
  shown = _differences(stage, [cause.text for cause in causes])
  return FindingView(
    stage=stage.stage,
    number=stage.number,
    status=stage.status,
    outcome=outcome_text(stage),
    causes=tuple(causes[:_SHOWN_CAUSES]),
    more_causes=max(0, len(causes) - _SHOWN_CAUSES),
    without_cause=without,
    graphs_differ=bool(of_graphs),
    differences=tuple(_difference(known) for known in shown),
    more_differences=len(stage.differences) - len(shown) if shown else 0,
    places=tuple(_place(group) for group in groups[:_SHOWN_PLACES]),
    place=_place_of(causes[0] if causes else None, stage, groups),
    further=tuple(
      MistakeView(cause, _place_of(cause, stage, groups, only_own=True))
      for cause in causes[1:_SHOWN_CAUSES]
    ),
    more_places=max(0, len(groups) - _SHOWN_PLACES),
    facts=(*_facts(diagnosis), *without_effect(known.proven for known in before)),
    passed=tuple(known.stage for known in before),
    traceback=stage.error.traceback_text if stage.error is not None else '',
    run=diagnosis.run,
    where=_difference(stage.differences[0])
    if not groups and not shown and stage.differences
    else None,
    run_again=case.run_again if stage.stage == case.failures[0].stage else '',
  )


def _causes(stage: StageVerdict) -> list[CauseView]:
  """Returns the causes of the diagnosis, then the hints of the differences, once each."""
  found = [] if stage.diagnosis is None else stage.diagnosis.causes
  causes = {
    cause.text: CauseView(
      cause.text,
      cause.evidence,
      cause_label(cause),
      cause.is_proven,
      cause.rule == BY_EXPERIMENT,
    )
    for cause in found
  }
  for difference in stage.differences:
    if difference.hint:
      causes.setdefault(difference.hint, CauseView(difference.hint))
  return list(causes.values())


def _place_of(
  cause: CauseView | None,
  stage: StageVerdict,
  groups: Sequence[Sequence[Source]],
  only_own: bool = False,
) -> PlaceView | None:
  """Returns the place of a cause: where the edit was tried that proves it.

  Args:
    cause: the cause; None where none is known.
    stage: the failed stage.
    groups: its places.
    only_own: whether it has none otherwise; else it is the first one, unless another cause's.
  """
  known = [] if stage.diagnosis is None else stage.diagnosis.causes
  tried = {one.text: one.experiment for one in known if one.experiment is not None}
  own = None if cause is None else tried.get(cause.text)
  by_own = ([one for one in group if one.experiment == own] for group in groups)
  found = [group for group in by_own if group] if own is not None else []
  if not found and not only_own:
    others = [experiment for experiment in tried.values() if experiment != own]
    found = [list(group) for group in groups[:1] if group[0].experiment not in others]
  return _place(found[0]) if found else None


def _differences(stage: StageVerdict, causes: Sequence[str]) -> list[Difference]:
  """Returns what to show of a stage's differences besides its causes.

  The worst, or in training what parts first, where no cause is known. Initial values are the
  cause of what is computed from them: those that no cause names come before all others.
  """
  initial = {
    known.subject: known
    for known in reversed(stage.differences)
    if known.quantity == _INITIAL_VALUE and not any(known.tf1_subject in cause for cause in causes)
  }
  first = list(initial.values())[::-1]
  if not causes:
    first += [known for known in stage.differences if known.quantity != _INITIAL_VALUE]
  return first[:_SHOWN_DIFFERENCES]


def _difference(known: Difference) -> DifferenceView:
  text, *details = difference_lines(known)
  return DifferenceView(' '.join(text.split()), tuple(line.strip() for line in details))


def _place(group: Sequence[Source]) -> PlaceView:
  source, *others = group
  sides = [
    ('tf1', source.tf1_source, source.tf1_path, source.tf1_output),
    ('tf2', source.tf2_source, source.tf2_path, source.tf2_output),
  ][0 if source.has_tf1_place else 1 :]
  also = [f'also here: {more_lines_text(source)}'] if source.tf2_lines else []
  values = [source.values] if source.values else []
  return PlaceView(
    source_name(source),
    source_size_text(source).removeprefix('its '),
    tuple(
      SideView(name, line, operations_text(path), statistics_text(output).removeprefix('; '))
      for name, line, path, output in sides
    ),
    source.values,
    (*also, *values, *(_graph_text(difference) for difference in source.differences)),
    tuple(other.tf1_op for other in others),
  )


def _graph_text(difference: GraphDifference) -> str:
  """Returns a difference of the graphs for those who do not know the operation's inputs."""
  named = _NAMED.get(difference.aspect)
  if named is None or not difference.what:
    return graph_difference_text(difference)
  return (
    f'{difference.op} ({difference.op_type}): {named} {difference.what} is {difference.tf1} in '
    f'tf1, {difference.tf2} in tf2'
  )


def _facts(diagnosis: Diagnosis) -> list[str]:
  facts = [f'gradient path: {_graph_text(known)}' for known in diagnosis.gradient_differences]
  facts += [
    f'{variable} is written {times_text(tf1)} per call in tf1, {times_text(tf2)} in tf2'
    for variable, tf1, tf2 in diagnosis.updates
  ]
  if diagnosis.operations and diagnosis.paired < diagnosis.operations:
    facts.append(
      f'{diagnosis.paired:,} of {diagnosis.operations:,} tf1 operations have a match in tf2'
    )
  return facts
