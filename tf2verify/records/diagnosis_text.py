"""Diagnoses as a terminal shows them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.records.op_graph import STOPS
from tf2verify.records.text_line import Role, TextLine

if TYPE_CHECKING:
  from tf2verify.records.diagnosis import (
    Cause,
    Diagnosis,
    GraphDifference,
    GrowthPoint,
    Source,
    Statistics,
  )
  from tf2verify.records.observation import SourceLine

# A difference, as a share of a tensor, that says how well both sides agree.
_LARGEST_TELLING = 1e-3
_SHOWN_SOURCES = 3
_SHOWN_DIFFERENCES = 6
_SHOWN_CAUSES = 3
_LONGEST = 200
_BARS = '▁▂▃▄▅▆▇█'
_PATH_LENGTH = 8


def cause_lines(diagnosis: Diagnosis, explained: bool = False) -> list[TextLine]:
  """Returns the likely causes for reading, or that there is none.

  Args:
    diagnosis: what was found.
    explained: whether a cause is named already, by the hint of a stage.
  """
  tested = sum(cause.experiment is not None for cause in diagnosis.causes)
  told: list[tuple[int, list[TextLine]]] = []
  for same in _by_text(diagnosis.causes[: max(_SHOWN_CAUSES, tested)]):
    numbers = sorted({one.experiment.number for one in same if one.experiment is not None})
    cause = next((one for one in same if one.is_proven or one.numbers), same[0])
    block = [TextLine(f'{cause_label(cause, numbers)}: {cause.text}', Role.CAUSE)]
    if cause.evidence:
      block.append(TextLine(f'  seen: {_clip(cause.evidence)}'))
    told.append((numbers[0] if numbers else 0, block))
  told += _causes_without_words(diagnosis)
  if all(number for number, _ in told):
    told.sort(key=lambda one: one[0])
  lines = [line for _, block in told for line in block]
  if not diagnosis.causes and not explained:
    lines.append(TextLine(without_cause_text(diagnosis), Role.CAUSE))
  if diagnosis.without_experiments:
    label = 'experiments' if diagnosis.experimented else 'no experiment'
    lines.append(TextLine(f'  {label}: {_clip(diagnosis.without_experiments)}'))
  return lines


def _causes_without_words(diagnosis: Diagnosis) -> list[tuple[int, list[TextLine]]]:
  """Returns the mistakes of which no cause is told beside one that is counted among several.

  Returns:
    The number of each among these, and its line.
  """
  told = {cause.experiment.number for cause in diagnosis.causes if cause.experiment is not None}
  found = []
  for source in diagnosis.sources if told else ():
    known = source.experiment
    if known is not None and known.mistakes > 1 and known.number not in told:
      told.add(known.number)
      place = source.tf2_op if source.tf2_source is None else source.tf2_source.short
      label = f'likely cause {known.number} of {known.mistakes} ({outcome_text(known)})'
      text = f'{label}: what differs at {place}; no known mistake matches it'
      found.append((known.number, [TextLine(text, Role.CAUSE)]))
  return found


def _by_text(causes: Iterable[Cause]) -> list[list[Cause]]:
  """Returns causes that are said in the same words together, where one is of several places."""
  found: dict[str, list[Cause]] = {}
  for cause in causes:
    found.setdefault(cause.text, []).append(cause)
  return list(found.values())


def cause_label(cause: Cause, numbers: Sequence[int] = ()) -> str:
  """Returns what is said before a cause: how sure it is.

  Args:
    cause: what is told.
    numbers: of all mistakes that it is told of, where these are several.
  """
  experiment = cause.experiment
  if experiment is None:
    return f'cause (proven: {cause.numbers})' if cause.numbers else 'likely cause'
  several = experiment.mistakes > 1
  label = f'cause {experiment.number} of {experiment.mistakes}' if several else 'cause'
  if len(numbers) > 1:
    first, last = ', '.join(map(str, numbers[:-1])), numbers[-1]
    label = f'causes {first} and {last} of {experiment.mistakes}'
  if cause.numbers:
    return f'{label} (proven: {cause.numbers})'
  if cause.is_proven:
    return f'{label} (proven: {outcome_text(experiment)})'
  return f'likely {label} ({outcome_text(experiment)})'


def outcome_text(experiment: Experiment) -> str:
  """Returns what an experiment has shown: `with it both sides agree to 3e-07`."""
  several = experiment.mistakes > 1
  what = {
    Edit.SETTING: 'it',
    Edit.OPERATIONS: "tf1's operations in place of the port's",
    Edit.VALUE: "tf1's value in place of the port's",
  }[experiment.edit]
  count = experiment.mistakes - 1
  others = f' and the other {count if count > 1 else "one"} corrected' if several else ''
  by_value = experiment.by_value - (experiment.edit is Edit.VALUE)
  if by_value:
    others += f' ({"" if count == 1 else f"{by_value} "}by the value of tf1)'
  if experiment.outcome is Outcome.PROVEN:
    agree = _agreement_text(experiment.apart)
    return f'with {what}{others} both sides {agree}{", without it they do not" if several else ""}'
  return (
    f'explains part of the difference, which is smaller with {what}{others}; {experiment.left} '
    f'{"tensor still differs" if experiment.left == 1 else "tensors still differ"}'
  )


def _agreement_text(apart: float) -> str:
  if not apart:
    return 'agree exactly'
  # Of a tensor that is all noise, rounding is as large as it.
  return f'agree to {apart:.1g}' if apart < _LARGEST_TELLING else 'agree up to rounding noise'


def place_lines(diagnosis: Diagnosis) -> list[TextLine]:
  """Returns where the sides first diverge: the user's lines, and how the graphs differ there."""
  lines: list[TextLine] = []
  groups = alike_sources(diagnosis.sources)
  shown = max(_SHOWN_SOURCES, sum(group[0].experiment is not None for group in groups))
  for number, (source, *others) in enumerate(groups[:shown]):
    lines += _source_lines(source, 'first divergence' if number == 0 else 'then')
    if others:
      lines.append(TextLine(f'  the same at {len(others)} more: {_names(others)}'))
  if len(groups) > shown:
    rest = [source for source, *_ in groups[shown:]]
    lines.append(TextLine(f'… and {len(rest)} more, see the JSON report: {_names(rest)}'))
  said = [difference for source in diagnosis.sources for difference in source.differences]
  paths = [difference for difference in diagnosis.gradient_differences if difference not in said]
  for difference in paths[:_SHOWN_DIFFERENCES]:
    lines.append(TextLine(f'gradient path: {graph_difference_text(difference)}'))
  for variable, tf1, tf2 in diagnosis.updates[:_SHOWN_DIFFERENCES]:
    lines.append(
      TextLine(f'{variable} is written {times_text(tf1)} per call in tf1, {times_text(tf2)} in tf2')
    )
  return lines


