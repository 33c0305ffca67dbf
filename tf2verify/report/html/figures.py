"""Figures of a case, as SVG that takes its colours from the page."""

from __future__ import annotations

import dataclasses
import io
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from typing import Any

from tf2verify.records.diagnosis import Diagnosis
from tf2verify.records.difference import Deviation, Judgement
from tf2verify.records.side_by_side import Curve
from tf2verify.records.verdict import CaseVerdict, StageVerdict

_SVG = 'http://www.w3.org/2000/svg'
_LINK = '{http://www.w3.org/1999/xlink}href'
# Colours that stand for those of the page, which are others in the light and in the dark.
_COLOURS = {
  '#010101': 'var(--ink)',
  '#020202': 'var(--tf1)',
  '#030303': 'var(--tf2)',
  '#040404': 'var(--bad)',
  '#050505': 'var(--line)',
}
_INK, _TF1, _TF2, _BAD, _LINE = _COLOURS
# The width of a figure in inches, and of a label below its axes in letters.
_WIDTH = 7.2
_LONGEST_LABEL = 22
_LEAST_GROWTH = 1e-9


@dataclasses.dataclass(frozen=True)
class Figure:
  """A figure."""

  kind: str  # `growth`, `gradients` or `training`
  title: str  # what it shows
  sentence: str  # what there is to see in it, for those who cannot
  table: str  # the name of the table that holds its numbers; '' where the table of tensors does
  svg: str = ''  # the picture; '' where it was not drawn


def figures_of(case: CaseVerdict, draws: bool) -> tuple[Figure, ...]:
  """Returns the figures of a case.

  Args:
    case: the verdict.
    draws: whether to draw them; their sentences are there anyway.
  """
  found = []
  for stage in case.stages:
    if stage.diagnosis is not None and len(stage.diagnosis.growth) > 1:
      found.append(_growth(case, stage, stage.diagnosis, draws))
    if stage.stage == 'gradients':
      measured = [known for known in stage.deviations if known.noise is not None]
      if measured:
        found.append(_gradients(case, stage, measured, draws))
    found += [_training(case, stage, curve, draws) for curve in stage.curves if _has_shape(curve)]
  return tuple(found)


def _growth(case: CaseVerdict, stage: StageVerdict, diagnosis: Diagnosis, draws: bool) -> Figure:
  points = diagnosis.growth
  finite = [point.relative for point in points if math.isfinite(point.relative)]
  first, last = points[0], points[-1]
  sentence = (
    f'From {first.op} (relative difference {first.relative:.2g}) over {len(points)} operations '
    f'to {last.op} ({last.relative:.2g}); the maximum is {max(finite, default=math.inf):.2g}.'
  )
  title = 'How the difference grows from the first divergence on'

  def draw(axes: Any) -> None:
    heights = [min(max(point.relative, _LEAST_GROWTH), 1e9) for point in points]
    axes.plot(range(len(points)), heights, '-o', color=_BAD, markersize=3.5, linewidth=1.5)
    axes.set_yscale('log')
    axes.set_ylim(*_decades(heights))
    _plain_numbers(axes.yaxis)
    shown = sorted({round(i * (len(points) - 1) / 7) for i in range(8)})
    axes.set_xticks(shown, [_short(points[i].op) for i in shown], rotation=28, ha='right')
    axes.set_ylabel('relative difference')

  salt = f'{case.module}-{case.case}-{stage.stage}-growth'
  svg = _drawn(draw, salt, 3.2, below=1.2, left=1.3) if draws else ''
  return Figure('growth', title, sentence, f'growth-{stage.stage}', svg)


def _decades(values: Sequence[float]) -> tuple[float, float]:
  """Returns the powers of ten around the values, the upper with some room."""
  low, high = (math.log10(value) for value in (min(values), max(values)))
  return 10.0 ** math.floor(low), 10.0 ** (max(math.ceil(high), math.floor(low) + 1) + 0.1)


