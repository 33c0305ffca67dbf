"""How a process ended that was to deliver a verdict, and the verdict if it did not."""

import contextlib
import dataclasses
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from tf2verify.errors import UsageError
from tf2verify.fleet import job as jobs
from tf2verify.fleet.crash_text import end_of_log
from tf2verify.fleet.results import Deviations, without_deviations
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict
from tf2verify.records.verdict_json import case_from_fields, check_deviations

IMPORTING = 'importing'
_GUESSES: dict[int, str] = {
  signal.SIGSEGV: 'a crash of native code; the stack below has the line of Python that it was '
  'called from',
  signal.SIGABRT: 'native code gave up (an assertion, a failed CHECK): see the lines above the '
  'stack',
  signal.SIGBUS: 'a crash of native code, or a file or memory that went away',
  signal.SIGFPE: 'an integer division by zero in native code',
  signal.SIGILL: 'an instruction that this processor lacks: a package built for a different one',
  signal.SIGKILL: 'killed from outside, mostly by the kernel for lack of memory: give --memory, '
  'or fewer --jobs',
}


@dataclasses.dataclass(frozen=True)
class Ended:
  """A process that has ended.

  Attributes:
    status: as `os.waitpid` returns it; None where the process was never seen to end.
    events: what it has told.
    log: what it has printed.
    reason: why the supervisor ended it; '' where it ended by itself.
    seconds: of wall time.
    greatest_memory: in bytes, as seen from outside.
  """

  status: int | None
  events: Sequence[Mapping[str, Any]]
  log: str
  reason: str
  seconds: float
  greatest_memory: int

  def last(self, *kinds: str) -> Mapping[str, Any] | None:
    """Returns the last event of some kinds; None without one."""
    return next((told for told in reversed(self.events) if told['event'] in kinds), None)

  @property
  def cause(self) -> str:
    """How the process ended, in a sentence."""
    if self.reason:
      return self.reason
    if self.status is None:
      return 'the process was lost'
    if os.WIFSIGNALED(self.status):
      number = os.WTERMSIG(self.status)
      guess = _GUESSES.get(number)
      said = f'the process was ended by {_name(number)} ({signal.strsignal(number)})'
      return f'{said}: {guess}' if guess else said
    code = os.WEXITSTATUS(self.status)
    if code == jobs.UNCAUGHT:
      return 'the process failed outside of the case: see the end of what it printed'
    return (
      f'the process ended with exit status {code} before it had a verdict: something called '
      'os._exit, or ended the interpreter'
    )


def _name(number: int) -> str:
  try:
    return signal.Signals(number).name
  except ValueError:  # a real-time signal
    return f'signal {number}'


@dataclasses.dataclass(frozen=True)
class Asked:
  """What a process was to give a verdict on.

  Attributes:
    case: the name of the case.
    module: the file or module that declares it, as the journal names it.
    target: what `run` takes.
    versions: of what it ran on.
  """

  case: str
  module: str
  target: str
  versions: Mapping[str, str]


def verdict_of(ended: Ended, asked: Asked) -> tuple[CaseVerdict, Deviations]:
  """Returns the verdict that a process has delivered, or the error that it stands for."""
  done = ended.last(jobs.DONE)
  if done is not None:
    try:
      return _read({**done['verdict'], 'module': asked.module})
    except UsageError as unread:
      said = f'the process ended with a verdict that cannot be read: it {unread}'
      return _failed(ended, asked, ErrorRecord('case', said, end_of_log(ended.log)))
  refused = ended.last(jobs.REFUSED)
  if refused is not None:
    error = ErrorRecord('case', refused['error'], refused['traceback'])
  else:
    error = ErrorRecord('case', _told(ended), end_of_log(ended.log))
  return _failed(ended, asked, error)


def _read(report: Mapping[str, Any]) -> tuple[CaseVerdict, Deviations]:
  """Returns a verdict without its deviations, and these.

  Raises:
    UsageError: it is none.
  """
  try:
    fields, deviations = without_deviations(report)
  except (AttributeError, LookupError, TypeError) as error:
    raise UsageError('is not a report of tf2verify') from error
  check_deviations(deviations)
  return case_from_fields(fields), deviations


def _failed(ended: Ended, asked: Asked, error: ErrorRecord) -> tuple[CaseVerdict, Deviations]:
  """Returns the stages that were done, and the error at the one that was not."""
  stages: list[StageVerdict] = []
  deviations: dict[str, list[Any]] = {}
  for event in ended.events:
    if event['event'] == jobs.STAGE:
      with contextlib.suppress(UsageError):
        case, found = _read(event['verdict'])
        stages += case.stages
        deviations |= found
  started = ended.last(jobs.STARTED)
  names = list(started['stages']) if started is not None else []
  left = [name for name in names if name not in {stage.stage for stage in stages}]
  name = left[0] if left else IMPORTING
  number = names.index(name) + 1 if left else 0
  seconds = max(0.0, ended.seconds - sum(stage.seconds for stage in stages))
  stages.append(StageVerdict(name, number, Status.ERROR, error=error, seconds=seconds))
  for blocked in left[1:]:
    number = names.index(blocked) + 1
    stages.append(StageVerdict.blocked(blocked, number, name, Status.ERROR))
  again = f'python -m tf2verify run {asked.target}' + (f' --stages {name}' if left else '')
  environment = tuple(asked.versions.items())
  return CaseVerdict(asked.case, asked.module, tuple(stages), environment, again), deviations


def _told(ended: Ended) -> str:
  doing = ended.last(jobs.DOING)
  step = f', while {doing["step"]}' if doing is not None else ''
  memory = ended.greatest_memory / 2**30
  return f'{ended.cause} (after {ended.seconds:.1f} s, {memory:.1f} GiB of memory{step})'
