"""A trial on ports that no rule was tuned to, with mistakes planted as edits of their text.

    python -m benchmarks.blind_trial [MODEL[.MISTAKE|.right] ...] [--reports DIR]
      [--half seen|unseen] [--folder DIR]

Every folder of `benchmarks/blind/` is a model: its TF1 code, a right port, a case, and
`mistakes.json`: edits of the port, each with the stage that is to show it and the words that
name the true edit. The true line and edit are known, so that the score is computed and not
judged:

    detected    the case does not pass, or it passes with a blind spot or note that has the words
    stage       the first stage that is not well is one of those named
    line        the report of that stage names the edited line, or a statement that it is in,
                give or take one
    cause right   a cause has all of the words; absent: there is none; other: a cause without them

'other' has to be read: it is wrong, or right in words that nobody foresaw. `--reports` keeps the
text of every report for that. The right ports have to pass: one that is blamed is a false alarm.
"""

import argparse
import collections
import dataclasses
import itertools
import json
import multiprocessing
import pathlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import tf2verify
from tf2verify.discovery import find_cases
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.sides.process import logical_devices

FOLDER = pathlib.Path(__file__).parent / 'blind'


@dataclasses.dataclass(frozen=True)
class Mistake:
  """An edit of a right port.

  Attributes:
    name: unique within the model.
    file: the file that is edited.
    old: the text that is replaced; it occurs once.
    new: what replaces it.
    stages: the first stage that may show it; several where the planter could not know.
    words: a cause that names the true edit has all of them; each is a
      regular expression.
    unseen: whether it is looked at only when a release is measured.
  """

  name: str
  file: str
  old: str
  new: str
  stages: tuple[str, ...]
  words: tuple[str, ...]
  unseen: bool = False

  def plant(self, folder: pathlib.Path) -> range:
    """Edits the file in a copy of the model; returns the lines that changed, from 1."""
    path = folder / self.file
    text = path.read_text(encoding='utf-8')
    if text.count(self.old) != 1:
      raise ValueError(f'{self.name}: its text occurs {text.count(self.old)} times in {path}')
    before = text.partition(self.old)[0]
    path.write_text(text.replace(self.old, self.new), encoding='utf-8')
    same = 0  # lines at the start that the edit only repeats, to be unique
    for one, other in zip(self.old.split('\n'), self.new.split('\n'), strict=False):
      if one != other:
        break
      same += 1
    first = before.count('\n') + 1 + min(same, self.new.count('\n'))
    return range(first, before.count('\n') + 2 + self.new.count('\n'))

  def names(self, text: str) -> bool:
    """Returns whether a text has all of the words."""
    return all(re.search(words, text) for words in self.words)


def mistakes(folder: pathlib.Path) -> list[Mistake]:
  """Returns the mistakes of a model."""
  entries = json.loads((folder / 'mistakes.json').read_text(encoding='utf-8'))
  return [
    Mistake(**{**entry, 'stages': tuple(entry['stages']), 'words': tuple(entry['words'])})
    for entry in entries
  ]


def climb(folder: pathlib.Path, mistake: Mistake | None) -> tuple[CaseVerdict, range]:
  """Climbs the ladder with a copy of a model, with a mistake or without."""
  with tempfile.TemporaryDirectory() as name:
    copy = pathlib.Path(name) / folder.name
    shutil.copytree(folder, copy)
    lines = mistake.plant(copy) if mistake else range(0)
    (found,) = find_cases(str(copy))
    with found.importable():
      return tf2verify.verify(found.case), lines


def causes(stage: StageVerdict) -> list[str]:
  """Returns the causes that a stage names."""
  hints = [difference.hint for difference in stage.differences if difference.hint]
  found = [f'{c.text} {c.evidence}' for c in (stage.diagnosis.causes if stage.diagnosis else ())]
  return list(dict.fromkeys([*found, *hints]))


def named_lines(stage: StageVerdict, file: str) -> set[int]:
  """Returns the numbers of the lines of a file that a report names: `port.py:7`, `port.py:7-9`."""
  spans = re.findall(rf'{re.escape(file)}:(\d+)(?:-(\d+))?', stage.to_text())
  return {line for first, last in spans for line in range(int(first), int(last or first) + 1)}


