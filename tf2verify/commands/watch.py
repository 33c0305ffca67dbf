"""`python -m tf2verify watch`: the ladder again at each change of a file, the reference kept."""

import contextlib
import dataclasses
import importlib
import os
import sys
import time
import types
from collections.abc import Iterator, Sequence

from tf2verify.case import new_ladder
from tf2verify.commands.changed_modules import WatchedFiles, outdated, path_of, user_modules
from tf2verify.discovery import FoundCase, find_all
from tf2verify.environment.case_files import case_files, shown_path
from tf2verify.errors import Tf2VerifyError, UsageError, UserCodeError
from tf2verify.records.status import Status
from tf2verify.records.text_line import indented
from tf2verify.records.verdict import CaseVerdict
from tf2verify.records.verdict_text import case_status_line, ladder_lines
from tf2verify.report import terminal
from tf2verify.safe_text import safe, safe_line
from tf2verify.sides.graphs.lines.source_lines import forget_lines
from tf2verify.sides.kept.sources import HeldReference
from tf2verify.stages import STAGES
from tf2verify.tensorflow_internals import deprecations

_POLL_SECONDS = 0.1
_CLEAR = '\033[2J\033[3J\033[H'


@dataclasses.dataclass(frozen=True)
class Round:
  """What one change has led to."""

  number: int  # from 1
  changed: tuple[str, ...]  # the files
  # Of the cases that were run, the last one failing if any is.
  verdicts: tuple[CaseVerdict, ...] = ()
  # Of the last case, the names of the stages in the order in which they were asked for.
  order: tuple[str, ...] = ()
  error: str = ''  # why there are none: an import that failed; '' otherwise
  reference: str = ''  # of the last case, whether the reference is that of the round before
  seconds: float = 0.0  # from the change that was seen to the verdict
  abandoned: bool = False  # whether a further change came before the round was done


class Watch:
  """Runs the cases of a file, in one process, each time that a file of theirs has changed."""

  def __init__(self, target: str, stages: Sequence[str] | None = None) -> None:
    """Takes what to run; nothing is imported yet.

    Args:
      target: a file, a folder or a module, `::Case` after it for one case.
      stages: names of the stages to run, in addition to those that they need; None for all.
    """
    self._target = target
    self._stages = [stage for stage in STAGES if stages is None or stage.name in stages]
    self._files = WatchedFiles()
    self._modules: dict[str, types.ModuleType] = {}
    self._references: dict[str, HeldReference] = {}
    # Where the last round has stopped: the case, and the stage.
    self._stopped = ('', '')
    self._number = 0

  @property
  def files(self) -> int:
    """How many files are looked at."""
    return len(self._files)

  def rounds(self, most: int | None = None) -> Iterator[Round]:
    """Yields a round at once, and one after each change, until there were so many.

    Raises:
      UsageError: at the first round, there is no such file, module or case: nothing that is
        changed would be seen.
    """
    with _without_bytecode():
      changed: tuple[str, ...] = ()
      while True:
        found = self._round(changed)
        yield found
        if self._number == most:
          return
        while not (changed := self._files.changed()):
          time.sleep(_POLL_SECONDS)

  def _round(self, changed: tuple[str, ...]) -> Round:
    start = time.perf_counter()
    self._number += 1
    begun = Round(self._number, tuple(map(shown_path, changed)))
    try:
      cases = self._imported(changed)
      done = self._climbed(begun, cases)
    except Tf2VerifyError as error:
      if isinstance(error, UsageError) and self._number == 1:
        raise
      text = error.traceback_text if isinstance(error, UserCodeError) else ''
      said = f'{text}\n{error}' if text else str(error)
      done = dataclasses.replace(begun, error=said)
    return dataclasses.replace(done, seconds=time.perf_counter() - start)

  def _imported(self, changed: Sequence[str]) -> list[FoundCase]:
    """Imports what has changed, and all that imports it; the rest stays as it is."""
    place = self._target.partition('::')[0]
    own = case_files(place)
    folders = {os.path.dirname(os.path.abspath(path)) for path in own if os.path.isfile(path)}
    self._files.watch(_python_files(folders))
    known = user_modules(self._modules)
    old = outdated(known, changed)
    for name in old:
      self._modules.pop(name, None)
      sys.modules.pop(name, None)
    forget_lines()
    importlib.invalidate_caches()
    found = find_all([self._target], loaded=self._modules)
    for case in found:
      self._modules.update(case.modules)
    self._files.watch(filter(None, map(path_of, user_modules(self._modules).values())))
    return found

  def _climbed(self, begun: Round, cases: Sequence[FoundCase]) -> Round:
    """Runs the cases, the one that failed last first, until one is not well."""
    case, stage = self._stopped
    ordered = sorted(cases, key=lambda found: found.name != case)
    verdicts: list[CaseVerdict] = []
    for found in ordered:
      first = stage if found.name == case else ''
      held = self._references.setdefault(found.name, HeldReference())
      with found.importable(), deprecations.unsaid():
        verdict, order, abandoned = self._climb(found, first, held)
      verdicts.append(verdict)
      begun = dataclasses.replace(begun, order=order, reference=held.said(), abandoned=abandoned)
      failed = next((one for one in verdict.stages if one.status.is_failure), None)
      if failed is not None or abandoned:
        self._stopped = (found.name, failed.stage if failed is not None else first)
        break
    else:
      self._stopped = ('', '')
    return dataclasses.replace(begun, verdicts=tuple(verdicts))

  def _climb(
    self, found: FoundCase, first: str, held: HeldReference
  ) -> tuple[CaseVerdict, tuple[str, ...], bool]:
    """Climbs from a stage on, then those before it, up to the first that is not well."""
    names = [stage.name for stage in self._stages]
    at = names.index(first) if first in names else 0
    progress = terminal.StageProgress(found.name)
    ladder = new_ladder(found.case, progress, held)
    order: list[str] = []
    abandoned = False
    try:
      for stage in [*self._stages[at:], *self._stages[:at]]:
        order.append(stage.name)
        status = ladder.stage(stage).status
        if status.is_failure or status is Status.BLOCKED:
          break
        if self._files.are_changed():
          abandoned = stage is not self._stages[at - 1]
          break
      verdict = dataclasses.replace(ladder.verdict(), case=safe_line(found.name))
      return verdict, tuple(order), abandoned
    finally:
      progress.clear()
      ladder.close()


