"""What TensorBoard shows of a case: its last run in full, of earlier ones the numbers."""

import dataclasses
import itertools
import re
from collections.abc import Sequence

from tf2verify.records.events import EventFolder, Histogram, Scalar, Text
from tf2verify.records.side_by_side import Curve
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.records.verdict_text import case_line, failure_text, outcome_text
from tf2verify.report.html.finding import finding_of
from tf2verify.report.tensorboard.names import tag
from tf2verify.report.tensorboard.quantities import numbers_of
from tf2verify.safe_text import safe_values

_SUMMARY = 'summary'
_CURVE = 'of one side, at each training step; the curves of tf1 and tf2 coincide'
# What Markdown, or the HTML that it may hold, would take for a mark.
_MARKS = re.compile(r'[\\`*<>\[\]|&!]')


@dataclasses.dataclass(frozen=True)
class RunOfCase:
  """One run of a case, reduced to what is drawn.

  Attributes:
    number: of the run.
    of_run: what every run has a point of.
    of_last: what is drawn of the last run alone.
    tf1: curves of that side.
    tf2: likewise.
  """

  number: int
  of_run: tuple[Scalar | Histogram | Text, ...]
  of_last: tuple[Scalar | Histogram | Text, ...]
  tf1: tuple[Scalar, ...]
  tf2: tuple[Scalar, ...]


def run_of_case(case: CaseVerdict, number: int) -> RunOfCase:
  """Reduces a verdict.

  Args:
    case: the verdict, with deviations where these are to be drawn.
    number: of the run.
  """
  case = safe_values(case)
  stages = [numbers_of(stage, number) for stage in case.stages]
  remarks = [remark for stage in stages for remark in stage.remarks]
  summary = Text(_SUMMARY, number, _summary_of(case, remarks))
  return RunOfCase(
    number,
    (summary, *(event for stage in stages for event in stage.of_run)),
    tuple(event for stage in stages for event in stage.of_last),
    *(
      tuple(
        point
        for stage in case.stages
        for curve in stage.curves
        for point in _points(stage, curve, side)
      )
      for side in (0, 1)
    ),
  )


def _points(stage: StageVerdict, curve: Curve, side: int) -> list[Scalar]:
  """Returns the curve of a side, without steps that the side does not tell."""
  name = tag(stage.stage, curve.quantity.replace(' ', '_'))
  return [
    Scalar(name, step, value, f'{curve.quantity} {_CURVE}')
    for step, value in zip(curve.steps, (curve.tf1, curve.tf2)[side], strict=True)
    if value is not None
  ]


def folders_of(runs: Sequence[RunOfCase]) -> tuple[EventFolder, ...]:
  """Returns the folders of a case.

  Args:
    runs: of one case, the oldest first. If their numbers do not rise, as where they come
      from several journals, they are counted from 1.
  """
  numbers = [run.number for run in runs]
  if any(after <= before for before, after in itertools.pairwise(numbers)):
    numbers = list(range(1, len(runs) + 1))
  events = [
    dataclasses.replace(event, step=number)
    for number, run in zip(numbers, runs, strict=True)
    for event in run.of_run
  ]
  last = runs[-1]
  folders = [EventFolder('', (*events, *last.of_last))]
  folders += [EventFolder(name, side) for name, side in (('tf1', last.tf1), ('tf2', last.tf2))]
  return tuple(folder for folder in folders if folder.events)


def _summary_of(case: CaseVerdict, remarks: Sequence[str]) -> str:
  """Returns as Markdown: verdict, cause, a table of the stages and the first failure in full.

  Args:
    case: the verdict.
    remarks: what the charts cannot show.
  """
  lines = [f'**{case.status.value}** {_literal(case_line(case))}', '']
  found = finding_of(case)
  if found is not None:
    lines += [f'First stage that did not pass: {found.stage} ({found.status.value})', '']
    lines += [f'- {cause.label}: {_literal(cause.text)}' for cause in found.causes]
    if found.without_cause:
      lines.append(f'- {_literal(found.without_cause)}')
    lines.append('')
  lines += ['| stage | status | found | seconds |', '| --- | --- | --- | --- |']
  lines += [
    f'| {stage.number} {stage.stage} | {stage.status.value} | {_literal(outcome_text(stage))} | '
    f'{stage.seconds:.1f} |'
    for stage in case.stages
  ]
  lines += ['', *(f'- {_literal(remark)}' for remark in remarks)]
  if case.first_failure is not None:
    text = failure_text(case, case.first_failure).replace('```', "'''")
    lines += ['', '```text', text, '```']
  versions = ', '.join(f'{name} {version}' for name, version in case.environment)
  return '\n'.join([*lines, '', _literal(versions)]).strip() + '\n'


def _literal(text: str) -> str:
  """Returns text that Markdown shows as it is, on one line."""
  return _MARKS.sub(lambda mark: f'&#{ord(mark[0])};', ' '.join(text.split()))
