"""A trial on ports that no rule was tuned to, with mistakes planted as edits of their text.

    python -m benchmarks.blind_trial [MODEL[.MISTAKE|.right] ...] [--reports DIR]
      [--half seen|unseen] [--folder DIR] [--together N]

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

With `--together N` each model is run once, with N of its mistakes at a time, drawn by chance, each
in a statement of its own. Of these are counted what one run names:

    found       a cause of any stage has all of its words
    located     that, or a report of any stage names its line
"""

import argparse
import collections
import dataclasses
import itertools
import json
import multiprocessing
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
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


def climb(folder: pathlib.Path, planted: Sequence[Mistake]) -> tuple[CaseVerdict, list[range]]:
  """Climbs the ladder with a copy of a model, with mistakes; returns the lines of each."""
  with tempfile.TemporaryDirectory() as name:
    copy = pathlib.Path(name) / folder.name
    shutil.copytree(folder, copy)
    # From the last one on: what is planted later moves no line that is known.
    lines = {one.name: one.plant(copy) for one in reversed(in_order(folder, planted))}
    (found,) = find_cases(str(copy))
    with found.importable():
      return tf2verify.verify(found.case), [lines[one.name] for one in planted]


def in_order(folder: pathlib.Path, planted: Sequence[Mistake]) -> list[Mistake]:
  """Returns mistakes in the order of their places in the text."""
  texts = {one.file: (folder / one.file).read_text(encoding='utf-8') for one in planted}
  return sorted(planted, key=lambda one: (one.file, texts[one.file].find(one.old)))


def together(folder: pathlib.Path, most: int, seed: int) -> list[Mistake]:
  """Returns mistakes that can be planted in one port: no edit touches the text of another one."""
  known = mistakes(folder)
  random.Random(seed).shuffle(known)
  texts = {one.file: (folder / one.file).read_text(encoding='utf-8') for one in known}
  chosen: list[Mistake] = []
  taken: list[tuple[str, int, int]] = []
  for one in known:
    start = texts[one.file].find(one.old)
    place = one.file, start, start + len(one.old)
    if all(f != place[0] or e <= place[1] or place[2] <= s for f, s, e in taken):
      chosen.append(one)
      taken.append(place)
    if len(chosen) == most:
      break
  return chosen


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


def found_together(
  planted: Sequence[Mistake], lines: Sequence[range], verdict: CaseVerdict
) -> list[str]:
  """Returns which of several mistakes one report finds, and which ones it only locates."""
  failed = [one for one in verdict.stages if one.status is tf2verify.Status.FAILED]
  said = [cause for one in failed for cause in causes(one)]
  found = []
  for mistake, at in zip(planted, lines, strict=True):
    named = {line for one in failed for line in named_lines(one, mistake.file)}
    if any(mistake.names(cause) for cause in said):
      found.append(f'found {mistake.name}')
    elif named & set(range(at.start - 1, at.stop + 1)):
      found.append(f'located {mistake.name}')
    else:
      found.append(f'missed {mistake.name}')
  return found


def tried_together(
  models: pathlib.Path, name: str, most: int, seed: int, reports: pathlib.Path | None
) -> list[str]:
  """Climbs with several mistakes of a model at once; returns what is found of each."""
  planted = together(models / name, most, seed)
  verdict, lines = climb(models / name, planted)
  if reports:
    write_report(reports, f'{name}.together{seed}', planted, verdict)
  return found_together(planted, lines, verdict)


def write_report(
  reports: pathlib.Path, title: str, planted: Sequence[Mistake], verdict: CaseVerdict
) -> None:
  """Writes the edits and the report."""
  reports.mkdir(parents=True, exist_ok=True)
  edits = ''.join(f'{one.old}\n--- for\n{one.new}\n\n' for one in planted)
  (reports / f'{title}.txt').write_text(edits + verdict.to_text(), encoding='utf-8')


def tried(
  models: pathlib.Path, name: str, mistake: Mistake | None, reports: pathlib.Path | None
) -> list[str]:
  """Climbs with one mistake, or the right port; returns what holds of it."""
  planted = [mistake] if mistake else []
  verdict, lines = climb(models / name, planted)
  if mistake:
    found = list(marks(mistake, lines[0], verdict))
  else:
    found = [] if verdict.status is tf2verify.Status.PASSED else ['false alarm']
  if reports:
    write_report(reports, title(name, mistake), planted, verdict)
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


def measure_together(processes: ProcessPoolExecutor, arguments: argparse.Namespace) -> None:
  """Measures how many of several mistakes at once one run finds."""
  names = sorted(path.name for path in arguments.folder.iterdir() if path.is_dir())
  names = [name for name in names if not arguments.models or name in arguments.models]
  of_all = (arguments.folder, arguments.together, arguments.seed, arguments.reports)
  folder, most, seed, reports = map(itertools.repeat, of_all)
  total: collections.Counter[str] = collections.Counter()
  every = processes.map(tried_together, folder, names, most, seed, reports)
  for name, found in zip(names, every, strict=True):
    total.update(['ports', *(one.split()[0] for one in found)])
    print(f'{name:<24} {", ".join(found)}', flush=True)
  print(
    f'found in one run: {total["found"] / total["ports"]:.1f}, located alone: '
    f'{total["located"] / total["ports"]:.1f}, missed: {total["missed"] / total["ports"]:.1f}'
  )


def main() -> int:
  """Measures and prints; returns 1 where a right port is blamed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('models', nargs='*')
  parser.add_argument('--folder', type=pathlib.Path, default=FOLDER, help='of the models')
  parser.add_argument('--reports', type=pathlib.Path)
  parser.add_argument('--half', choices=('seen', 'unseen'))
  parser.add_argument('--processes', type=int, default=2)
  parser.add_argument('--together', type=int, help='mistakes of one port')
  parser.add_argument('--seed', type=int, default=0, help='which mistakes are planted together')
  arguments = parser.parse_args()
  total: collections.Counter[str] = collections.Counter()
  start = time.perf_counter()
  work = chosen(arguments)
  with ProcessPoolExecutor(
    arguments.processes, multiprocessing.get_context('spawn'), logical_devices.ask_for_two_cpus
  ) as processes:
    if arguments.together:
      measure_together(processes, arguments)
      return 0
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