def _plain_numbers(axis: Any) -> None:
  """Writes the numbers of a logarithmic axis as `1e-05`, at powers of ten only."""
  from matplotlib.ticker import NullLocator

  axis.set_major_formatter('{x:g}')
  axis.set_minor_locator(NullLocator())


def _short(name: str) -> str:
  """Returns the end of an operation's name, whole parts where they fit."""
  parts = name.split('/')
  text = parts.pop()
  while parts and len(text) + len(parts[-1]) < _LONGEST_LABEL:
    text = f'{parts.pop()}/{text}'
  if len(text) > _LONGEST_LABEL:
    return '…' + text[-_LONGEST_LABEL:]
  return ('…/' if parts else '') + text


def _gradients(
  case: CaseVerdict, stage: StageVerdict, measured: Sequence[Deviation], draws: bool
) -> Figure:
  dots = [(known, max(y for _, y in known.frontier)) for known in measured if known.frontier]
  failed = [(k.noise or 0.0, y) for k, y in dots if k.judgement is Judgement.FAILED]
  excused = [(k.noise or 0.0, y) for k, y in dots if k.judgement is not Judgement.FAILED]
  above = sum(y > (known.noise or 0.0) for known, y in dots)
  sentence = (
    f'{len(dots)} gradients are beyond the tolerance, so their rounding noise was measured: '
    f'{above} differ by more than their noise (above the diagonal), {len(failed)} are judged as '
    'different.'
  )
  title = 'Gradients: difference against rounding noise, one dot per variable'

  def draw(axes: Any) -> None:
    positive = [v for dot in failed + excused for v in dot if v > 0] or [1e-7, 1.0]
    low, high = _decades(positive)
    for group, marker, colour, label in (
      (failed, 'x', _BAD, 'different'),
      (excused, 'o', _TF1, 'rounding'),
    ):
      if group:
        xs, ys = ([max(dot[axis], low) for dot in group] for axis in (0, 1))
        axes.plot(xs, ys, marker, color=colour, markersize=5, fillstyle='none', label=label)
    axes.plot([low, high], [low, high], '--', color=_INK, linewidth=1, label='as large as noise')
    axes.set(xscale='log', yscale='log', xlim=(low / 2, high), ylim=(low / 2, high))
    axes.set(xlabel='rounding noise', ylabel='max absolute difference')
    _plain_numbers(axes.xaxis)
    _plain_numbers(axes.yaxis)
    axes.legend(frameon=False, labelcolor=_INK, fontsize=9)

  svg = _drawn(draw, f'{case.module}-{case.case}-{stage.stage}-gradients', 3.6) if draws else ''
  return Figure('gradients', title, sentence, '', svg)


def _has_shape(curve: Curve) -> bool:
  """Returns whether there is more to see than one level line."""
  return len(curve.steps) > 1 and len(set(curve.tf1 + curve.tf2)) > 1


def _training(case: CaseVerdict, stage: StageVerdict, curve: Curve, draws: bool) -> Figure:
  sentence = (
    f'Over steps {curve.steps[0]} to {curve.steps[-1]} the {curve.quantity} goes from '
    f'{_told(curve.tf1[0])} to {_told(curve.tf1[-1])} in tf1, from {_told(curve.tf2[0])} to '
    f'{_told(curve.tf2[-1])} in tf2.'
  )

  def draw(axes: Any) -> None:
    sides = (curve.tf1, _TF1, 'tf1', '-o', 6.5), (curve.tf2, _TF2, 'tf2', '--s', 3.5)
    for values, colour, label, style, size in sides:
      told = [math.nan if value is None else value for value in values]
      axes.plot(curve.steps, told, style, color=colour, label=label, markersize=size)
    axes.set(xlabel='step', ylabel=curve.quantity)
    if len(curve.steps) < 15:
      axes.set_xticks(curve.steps)
    axes.legend(frameon=False, labelcolor=_INK, fontsize=9)

  salt = f'{case.module}-{case.case}-{stage.stage}-{curve.quantity}'
  svg = _drawn(draw, salt, 2.6) if draws else ''
  title = f'Training: {curve.quantity} of both sides'
  return Figure('training', title, sentence, f'{stage.stage}-0', svg)


