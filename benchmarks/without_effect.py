"""Differences without effect: mistakes that change the function, and no number of the case.

    python -m benchmarks.without_effect [MODEL[.MISTAKE|.right] ...] [--reports DIR]

Every file of `benchmarks/without_effect/` is a model: TF1 function, right port and case. Its
`mistakes.json` has edits of the ports: a bound, an epsilon, a mask, a boundary of a schedule that
these inputs do not reach. `part` is where: in the forward pass, the loss or the training step. Of
every mistake it is computed how it ends:

    finding     a stage fails, and its report names the edited line or both values
    failed      a stage fails, and its report names neither
    named       all pass, and a blind spot or note names the edited line or both values
    silent      none of these

Right ports are run as well, and what is said of their graphs is counted: blind spots and notes on
differences that these numbers do not show. The exit status is 1 where less than 95 % are found or
named, or a right port fails.
"""

import argparse
import collections
import dataclasses
import importlib.util
import json
import pathlib
import re
import sys
import tempfile
import warnings

import tf2verify
from tf2verify.records.verdict import CaseVerdict

_MODELS = pathlib.Path(__file__).parent / 'without_effect'
_STAGES = {  # which stages a mistake can show in
  'forward': ['zero_randomness', 'seeded_constant'],
  'loss': ['zero_randomness', 'loss'],
  'training': ['training_steps'],
}
_RIGHT = ['seeded_constant', 'loss', 'training_steps']
_ON_GRAPHS = 'do not show'  # "the graphs differ in a way that the compared numbers do not show"


@dataclasses.dataclass(frozen=True)
class Mistake:
  """An edit of a port's text: see `mistakes.json`."""

  model: str
  name: str
  part: str
  old: str
  new: str
  changes: str
  values: list[str]

  def planted(self) -> tuple[str, range]:
    """The text of the model with the mistake, and the lines that differ, from 1.

    The text of TF1 comes first and may be the same: the last occurrence is the port's.
    """
    text = (_MODELS / f'{self.model}.py').read_text()
    before, found, after = text.rpartition(self.old)
    if not found:
      raise ValueError(f'{self.model}.{self.name}: its text is not in the model: {self.old!r}')
    first = before.count('\n') + 1
    return before + self.new + after, range(first, first + max(1, len(self.new.splitlines())))


def _verified(name: str, text: str, stages: list[str], folder: str) -> CaseVerdict:
  path = pathlib.Path(folder) / f'{name}.py'
  path.write_text(text)
  spec = importlib.util.spec_from_file_location(name, path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  spec.loader.exec_module(module)
  return tf2verify.verify(module.ModelCase, stages=stages)


def _has(text: str, value: str) -> bool:
  """Whether a text has a value as a word, in one of the spellings that `|` separates."""
  spelled = '|'.join(re.escape(word) + r'(\.0)?' for word in value.split('|'))
  return re.search(rf'(?<![\w.])({spelled})(?!\w|\.\d)', text) is not None


def _names(text: str, mistake: Mistake, file: str, lines: range) -> bool:
  if any(re.search(rf'{re.escape(file)}:{line}\b', text) for line in lines):
    return True
  return bool(mistake.values) and all(_has(text, value) for value in mistake.values)


def outcome(verdict: CaseVerdict, mistake: Mistake, lines: range) -> str:
  """How a mistake ended: see the module."""
  file = f'{mistake.model}.{mistake.name}.py'
  if not verdict.passed:
    report = verdict.to_text()
    report = report[report.find('FAILED') :]
    return 'finding' if _names(report, mistake, file, lines) else 'failed'
  notes = [note for stage in verdict.stages for note in (*stage.blind_spots, *stage.notes)]
  return 'named' if any(_names(note, mistake, file, lines) for note in notes) else 'silent'


def _right(names: list[str], folder: str, reports: pathlib.Path | None) -> tuple[int, int]:
  """Runs the right ports; how many fail, and how many notes there are on their graphs."""
  failures = notes = 0
  for name in names:
    text = (_MODELS / f'{name}.py').read_text()
    verdict = _verified(f'{name}.right', text, _RIGHT, folder)
    said = [n for s in verdict.stages for n in (*s.blind_spots, *s.notes) if _ON_GRAPHS in n]
    failures += not verdict.passed
    notes += len(said)
    print(f'| {name} | right | | {verdict.status.name} | {len(said)} notes |', flush=True)
    if reports:
      (reports / f'{name}.right.txt').write_text(verdict.to_text())
  return failures, notes


def _selected(wanted: list[str]) -> tuple[list[str], list[Mistake]]:
  mistakes = [Mistake(**m) for m in json.loads((_MODELS / 'mistakes.json').read_text())]
  models = sorted({m.model for m in mistakes})
  if not wanted:
    return models, mistakes
  right = [m for m in models if m in wanted or f'{m}.right' in wanted]
  return right, [m for m in mistakes if {m.model, f'{m.model}.{m.name}'} & set(wanted)]


def main() -> int:
  """Prints a row for each run and a table of the score; returns the exit status."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('wanted', nargs='*')
  parser.add_argument('--reports', type=pathlib.Path)
  arguments = parser.parse_args()
  right, mistakes = _selected(arguments.wanted)
  if arguments.reports:
    arguments.reports.mkdir(parents=True, exist_ok=True)
  warnings.simplefilter('ignore')
  counts: collections.Counter[tuple[str, str]] = collections.Counter()
  print('| model | mistake | part | outcome | changes |\n| --- | --- | --- | --- | --- |')
  with tempfile.TemporaryDirectory() as folder:
    for mistake in mistakes:
      text, lines = mistake.planted()
      name = f'{mistake.model}.{mistake.name}'
      verdict = _verified(name, text, _STAGES[mistake.part], folder)
      found = outcome(verdict, mistake, lines)
      counts[mistake.part, found] += 1
      row = (mistake.model, mistake.name, mistake.part, found, mistake.changes)
      print('| ' + ' | '.join(row) + ' |', flush=True)
      if arguments.reports:
        (arguments.reports / f'{found}.{name}.txt').write_text(verdict.to_text())
    failures, notes = _right(right, folder, arguments.reports)
  return _score(counts, failures, notes, len(right))


def _score(counts: collections.Counter[tuple[str, str]], failed: int, notes: int, n: int) -> int:
  outcomes = ('finding', 'failed', 'named', 'silent')
  print('\n| part | ' + ' | '.join(outcomes) + ' | of |\n| --- | --- | --- | --- | --- | --- |')
  for part in _STAGES:
    each = [counts[part, found] for found in outcomes]
    print(f'| {part} | ' + ' | '.join(map(str, each)) + f' | {sum(each)} |')
  silent = sum(count for (_, found), count in counts.items() if found == 'silent')
  total = sum(counts.values())
  share = 100 * (total - silent) / max(1, total)
  print(f'\n{total - silent} of {total} found or named ({share:.1f} %)')
  print(f'right ports: {failed} of {n} fail, {notes} notes on their graphs')
  return int(bool(failed) or (total > 0 and share < 95))


if __name__ == '__main__':
  sys.exit(main())