def measure_lines(diagnosis: Diagnosis) -> list[TextLine]:
  """Returns how the difference grows, how much of the graphs was matched, and the notes."""
  lines = _growth_lines(diagnosis.growth)
  if diagnosis.operations and diagnosis.paired < diagnosis.operations:
    matched = f'{diagnosis.paired:,} of {diagnosis.operations:,} tf1 operations have a match in tf2'
    lines.append(TextLine(matched))
  lines += [TextLine(f'note: {_clip(note)}', Role.REMARK) for note in diagnosis.notes]
  return lines


def alike_sources(sources: Sequence[Source]) -> list[list[Source]]:
  """Returns sources in groups: those at which the graphs differ in the same way together."""
  groups: dict[object, list[Source]] = {}
  for number, source in enumerate(sources):
    marks = tuple((d.aspect, d.op_type, d.what, d.tf1, d.tf2) for d in source.differences)
    groups.setdefault(marks or number, []).append(source)
  return list(groups.values())


def _names(sources: Sequence[Source]) -> str:
  names = ', '.join(source.tf1_op for source in sources[:3])
  return names + (', …' if len(sources) > 3 else '')


def without_cause_text(diagnosis: Diagnosis) -> str:
  """Returns what to say of a diagnosis that names no cause."""
  differs = any(source.differences for source in diagnosis.sources)
  if differs or diagnosis.gradient_differences:
    return (
      'no known mistake matches: look at the two lines where the sides first diverge, and at what '
      'differs in the graphs there'
    )
  if any(source.tf1_source or source.tf2_source for source in diagnosis.sources):
    return 'no known mistake matches: look at the two lines where the sides first diverge'
  return 'no known mistake matches'