def _told(value: float | None) -> str:
  return 'a value that was not reported' if value is None else f'{value:.6g}'


def _drawn(
  draw: Callable[[Any], None], salt: str, height: float, below: float = 0.5, left: float = 0.8
) -> str:
  """Returns a figure as SVG; the same data gives the same text.

  Args:
    draw: draws on the axes that it is given.
    salt: of the names in the SVG, which must not meet those of another figure.
    height: in inches; the width is `_WIDTH`.
    below: room for what stands under the axes, in inches.
    left: room for what stands next to them, in inches.
  """
  import matplotlib
  from matplotlib.backends.backend_svg import FigureCanvasSVG
  from matplotlib.figure import Figure as Canvas

  settings = {
    'svg.hashsalt': salt,
    'svg.fonttype': 'none',
    'font.family': ['sans-serif'],
    'font.size': 9.5,
    'text.color': _INK,
    'axes.labelcolor': _INK,
    'axes.edgecolor': _LINE,
    'xtick.color': _INK,
    'ytick.color': _INK,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'text.parse_math': False,
  }
  with matplotlib.rc_context(settings):
    figure = Canvas(figsize=(_WIDTH, height))
    # By hand, in inches: to have it worked out takes as long as the drawing.
    figure.subplots_adjust(left / _WIDTH, below / height, 0.985, 1 - 0.12 / height)
    draw(figure.add_subplot())
    written = io.StringIO()
    FigureCanvasSVG(figure).print_svg(
      written, metadata={'Date': None, 'Creator': None, 'Format': None, 'Type': None}
    )
  return _of_page(written.getvalue())


def _of_page(svg: str) -> str:
  """Returns matplotlib's SVG as part of a page: its colours, no style and no names of its own."""
  ElementTree.register_namespace('', _SVG)
  root = ElementTree.fromstring(svg)
  for parent in list(root.iter()):
    for child in list(parent):
      backgrounds = child.get('id') in ('patch_1', 'patch_2')  # of figure and axes: white
      if backgrounds or child.tag in (f'{{{_SVG}}}style', f'{{{_SVG}}}metadata'):
        parent.remove(child)
  for element in root.iter():
    _as_attributes(element)
    element.text = (element.text or '').strip() or None
    element.tail = None
  _drop_unused_names(root)
  for name in ('width', 'height', 'version'):
    root.attrib.pop(name, None)
  root.set('aria-hidden', 'true')  # the figure's caption says it
  root.set('focusable', 'false')
  return ElementTree.tostring(root, encoding='unicode')


def _as_attributes(element: ElementTree.Element) -> None:
  """Writes a style as attributes, which a page may hold that forbids styles in elements."""
  for declaration in element.attrib.pop('style', '').split(';'):
    name, _, value = declaration.partition(':')
    if value.strip():
      element.set(name.strip(), _COLOURS.get(value.strip(), value.strip()))
  element.attrib.pop('font-family', None)
  target = element.attrib.pop(_LINK, None)
  if target is not None:
    element.set('href', target)
  dots = list(element)
  if len(dots) > 1 and all(dot.tag == f'{{{_SVG}}}use' for dot in dots):
    _hoist_style(element, dots)


def _hoist_style(group: ElementTree.Element, dots: Sequence[ElementTree.Element]) -> None:
  """Says once for all dots how they look, and where they are to a tenth of a pixel."""
  for dot in dots:
    for name in ('x', 'y'):
      dot.set(name, f'{float(dot.get(name, "0")):.1f}')
  style = dots[0].get('style')
  if style is not None and all(dot.get('style') == style for dot in dots):
    group.set('style', style)
    for dot in dots:
      dot.attrib.pop('style')
    _as_attributes(group)


def _drop_unused_names(root: ElementTree.Element) -> None:
  used = {element.get('href', '').removeprefix('#') for element in root.iter()}
  used |= {e.get('clip-path', '').removeprefix('url(#').removesuffix(')') for e in root.iter()}
  for element in root.iter():
    if element.get('id') not in used:
      element.attrib.pop('id', None)
