"""Verdicts as a terminal shows them."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tf2verify.records.diagnosis_text import cause_lines, measure_lines, place_lines
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.graph_notes import without_effect
from tf2verify.records.status import Status
from tf2verify.records.table_text import table_lines
from tf2verify.records.text_line import Role, TextLine, indented, joined

if TYPE_CHECKING:
  from tf2verify.records.verdict import CaseVerdict, Compared, Figure, StageVerdict

SHOWN_DIFFERENCES = 6
# What the two sides of a difference are called.
Sides = tuple[str, str]
SIDES: Sides = ('tf1', 'tf2')
_LONGEST_TEXT = 400
_LONGEST_OUTCOME = 140
_OF_NO_TENSOR = (Aspect.SIZE, Aspect.UNREAD)
_IN_JSON = ', see the JSON report (--report_dir)'


def count_text(number: int) -> str:
  """Returns a count for reading: `1,114`, `59.3 M`."""
  if number >= 10_000_000:
    return f'{number / 1e6:.1f} M'
  return f'{number:,}'


def compared_text(compared: Compared) -> str:
  """Returns how much was looked at: `490 tensors, 54.3 M elements; 3 inconclusive`."""
  noun = compared.noun if compared.tensors != 1 else compared.noun.removesuffix('s')
  text = f'{count_text(compared.tensors)} {noun}'
  if compared.elements:
    text += f', {count_text(compared.elements)} element{"" if compared.elements == 1 else "s"}'
  if compared.inconclusive:
    text += f'; {count_text(compared.inconclusive)} inconclusive'
  if compared.rounding:
    text += f'; {count_text(compared.rounding)} differ{"s" * (compared.rounding == 1)} by rounding'
  if compared.blind_spots:
    text += f'; {compared.blind_spots} blind spot{"s" * (compared.blind_spots > 1)}'
  return text


def compared_and_proven(verdict: StageVerdict) -> str:
  """Returns how much was looked at, and how much of it is proven."""
  said = compared_text(verdict.compared) + accepted_count(verdict)
  proven = '' if verdict.proven is None else verdict.proven.to_text()
  return f'{said}; {proven}' if proven else said


def accepted_count(verdict: StageVerdict) -> str:
  """Returns, to go on with, by how many accepted causes a stage was judged; '' by none."""
  many = len(verdict.accepted)
  return f'; {many} accepted cause{"" if many == 1 else "s"}' if many else ''


def outcome_text(verdict: StageVerdict) -> str:
  """Returns, on one line, what was compared, how much of it differs, or why nothing was."""
  said = verdict.reason or compared_and_proven(verdict)
  if verdict.error is not None:
    said = f'{verdict.error.side} side: {verdict.error.summary}'
  elif verdict.differences:
    said = _failure_count(verdict)
  return said.replace('\n', ' ')


def stage_line(verdict: StageVerdict) -> str:
  """Returns the verdict on one line: number, name, status, what was compared, seconds."""
  return ladder_line(verdict).text


def remark_lines(verdict: StageVerdict) -> list[TextLine]:
  """Returns the figures, tables and notes of a stage."""
  figures = [
    TextLine(f'{figure_text(verdict, figure)}: tf1 {figure.tf1:.8g}, tf2 {figure.tf2:.8g}')
    for figure in verdict.figures
  ]
  tables = [TextLine(line, verbatim=True) for line in _tables(verdict)]
  return [*figures, *tables, *_notes(verdict)]


def blind_spot_lines(stages: Sequence[StageVerdict]) -> list[TextLine]:
  """Returns what passed stages could not see, each once, and which tensors are inconclusive."""
  spots = dict.fromkeys(spot for stage in stages for spot in stage.blind_spots)
  names = {spot: ', '.join(s.stage for s in stages if spot in s.blind_spots) for spot in spots}
  texts = [f'blind spot, {names[spot]}: {spot}' for spot in spots]
  texts += [f'{one.stage}: {text}' for one in stages if one.passed for text in one.undecided]
  return [TextLine(text, Role.REMARK) for text in texts]


def accepted_lines(stages: Sequence[StageVerdict]) -> list[TextLine]:
  """Returns the causes that a case accepts, each once, by the stage that it explains first."""
  first: dict[str, tuple[str, str]] = {}
  for stage in stages:
    for cause in stage.accepted:
      first.setdefault(cause.name, (stage.stage, cause.to_text()))
  return [TextLine(f'{text}, {stage}', Role.REMARK) for stage, text in first.values()]


def _notes(verdict: StageVerdict) -> list[TextLine]:
  return [TextLine(note, Role.REMARK) for note in notes_text(verdict)]


def figure_text(verdict: StageVerdict, figure: Figure) -> str:
  """Returns of what a figure is, and whether the sides agree in it, as in all of a passed stage."""
  return f'{figure.quantity}, {figure.run}{", agrees" if verdict.status is Status.PASSED else ""}'


def notes_text(verdict: StageVerdict) -> list[str]:
  """Returns the accepted causes, and the notes, those that are blind spots marked as such."""
  accepted = [cause.to_text() for cause in verdict.accepted]
  return accepted + [
    f'{"blind spot" if note in verdict.blind_spots else "note"}: {note}' for note in verdict.notes
  ]


def _tables(verdict: StageVerdict) -> list[str]:
  return [line for table in verdict.tables for line in table_lines(table)]


def _failure_count(verdict: StageVerdict) -> str:
  compared = verdict.compared
  differ = differing_text(verdict)
  if compared.noun == 'calls':
    return f'{differ} ({compared_text(compared)})'
  return f'{differ} ({count_text(compared.tensors)} compared, {compared.unpaired} unmatched)'


def differing_text(verdict: StageVerdict) -> str:
  """Returns how much of what a failed stage compared differs: `4 of 22 tensors differ`."""
  compared = verdict.compared
  found = len(verdict.differences)
  if compared.noun == 'calls':
    return f'{found} created after the first call'
  if compared.noun == 'variables':
    differ = '1 differs' if found == 1 else f'{count_text(found)} differ'
  else:
    others = sum(difference.aspect in _OF_NO_TENSOR for difference in verdict.differences)
    # Both come in addition to the tensors that differ.
    more = (Aspect.ORDER, Aspect.DISTRIBUTION)
    found -= others + sum(difference.aspect in more for difference in verdict.differences)
    differ = (
      f'{count_text(found)} of {count_text(compared.tensors + compared.unpaired)} tensors differ'
    )
    if others:
      differ += f', {others} other finding{"s" * (others > 1)}'
  return differ


def stage_text(verdict: StageVerdict) -> str:
  """Returns the line of a stage that is well, and the whole finding of one that is not."""
  if verdict.error is None and not verdict.differences:
    return '\n'.join([stage_line(verdict), *(f'  {line.text}' for line in remark_lines(verdict))])
  return joined(_finding(verdict, f'stage {verdict.stage!r}'))


def _finding(
  verdict: StageVerdict, head: str, run_again: Sequence[TextLine] = ()
) -> list[TextLine]:
  """Returns what a reader acts on first: the cause, then the lines of code, then numbers."""
  said = f'{verdict.status.value}: {verdict.reason}'
  below: list[TextLine] = []
  if verdict.error is not None:
    said = f'ERROR on the {verdict.error.side} side: {verdict.error.summary}'
    trace = verdict.error.traceback_text.splitlines()
    below = [TextLine(f'| {line}', Role.CODE, verbatim=True) for line in trace]
  else:
    if verdict.differences:
      said = f'{verdict.status.value}: {_failure_count(verdict)}.'
    below = _explanation(verdict)
    below += [TextLine(line, verbatim=True) for line in _tables(verdict)]
    below += _notes(verdict)
  return [TextLine(f'{head} {said}', role_of(verdict.status)), *indented([*below, *run_again])]


def _explanation(verdict: StageVerdict) -> list[TextLine]:
  diagnosis = verdict.diagnosis
  lines = _hint_lines(verdict.differences)
  if diagnosis is not None:
    lines += cause_lines(diagnosis, explained=bool(lines)) + place_lines(diagnosis)
  lines += [TextLine(line) for line in _known_differences(verdict.differences)]
  return lines + (measure_lines(diagnosis) if diagnosis is not None else [])


def differences_text(differences: Sequence[Difference], sides: Sides = SIDES) -> list[str]:
  """Returns the likely causes once each, the first differences in full, and how many more."""
  hints = [line.text for line in _hint_lines(differences)]
  return [*hints, *_known_differences(differences, '', sides)]


def _hint_lines(differences: Sequence[Difference]) -> list[TextLine]:
  hints = list(dict.fromkeys(one.hint for one in differences if one.hint))
  lines = [TextLine(f'likely cause: {hint}', Role.CAUSE) for hint in hints[:SHOWN_DIFFERENCES]]
  if len(hints) > SHOWN_DIFFERENCES:
    lines.append(TextLine(f'… and {len(hints) - SHOWN_DIFFERENCES} more likely causes'))
  return lines


def _known_differences(
  differences: Sequence[Difference], rest_in: str = _IN_JSON, sides: Sides = SIDES
) -> list[str]:
  shown = differences[:SHOWN_DIFFERENCES]
  lines = [line for one in shown for line in difference_lines(one, sides)]
  if len(differences) > SHOWN_DIFFERENCES:
    rest = len(differences) - SHOWN_DIFFERENCES
    lines.append(f'… and {count_text(rest)} more{rest_in}')
  return lines


def difference_lines(difference: Difference, sides: Sides = SIDES) -> list[str]:
  """Returns a difference for reading: what differs, and below it, indented, both sides.

  Args:
    difference: what differs.
    sides: what the two sides are called, where they are not TF1 and the port, and the difference
      itself does not say it.
  """
  sides = difference.sides or sides
  run = f' [{difference.run}]' if difference.run else ''
  head = f'{difference.quantity} {difference.subject}{run}'
  if difference.array is not None:
    return _array_lines(head, difference.aspect, difference.array, sides)
  if difference.aspect is Aspect.CREATION:
    return [f'{head}: {difference.tf2}']
  lines = [f'{head}: {difference.aspect.value} differs']
  lines += [f'  {sides[0]}: {_clip(difference.tf1)}'] if difference.tf1 else []
  lines += [f'  {sides[1]}: {_clip(difference.tf2)}'] if difference.tf2 else []
  return lines


def _array_lines(head: str, aspect: Aspect, array: ArrayDifference, sides: Sides) -> list[str]:
  percent = 100.0 * array.mismatched / max(array.size, 1)
  noun = 'samples and signed means' if array.sampled else 'elements'
  first = (
    f'{head}  {_shape(array.shape)} {array.dtype}: {count_text(array.mismatched)} of '
    f'{count_text(array.size)} {noun} differ ({percent:.1f} %)'
  )
  if aspect is Aspect.NON_FINITE:
    first += ', in their non-finite pattern'
  place = f' at {_shape(array.index)}' if array.index else ''
  if array.block:
    place = f' of the signed mean of {array.block} elements from {_shape(array.index)} on'
  values = f'{sides[0]} {scalar(array.tf1)}, {sides[1]} {scalar(array.tf2)}'
  if array.rtol == 0 and array.atol == 0:
    return [first, f'  first{place}: {values} (must be equal)']
  if math.isnan(array.greatest_absolute):
    return [first, f'  worst{place}: {values}']
  noise = '' if array.noise is None else f'; rounding noise here {array.noise:.1g}'
  noise += ', which may be all of it' if array.within_noise else ''
  allowed = f'(allowed {array.atol:.3g} + {array.rtol:.3g}·|{sides[0]}|{noise})'
  return [
    first,
    f'  max absolute difference {array.greatest_absolute:.3g}{place}: {values} {allowed}; max '
    f'relative difference {array.greatest_relative:.3g}{_required(array)}',
  ]


def _required(array: ArrayDifference) -> str:
  ways = (('atol', array.required_atol), ('rtol', array.required_rtol))
  shown = [f'{name} {rounded_up(way)}' for name, way in ways if way is not None and way < math.inf]
  return f'; would pass with {" or ".join(shown)}' if shown else ''


def rounded_up(number: float) -> str:
  """Returns a positive number to three digits, never less than it is: `0.000312`, `2.1e-07`."""
  upwards = decimal.Context(prec=3, rounding=decimal.ROUND_CEILING)
  return f'{float(upwards.create_decimal_from_float(number)):.3g}'


def _shape(shape: Sequence[int]) -> str:
  return str(tuple(int(size) for size in shape))


def scalar(value: Any) -> str:
  """Returns a number to eight digits; anything else as it is written in Python."""
  return f'{value:.8g}' if isinstance(value, float) else repr(value)


def _clip(text: str, longest: int = _LONGEST_TEXT) -> str:
  return text if len(text) <= longest else text[: longest - 1] + '…'


def failure_text(case: CaseVerdict, stage: StageVerdict) -> str:
  """Returns what a failing test of one stage shows."""
  return joined(failure_lines(case, stage))


def failure_lines(case: CaseVerdict, stage: StageVerdict) -> list[TextLine]:
  """Returns what a failing test of one stage shows, by lines."""
  before = [v for v in case.stages if v.number < stage.number and v.status is Status.PASSED]
  names = ', '.join(v.stage for v in before)
  after = [TextLine(f'passed before: {names}')] if before else []
  same = case.same_error(stage)
  if same is not None and stage.error is not None:
    head = f"{case.case}: stage '{stage.stage}' ERROR, the same as in '{same}'"
    return [TextLine(f'{head}: {stage.error.summary}', role_of(stage.status))]
  if stage.stage == next((failed.stage for failed in case.failures), ''):
    after = [
      *map(TextLine, without_effect(v.proven for v in before)),
      *after,
      *run_again_lines(case),
    ]
  return _finding(stage, f'{case.case}: stage {stage.stage!r}', after)


def run_again_lines(case: CaseVerdict) -> list[TextLine]:
  """Returns the command that runs the first failed stage again; nothing where there is none."""
  if not case.run_again:
    return []
  return [TextLine(f'run again: {case.run_again}', Role.CODE, start=11, verbatim=True)]


def ladder_lines(stages: Sequence[StageVerdict]) -> list[TextLine]:
  """Returns a line a stage; one for those in a row that are blocked by the same failure."""
  lines = []
  for (status, _), group in itertools.groupby(stages, lambda one: (one.status, one.reason)):
    alike = list(group)
    if status is Status.BLOCKED and len(alike) > 1:
      name, reason = f'{alike[0].number} to {alike[-1].number}', alike[0].reason
      said = f'{len(alike)} stages {reason}'
      lines.append(_row(name, status, said))
    else:
      lines += map(ladder_line, alike)
  return lines


def ladder_line(verdict: StageVerdict, above_report: bool = False) -> TextLine:
  """Returns the verdict on one line, as `stage_line` does.

  Args:
    verdict: of the stage.
    above_report: whether the report of the stage follows, so that an error is not said here too.
  """
  said = _clip(outcome_text(verdict), _LONGEST_OUTCOME)
  if above_report and verdict.error is not None:
    said = f'on the {verdict.error.side} side'
  name = f'{verdict.number} {verdict.stage}'
  return _row(name, verdict.status, f'{said}  ({verdict.seconds:.1f} s)')


def _row(name: str, status: Status, said: str) -> TextLine:
  text = f'{name:<25} {status.value:<14} {said}'
  return TextLine(text, role_of(status), 26, 26 + len(status.value), hanging=26)


def role_of(status: Status) -> Role:
  """Returns how a terminal marks a status."""
  if status in (Status.FAILED, Status.ERROR):
    return Role.FAILED
  return Role.PASSED if status is Status.PASSED else Role.UNDECIDED


def case_text(case: CaseVerdict) -> str:
  """Returns the ladder, a line a stage, and all failures in full."""
  lines = [TextLine(f'{case.case} ({case.module})')]
  groups = itertools.groupby(case.stages, lambda one: one.status is Status.BLOCKED)
  for blocked, group in groups:
    if blocked:
      lines += indented(ladder_lines(list(group)))
      continue
    for verdict in group:
      lines += indented([ladder_line(verdict)])
      if not verdict.differences:
        lines += indented(remark_lines(verdict), 3)
  for failure in case.failures:
    lines += [TextLine(''), *failure_lines(case, failure)]
  lines += [TextLine('')] if case.failures else []
  return joined([*lines, case_status_line(case)])


def case_status_line(case: CaseVerdict) -> TextLine:
  """Returns the case's verdict on one line, its status marked."""
  start = len(case.case) + 2
  return TextLine(case_line(case), role_of(case.status), start, start + len(case.status.value))


def case_line(case: CaseVerdict) -> str:
  """Returns the case's verdict on one line."""
  passed = sum(verdict.status is Status.PASSED for verdict in case.stages)
  without = sum(verdict.status is Status.NOT_APPLICABLE for verdict in case.stages)
  outcome = f'{passed} of {len(case.stages) - without} stages passed'
  names = dict.fromkeys(cause.name for verdict in case.stages for cause in verdict.accepted)
  if names:
    outcome += f' ({len(names)} accepted cause{"" if len(names) == 1 else "s"})'
  if without:
    outcome += f', {without} not applicable'
  return f'{case.case}: {case.status.value}, {outcome}, {case.seconds:.1f} s'