def source_text(source: Source) -> str:
  """Returns which operation it is and how its outputs differ, on one line."""
  return f'{source_name(source)}: {source_size_text(source)}'


def source_name(source: Source) -> str:
  """Returns which operation it is."""
  op = source.tf1_op
  if source.tf1_op.rsplit('/', 1)[-1] != source.tf2_op.rsplit('/', 1)[-1]:
    op += f" (tf2 '{source.tf2_op}')"
  if source.tf1_first or source.tf2_first:  # what has no match is what differs
    op = f'{source.tf1_first or repr(source.tf2_first) + " of tf2"}, on the way to {op}'
  return op


def source_size_text(source: Source) -> str:
  """Returns how the outputs of an operation differ."""
  if source.is_correction:
    return _correction_text(source)
  how = 'run alone on the inputs of tf1' if source.alone else 'its inputs agree'
  if source.rewired:
    how = 'it reads other tensors than in tf1'
  elif source.reads_lists and not source.alone:
    how = 'it reads lists of tensors, which cannot be compared'
  if source.is_initial_value:
    return f'initial values differ ({_size_text(source)})'
  if source.rewired and not source.absolute:
    return how
  if not source.absolute:
    is_stop = STOPS & {*source.tf1_path, *source.tf2_path}
    return f'values agree, gradients {"are stopped on one side" if is_stop else "differ"}'
  if not math.isfinite(source.absolute):
    return f'{how}, {_unlike_text(source)}'
  return f'{how}, its outputs differ ({_size_text(source)})'


def _correction_text(source: Source) -> str:
  changed = math.isfinite(source.absolute) and source.absolute > 0
  size = f', which changes its outputs by up to {source.absolute:.3g}' if changed else ''
  return f'all agrees if this alone is corrected{size}'


def _unlike_text(source: Source) -> str:
  """Returns what differs where no number tells how far apart two outputs are."""
  one, other = source.tf1_output, source.tf2_output
  if one is None or other is None:
    return 'shape, dtype or non-finite elements differ'
  if one.shape != other.shape:
    return f'its shapes differ: {one.shape} in tf1, {other.shape} in tf2'
  if one.dtype != other.dtype:
    return f'its dtypes differ: {one.dtype} in tf1, {other.dtype} in tf2'
  return 'its non-finite elements differ'


def _size_text(source: Source) -> str:
  text = f'max absolute difference {source.absolute:.3g}'
  relative = source.relative
  return text + (f', {relative:.2g} of max |tf1|' if math.isfinite(relative) else '; 0 in tf1')


def _source_lines(source: Source, head: str) -> list[TextLine]:
  lines = [TextLine(f'{head}: {source_text(source)}')]
  for side, path, line, output in (
    ('tf1', source.tf1_path, source.tf1_source, source.tf1_output),
    ('tf2', source.tf2_path, source.tf2_source, source.tf2_output),
  ):
    computed = f'{operations_text(path)}{statistics_text(output)}'
    if side == 'tf1' and not source.has_tf1_place:
      continue
    if line is not None:
      place = TextLine(f'  {side}: {_line_text(line)}', Role.CODE, start=7, verbatim=True)
      lines += [place, *(TextLine(f'       {_clip(text)}') for text in line.leading())]
      lines.append(TextLine(f'       {computed}'))
    else:
      lines.append(TextLine(f'  {side}: {computed}', hanging=5))
  if source.tf2_lines:
    lines.append(TextLine(f'       also here: {more_lines_text(source)}'))
  if source.values:
    lines.append(TextLine(f'  {source.values}'))
  # Masks of a slice have one text together.
  texts = list(dict.fromkeys(graph_difference_text(known) for known in source.differences))
  lines += [TextLine(f'  {text}') for text in texts[:_SHOWN_DIFFERENCES]]
  if len(texts) > _SHOWN_DIFFERENCES:
    lines.append(TextLine(f'  … and {len(texts) - _SHOWN_DIFFERENCES} more'))
  if source.experiment is not None and not source.experiment.text:
    lines.append(TextLine(f'  tried: {outcome_text(source.experiment)}'))
  return lines


