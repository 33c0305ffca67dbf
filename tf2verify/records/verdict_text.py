"""Verdicts as a terminal shows them."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tf2verify.records.diagnosis_text import diagnosis_lines
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.status import Status
from tf2verify.records.table_text import table_lines

if TYPE_CHECKING:
  from tf2verify.records.verdict import CaseVerdict, Compared, Figure, StageVerdict

SHOWN_DIFFERENCES = 6
_LONGEST_TEXT = 400
_OF_NO_TENSOR = (Aspect.SIZE, Aspect.UNREAD)


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
    text += f'; {compared.blind_spots} blind spot{"s" * (compared.blind_spots > 1)}, see the notes'
  return text


def outcome_text(verdict: StageVerdict) -> str:
  """Returns, on one line, what was compared, how much of it differs, or why nothing was."""
  said = verdict.reason or compared_text(verdict.compared)
  if verdict.error is not None:
    said = f'{verdict.error.side} side: {verdict.error.summary}'
  elif verdict.differences:
    said = _failure_count(verdict)
  return said.replace('\n', ' ')


def stage_line(verdict: StageVerdict) -> str:
  """Returns the verdict on one line: number, name, status, what was compared, seconds."""
  said = outcome_text(verdict)
  if len(said) > 140:
    said = said[:139] + '…'
  name, status = f'{verdict.number} {verdict.stage}', verdict.status.value
  return f'{name:<25} {status:<14} {said}  ({verdict.seconds:.1f} s)'


def _remarks(verdict: StageVerdict) -> list[str]:
  figures = [
    f'{figure_text(verdict, figure)}: tf1 {figure.tf1:.8g}, tf2 {figure.tf2:.8g}'
    for figure in verdict.figures
  ]
  return [*figures, *_tables(verdict), *notes_text(verdict)]


def figure_text(verdict: StageVerdict, figure: Figure) -> str:
  """Returns of what a figure is, and whether the sides agree in it, as in all of a passed stage."""
  return f'{figure.quantity}, {figure.run}{", agrees" if _passed(verdict) else ""}'


def notes_text(verdict: StageVerdict) -> list[str]:
  """Returns the notes, those that are blind spots marked as such."""
  return [
    f'{"blind spot" if note in verdict.blind_spots else "note"}: {note}' for note in verdict.notes
  ]


def _tables(verdict: StageVerdict) -> list[str]:
  return [line for table in verdict.tables for line in table_lines(table)]


def _failure_count(verdict: StageVerdict) -> str:
  compared = verdict.compared
  found = len(verdict.differences)
  if compared.noun == 'calls':
    return f'{found} created after the first call ({compared_text(compared)})'
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
  return f'{differ} ({count_text(compared.tensors)} compared, {compared.unpaired} unmatched)'


def stage_text(verdict: StageVerdict) -> str:
  """Returns the line of a stage that is well, and the whole finding of one that is not."""
  if verdict.error is None and not verdict.differences:
    return '\n'.join([stage_line(verdict), *(f'  {line}' for line in _remarks(verdict))])
  return '\n'.join(_finding(verdict, f'stage {verdict.stage!r}'))


def _finding(verdict: StageVerdict, head: str, before: Iterable[str] = ()) -> list[str]:
  lines = []
  if verdict.error is not None:
    lines.append(f'{head} ERROR on the {verdict.error.side} side: {verdict.error.summary}')
    lines += [f'  {line}' for line in before]
    lines += [f'  | {line}' for line in verdict.error.traceback_text.splitlines()]
    return lines
  if verdict.differences:
    lines.append(f'{head} {verdict.status.value}: {_failure_count(verdict)}.')
  else:
    lines.append(f'{head} {verdict.status.value}: {verdict.reason}')
  lines += [f'  {line}' for line in before]
  lines += [f'  {line}' for line in differences_text(verdict.differences)]
  if verdict.diagnosis is not None:
    explained = any(difference.hint for difference in verdict.differences)
    lines += [f'  {line}' for line in diagnosis_lines(verdict.diagnosis, explained)]
  lines += [f'  {line}' for line in _tables(verdict)]
  lines += [f'  {note}' for note in notes_text(verdict)]
  return lines


def differences_text(differences: Sequence[Difference]) -> list[str]:
  """Returns the first differences in full, the likely causes once each, and what was cut."""
  lines: list[str] = []
  hints: list[str] = []
  for difference in differences[:SHOWN_DIFFERENCES]:
    lines += difference_lines(difference)
  for difference in differences:
    if difference.hint and difference.hint not in hints:
      hints.append(difference.hint)
  if len(differences) > SHOWN_DIFFERENCES:
    rest = len(differences) - SHOWN_DIFFERENCES
    lines.append(f'… and {count_text(rest)} more, see the JSON report (--report_dir)')
  lines += [f'likely cause: {hint}' for hint in hints[:SHOWN_DIFFERENCES]]
  if len(hints) > SHOWN_DIFFERENCES:
    lines.append(f'… and {len(hints) - SHOWN_DIFFERENCES} more likely causes')
  return lines


def difference_lines(difference: Difference) -> list[str]:
  """Returns a difference for reading: what differs, and below it, indented, both sides."""
  run = f' [{difference.run}]' if difference.run else ''
  head = f'{difference.quantity} {difference.subject}{run}'
  if difference.array is not None:
    return _array_lines(head, difference.aspect, difference.array)
  if difference.aspect is Aspect.CREATION:
    return [f'{head}: {difference.tf2}']
  lines = [f'{head}: {difference.aspect.value} differs']
  lines += [f'  tf1: {_clip(difference.tf1)}'] if difference.tf1 else []
  lines += [f'  tf2: {_clip(difference.tf2)}'] if difference.tf2 else []
  return lines


def _array_lines(head: str, aspect: Aspect, array: ArrayDifference) -> list[str]:
  share = 100.0 * array.mismatched / max(array.size, 1)
  noun = 'samples and signed means' if array.sampled else 'elements'
  first = (
    f'{head}  {_shape(array.shape)} {array.dtype}: {count_text(array.mismatched)} of '
    f'{count_text(array.size)} {noun} differ ({share:.1f} %)'
  )
  if aspect is Aspect.NON_FINITE:
    first += ', in their non-finite pattern'
  place = f' at {_shape(array.index)}' if array.index else ''
  if array.block:
    place = f' of the signed mean of {array.block} elements from {_shape(array.index)} on'
  values = f'tf1 {_scalar(array.tf1)}, tf2 {_scalar(array.tf2)}'
  if array.rtol == 0 and array.atol == 0:
    return [first, f'  first{place}: {values} (must be equal)']
  if math.isnan(array.greatest_absolute):
    return [first, f'  worst{place}: {values}']
  noise = '' if array.noise is None else f'; rounding noise here {array.noise:.1g}'
  noise += ', which may be all of it' if array.within_noise else ''
  allowed = f'(allowed {array.atol:.3g} + {array.rtol:.3g}·|tf1|{noise})'
  return [
    first,
    f'  greatest difference {array.greatest_absolute:.3g}{place}: {values} {allowed}; greatest '
    f'relative {array.greatest_relative:.3g}{_required(array)}',
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


def _scalar(value: Any) -> str:
  return f'{value:.8g}' if isinstance(value, float) else repr(value)


def _clip(text: str) -> str:
  return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + '…'


def failure_text(case: CaseVerdict, stage: StageVerdict) -> str:
  """Returns what a failing test of one stage shows."""
  from_passed = [v.stage for v in case.stages if v.number < stage.number and _passed(v)]
  before = [f'passed before: {", ".join(from_passed)}'] if from_passed else []
  lines = _finding(stage, f'{case.case}: stage {stage.stage!r}', before)
  if case.run_again:
    lines.append(f'  run again: {case.run_again}')
  return '\n'.join(lines)


def _passed(verdict: StageVerdict) -> bool:
  return verdict.status is Status.PASSED


def case_text(case: CaseVerdict) -> str:
  """Returns the ladder, a line a stage, and the first failure in full."""
  lines = [f'{case.case} ({case.module})']
  for verdict in case.stages:
    lines.append(f'  {stage_line(verdict)}')
    if not verdict.differences:
      lines += [f'      {line}' for line in _remarks(verdict)]
  failure = case.first_failure
  if failure is not None:
    lines += ['', failure_text(case, failure), '']
  lines.append(case_line(case))
  return '\n'.join(lines)


def case_line(case: CaseVerdict) -> str:
  """Returns the case's verdict on one line."""
  passed = sum(_passed(verdict) for verdict in case.stages)
  without = sum(verdict.status is Status.NOT_APPLICABLE for verdict in case.stages)
  outcome = f'{passed} of {len(case.stages) - without} stages passed'
  if without:
    outcome += f', {without} not applicable'
  return f'{case.case}: {case.status.value}, {outcome}, {case.seconds:.1f} s'