def watch(target: str, stages: Sequence[str] | None = None, rounds: int | None = None) -> bool:
  """Shows a round at once, and one after each change.

  Args:
    target: as of `Watch`.
    stages: as of `Watch`.
    rounds: after how many to stop; None for never.

  Returns:
    Whether the last round has passed.

  Raises:
    UsageError: as of `Watch.rounds`.
  """
  watched = Watch(target, stages)
  passed = False
  for found in watched.rounds(rounds):
    passed = bool(found.verdicts) and not found.error and not found.abandoned
    passed = passed and all(verdict.passed for verdict in found.verdicts)
    show(found, watched.files, stages)
  return passed


def show(found: Round, files: int, stages: Sequence[str] | None = None) -> None:
  """Shows a round on one screen, the cause first."""
  if sys.stdout.isatty():
    sys.stdout.write(_CLEAR)
  of = f', {", ".join(found.changed)} changed' if found.changed else ''
  terminal.say(f'round {found.number}{of}')
  if found.error:
    terminal.say(safe(found.error))
  for verdict in reversed(found.verdicts):
    terminal.say_failures(verdict)
    if verdict.failures or verdict is found.verdicts[-1]:
      terminal.say_lines(indented(ladder_lines(verdict.stages)))
    terminal.say_lines([case_status_line(verdict)])
  for line in _remarks(found, stages):
    terminal.say(f'  {line}')
  terminal.say(f'{found.seconds:.1f} s; {files} files are watched, Ctrl-C ends it')


def _remarks(found: Round, stages: Sequence[str] | None) -> Iterator[str]:
  if not found.verdicts:
    return
  last = found.verdicts[-1]
  wanted = [stage.name for stage in STAGES if stages is None or stage.name in stages]
  if found.order and found.order[0] != wanted[0]:
    yield f'began at {found.order[0]}, which failed last'
  left = [name for name in wanted if name not in {one.stage for one in last.stages}]
  if left:
    why = 'a file changed meanwhile' if found.abandoned else 'until this one passes'
    yield f'not run, {why}: {", ".join(left)}'
  if found.reference:
    yield f'reference: {found.reference}'


@contextlib.contextmanager
def _without_bytecode() -> Iterator[None]:
  """Has Python write no bytecode: it tells versions apart by seconds, which is too coarse here."""
  before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
  try:
    yield
  finally:
    sys.dont_write_bytecode = before


def _python_files(folders: set[str]) -> Iterator[str]:
  """Yields the modules besides the cases: one that cannot be imported is loaded by nobody."""
  for folder in sorted(folders):
    with os.scandir(folder) as entries:
      yield from sorted(entry.path for entry in entries if entry.name.endswith('.py'))