def more_lines_text(source: Source) -> str:
  """Returns the other lines of a place: `port.py:7, port.py:9`."""
  return ', '.join(line.short for line in source.tf2_lines)


def times_text(number: int) -> str:
  """Returns how often: `never`, `once`, `twice`, `3 times`."""
  return {0: 'never', 1: 'once', 2: 'twice'}.get(number, f'{number} times')


def operations_text(path: Sequence[str]) -> str:
  """Returns the types of the operations on a path: `Mul → Add`."""
  shown = [op for op in path if op != 'target'] or ['passed through unchanged']
  if len(shown) > _PATH_LENGTH:
    shown = [*shown[: _PATH_LENGTH - 2], f'… {len(shown) - _PATH_LENGTH + 1} more', shown[-1]]
  return ' → '.join(shown)


def statistics_text(found: Statistics | None) -> str:
  """Returns a tensor in a few numbers, to follow what computed it; '' for none."""
  if found is None:
    return ''
  text = f'; {found.shape} {found.dtype}, {found.minimum:.3g} to {found.maximum:.3g}'
  text += f', mean {found.mean:.3g}'
  if found.zeros:
    text += f', {100 * found.zeros:.0f} % zeros'
  if found.non_finite:
    text += f', {found.non_finite} not finite'
  return text


def graph_difference_text(difference: GraphDifference) -> str:
  """Returns one difference of the two graphs on one line."""
  aspect = difference.aspect.value
  op = f'{difference.op} ({difference.op_type})'
  if aspect in ('missing in tf2', 'extra in tf2'):
    brings = f', which {difference.what}' if difference.what else ''
    if difference.elsewhere:
      other = 'the port' if aspect == 'missing in tf2' else 'tf1'
      brings = f' at this place; {other} has it at {difference.elsewhere}'
    if difference.respelled:
      brings = ', or the same with variables in another layout'
    if difference.alike:
      brings = f' at this place; the port has {difference.alike} without a counterpart'
    return f'{aspect}: {_clip(difference.tf1 or difference.tf2)}{brings}'
  if aspect == 'corrected':
    what = f'{difference.what} ' if difference.what else ''
    one, other = difference.tf1 or 'left out', difference.tf2 or 'without it'
    return f'{op}: {what}{_clip(other)} (tf2), {_clip(one)} (corrected)'
  if aspect == 'replaced':
    return f'tf1 computes {_clip(difference.tf1)}, tf2 computes {_clip(difference.tf2)}'
  if aspect == 'type':
    return f'{difference.op}: {difference.tf1} (tf1), {difference.tf2} (tf2)'
  what = difference.what or aspect
  if what.endswith('_mask') and difference.tf1.startswith('['):
    what = 'slice'
  if aspect in ('order of inputs', 'wiring'):
    what = f'{aspect}, {what}'
  return f'{op}: {what} {_clip(difference.tf1)} (tf1), {_clip(difference.tf2)} (tf2)'


def _growth_lines(growth: Sequence[GrowthPoint]) -> list[TextLine]:
  if len(growth) < 3:
    return []
  curve = ''.join(_bar(point.relative) for point in growth)
  return [
    TextLine(
      f'relative difference from there to the end: {curve}  {growth[0].relative:.1g} to '
      f'{growth[-1].relative:.1g} at {growth[-1].op} (1e-7 {_BARS[0]} to 1 {_BARS[-1]})'
    )
  ]


def _bar(relative: float) -> str:
  if not relative > 0:
    return ' '
  height = 7 if not math.isfinite(relative) else (math.log10(relative) + 7) / 7 * 7
  return _BARS[min(max(int(height), 0), 7)]


def _line_text(line: SourceLine) -> str:
  """Returns a line with its code cut short; not its path, whose length is that of the folder."""
  return str(dataclasses.replace(line, code=_clip(line.code)))


def _clip(text: str) -> str:
  text = ' '.join(text.split())
  return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'