def marks(mistake: Mistake, lines: range, verdict: CaseVerdict) -> Iterator[str]:
  """Yields what holds of a report."""
  stage = verdict.first_failure
  if stage is None:
    said = [note for one in verdict.stages for note in one.notes]
    if any(mistake.names(note) for note in said):
      yield from ('detected', 'named by a note')
    return
  yield 'detected'
  if stage.stage in mistake.stages:
    yield 'stage'
  named = named_lines(stage, mistake.file)
  if any(line in range(lines.start - 1, lines.stop + 1) for line in named):
    yield 'line'
  said = causes(stage)
  if not said:
    yield 'cause absent'
  else:
    yield 'cause right' if any(mistake.names(cause) for cause in said) else 'cause other'


def tried(
  models: pathlib.Path, name: str, mistake: Mistake | None, reports: pathlib.Path | None
) -> list[str]:
  """Climbs with one mistake, or the right port; returns what holds of it."""
  verdict, lines = climb(models / name, mistake)
  if mistake:
    found = list(marks(mistake, lines, verdict))
  else:
    found = [] if verdict.status is tf2verify.Status.PASSED else ['false alarm']
  if reports:
    reports.mkdir(parents=True, exist_ok=True)
    edit = f'{mistake.old}\n--- for\n{mistake.new}\n\n' if mistake else ''
    (reports / f'{title(name, mistake)}.txt').write_text(edit + verdict.to_text())
  return found


def title(name: str, mistake: Mistake | None) -> str:
  """Returns the name of a mistake among those of all models."""
  return f'{name}.{mistake.name if mistake else "right"}'


def chosen(arguments: argparse.Namespace) -> list[tuple[str, Mistake | None]]:
  """Returns what is tried, model by model; the right port comes first."""
  wanted = set(arguments.models)
  found: list[tuple[str, Mistake | None]] = []
  models: pathlib.Path = arguments.folder
  for name in sorted(path.name for path in models.iterdir() if path.is_dir()):
    found += [
      (name, mistake)
      for mistake in (None, *mistakes(models / name))
      if (not wanted or wanted & {name, title(name, mistake)})
      and not (mistake and arguments.half and mistake.unseen != (arguments.half == 'unseen'))
    ]
  return found


def main() -> int:
  """Measures and prints; returns 1 where a right port is blamed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('models', nargs='*')
  parser.add_argument('--folder', type=pathlib.Path, default=FOLDER, help='of the models')
  parser.add_argument('--reports', type=pathlib.Path)
  parser.add_argument('--half', choices=('seen', 'unseen'))
  parser.add_argument('--processes', type=int, default=2)
  arguments = parser.parse_args()
  total: collections.Counter[str] = collections.Counter()
  start = time.perf_counter()
  work = chosen(arguments)
  with ProcessPoolExecutor(
    arguments.processes, multiprocessing.get_context('spawn'), logical_devices.ask_for_two_cpus
  ) as processes:
    models = itertools.repeat(arguments.folder)
    every = processes.map(
      tried, models, *zip(*work, strict=True), itertools.repeat(arguments.reports)
    )
    for (name, mistake), found in zip(work, every, strict=True):
      total.update(['planted' if mistake else 'right ports', *found])
      print(f'{title(name, mistake):<48} {", ".join(found) or "-"}', flush=True)
  for mark in (
    'detected',
    'named by a note',
    'stage',
    'line',
    'cause right',
    'cause absent',
    'cause other',
  ):
    if not total['planted']:
      continue
    share = 100 * total[mark] / total['planted']
    print(f'{mark:<16} {share:5.1f} % of {total["planted"]}')
  print(
    f'{total["false alarm"]} of {total["right ports"]} right ports blamed, '
    f'{time.perf_counter() - start:.0f} s'
  )
  return 1 if total['false alarm'] else 0


if __name__ == '__main__':
  sys.exit(main())
