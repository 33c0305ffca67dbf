"""python -m tests.port_bugs.write_docs: writes docs/port_bugs.md from the suite."""

import pathlib
import re
from collections.abc import Iterable

import tf2verify
from tests.port_bugs import keras3, suite
from tests.port_bugs.classes import CLASSES, NOT_MEASURED
from tests.port_bugs.port_bug import PortBug
from tf2verify.stages import STAGES

PAGE = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'port_bugs.md'

# Sentences first, then what differs in the graphs.
_QUOTED = (
  re.compile(
    r'^\s*(?:(?:likely )?cause(?: \d+ of \d+)?(?: \([^)]*\))?|note|.* ERROR on the tf[12] side): '
    r'(.*)$',
    re.MULTILINE,
  ),
  re.compile(r'^\s*(.* \(tf1\), .* \(tf2\)|(?:missing|extra) in tf2: .*)$', re.MULTILINE),
)
_HEAD = """# Porting mistakes, and what tf2verify says

Mistakes that people make when they port TF1 models, each as a pair of small ports: a wrong one,
for which the named stage is the first to detect the mistake, and a correct one, which passes the
ladder: in `tests/port_bugs/` up to `training_steps`, or to the stage that the pair is about, and
all of it in `python -m benchmarks.port_bugs`. This page is written by
`python -m tests.port_bugs.write_docs`; its last column quotes the reports of the wrong ports.
{count} pairs for {classes} classes of mistakes, in the order of the ladder; below them, {controls}
pairs that look wrong but are correct, and the classes that have no pair here.
"""
_KERAS3 = """## Ports of Keras 3

{count} more pairs, of models of Keras 3 (`tests/port_bugs/keras3.py`), each climbed to the stage
that has to see the mistake. [From the shim to Keras 3](keras3.md) says what to do about them.
"""
_COLUMNS = ('class', 'mistake', 'TF1', 'port', 'seen by', 'tf2verify says')


def what_is_said(bug: PortBug) -> str:
  """Returns the line of the report that names most of the words, on one line."""
  text = suite.found(bug).to_text()
  lines = [line for pattern in _QUOTED for line in pattern.findall(text)]
  most = max(lines, key=lambda line: sum(word in line for word in bug.words), default='')
  return most if any(word in most for word in bug.words) else ''


def rows() -> list[tuple[str, ...]]:
  """Returns the rows of the table, one a pair, in the order of the stages and classes."""
  stages = [stage.name for stage in STAGES]
  identifiers = [identifier for identifier, _ in CLASSES]

  def place(bug: PortBug) -> tuple[int, int]:
    return stages.index(bug.stage), identifiers.index(bug.identifier)

  return [
    (
      bug.identifier,
      bug.title,
      bug.tf1,
      bug.mistake,
      f'`{bug.stage}`' + (' (a note)' if bug.status is tf2verify.Status.PASSED else ''),
      what_is_said(bug).replace('__', '\\_\\_'),  # not bold: __init__
    )
    for bug in sorted(suite.PORT_BUGS, key=place)
  ]


def page() -> str:
  """Returns the whole page."""
  head = _HEAD.format(
    count=len(suite.PORT_BUGS), classes=len(CLASSES), controls=len(suite.CONTROLS)
  )
  lines = [_row(_COLUMNS), _row(['---'] * len(_COLUMNS)), *map(_row, rows())]
  keras3_rows = [
    (bug.identifier, bug.title, bug.tf1, bug.mistake, f'`{bug.stage}`') for bug in keras3.PORT_BUGS
  ]
  lines += ['', _KERAS3.format(count=len(keras3_rows)), _row(_COLUMNS[:-1])]
  lines += [_row(['---'] * (len(_COLUMNS) - 1)), *map(_row, keras3_rows)]
  controls = [f'- {control.title}' for control in suite.CONTROLS]
  left_out = [f'- {identifier}: {reason}' for identifier, reason in NOT_MEASURED.items()]
  parts = [head, *lines, '', '## Not blamed', '', *controls, '', '## Not measured', '', *left_out]
  return '\n'.join([*parts, ''])


def _row(cells: Iterable[str]) -> str:
  escaped = (cell.replace('|', '\\|') for cell in cells)
  return '| ' + ' | '.join(escaped) + ' |'


if __name__ == '__main__':
  PAGE.write_text(page(), encoding='utf-8')
