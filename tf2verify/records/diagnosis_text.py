"""Diagnoses as a terminal shows them."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from tf2verify.records.diagnosis import (
    Diagnosis,
    GraphDifference,
    GrowthPoint,
    Source,
    Statistics,
  )

_SHOWN_SOURCES = 3
_SHOWN_DIFFERENCES = 6
_SHOWN_CAUSES = 3
_LONGEST = 200
_BARS = '▁▂▃▄▅▆▇█'
_PATH_LENGTH = 8


def diagnosis_lines(diagnosis: Diagnosis, explained: bool = False) -> list[str]:
  """Returns the diagnosis for reading: the causes, the first divergence, how it grows.

  Args:
    diagnosis: what was found.
    explained: whether a cause is named already, by the hint of a stage.
  """
  lines: list[str] = []
  for cause in diagnosis.causes[:_SHOWN_CAUSES]:
    lines.append(f'likely cause: {cause.text}')
    lines.append(f'  seen: {_clip(cause.evidence)}')
  groups = alike_sources(diagnosis.sources)
  for number, (source, *others) in enumerate(groups[:_SHOWN_SOURCES]):
    lines += _source_lines(source, 'first divergence' if number == 0 else 'then')
    if others:
      lines.append(f'  the same at {len(others)} more: {_names(others)}')
  if len(groups) > _SHOWN_SOURCES:
    rest = [source for source, *_ in groups[_SHOWN_SOURCES:]]
    lines.append(f'… and {len(rest)} more, see the JSON report: {_names(rest)}')
  for difference in diagnosis.gradient_differences[:_SHOWN_DIFFERENCES]:
    lines.append(f'gradient path: {graph_difference_text(difference)}')
  for variable, tf1, tf2 in diagnosis.updates[:_SHOWN_DIFFERENCES]:
    lines.append(
      f'{variable} is written {times_text(tf1)} per call in tf1, {times_text(tf2)} in tf2'
    )
  lines += _growth_lines(diagnosis.growth)
  if not diagnosis.causes and not explained:
    lines.append(without_cause_text(diagnosis))
  if diagnosis.operations and diagnosis.paired < diagnosis.operations:
    lines.append(
      f'{diagnosis.paired:,} of {diagnosis.operations:,} values of tf1 have a partner in tf2'
    )
  lines += [f'note: {_clip(note)}' for note in diagnosis.notes]
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
      'no known mistake fits: the two lines, and what differs in the graphs, above, are the place '
      'to look'
    )
  if any(source.tf1_source or source.tf2_source for source in diagnosis.sources):
    return 'no known mistake fits: the two lines above are the place to look'
  return 'no known mistake fits'


def source_text(source: Source) -> str:
  """Returns which operation it is and how its outputs differ, on one line."""
  return f'{source_name(source)}: {source_size_text(source)}'


def source_name(source: Source) -> str:
  """Returns which operation it is."""
  op = source.tf1_op
  if source.tf1_op.rsplit('/', 1)[-1] != source.tf2_op.rsplit('/', 1)[-1]:
    op += f" (tf2 '{source.tf2_op}')"
  if source.tf1_first or source.tf2_first:  # what has no partner is what is other
    op = f'{source.tf1_first or repr(source.tf2_first) + " of tf2"}, on the way to {op}'
  return op


def source_size_text(source: Source) -> str:
  """Returns how the outputs of an operation differ."""
  how = 'run alone on the inputs of tf1' if source.alone else 'its inputs agree'
  if source.rewired:
    how = 'it reads other tensors than in tf1'
  if source.is_initial_value:
    if not math.isfinite(source.relative):
      return f'initial values differ by {source.absolute:.3g}'
    return f'initial values differ by {source.absolute:.3g}, {source.relative:.2g} of their size'
  if not source.absolute:
    return 'values agree, gradients are stopped on one side'
  size = 'shape or non-finite elements differ'
  if math.isfinite(source.relative):
    size = f'outputs differ by {source.absolute:.3g}, {source.relative:.2g} of their size'
  return f'{how}, {size}'


def _source_lines(source: Source, head: str) -> list[str]:
  lines = [f'{head}: {source_text(source)}']
  for side, path, line, output in (
    ('tf1', source.tf1_path, source.tf1_source, source.tf1_output),
    ('tf2', source.tf2_path, source.tf2_source, source.tf2_output),
  ):
    lines.append(f'  {side}: {operations_text(path)}{statistics_text(output)}')
    if line is not None:
      lines.append(f'       {_clip(str(line))}')
  if source.tf2_lines:
    lines.append(f'       also here: {more_lines_text(source)}')
  for difference in source.differences[:_SHOWN_DIFFERENCES]:
    lines.append(f'  {graph_difference_text(difference)}')
  if len(source.differences) > _SHOWN_DIFFERENCES:
    lines.append(f'  … and {len(source.differences) - _SHOWN_DIFFERENCES} more')
  return lines


def more_lines_text(source: Source) -> str:
  """Returns the other lines of a place: `port.py:7, port.py:9`."""
  return ', '.join(f'{os.path.basename(line.path)}:{line.line}' for line in source.tf2_lines)


def times_text(number: int) -> str:
  """Returns how often: `never`, `once`, `twice`, `3 times`."""
  return {0: 'never', 1: 'once', 2: 'twice'}.get(number, f'{number} times')


def operations_text(path: Sequence[str]) -> str:
  """Returns the types of the operations on a path: `Mul → Add`."""
  shown = [op for op in path if op != 'target'] or ['passed on as it is']
  if len(shown) > _PATH_LENGTH:
    shown = [*shown[: _PATH_LENGTH - 2], f'… {len(shown) - _PATH_LENGTH + 1} more', shown[-1]]
  return ' → '.join(shown)


def statistics_text(found: Statistics | None) -> str:
  """Returns a tensor in a few numbers, to go behind what gave it; '' for none."""
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
    return f'{aspect}: {_clip(difference.tf1 or difference.tf2)}'
  if aspect == 'replaced':
    return f'tf1 computes {_clip(difference.tf1)}, tf2 computes {_clip(difference.tf2)}'
  if aspect == 'type':
    return f'{difference.op}: {difference.tf1} (tf1), {difference.tf2} (tf2)'
  what = difference.what or aspect
  if aspect in ('order of inputs', 'wiring'):
    what = f'{aspect}, {what}'
  return f'{op}: {what} {_clip(difference.tf1)} (tf1), {_clip(difference.tf2)} (tf2)'


def _growth_lines(growth: Sequence[GrowthPoint]) -> list[str]:
  if len(growth) < 3:
    return []
  curve = ''.join(_bar(point.relative) for point in growth)
  return [
    f'difference over size, from there on: {curve}  {growth[0].relative:.1g} to '
    f'{growth[-1].relative:.1g} at {growth[-1].op} (1e-7 {_BARS[0]} to 1 {_BARS[-1]})'
  ]


def _bar(relative: float) -> str:
  if not relative > 0:
    return ' '
  height = 7 if not math.isfinite(relative) else (math.log10(relative) + 7) / 7 * 7
  return _BARS[min(max(int(height), 0), 7)]


def _clip(text: str) -> str:
  text = ' '.join(text.split())
  return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'
