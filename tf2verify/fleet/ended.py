"""How a process ended that was to deliver a verdict, and the verdict if it did not."""

import dataclasses
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from tf2verify.fleet import job as jobs
from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict, Status
from tf2verify.records.verdict_json import case_from_fields

_SHOWN_LINES = 40
_GUESSES = {
  signal.SIGSEGV: 'a crash of native code: see the stack below for the line of Python that it '
  'was called from',
  signal.SIGABRT: 'native code gave up (an assertion, a failed CHECK): see the lines above the '
  'stack',
  signal.SIGBUS: 'a crash of native code, or a file or memory that went away',
  signal.SIGFPE: 'an integer division by zero in native code',
  signal.SIGILL: 'an instruction that this processor lacks: a package built for another one',
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

  def last(self, event: str) -> Mapping[str, Any] | None:
    """Returns the last event of a kind; None without one."""
    return next((told for told in reversed(self.events) if told['event'] == event), None)

  @property
  def cause(self) -> str:
    """How the process ended, in a sentence."""
    if self.reason:
      return self.reason
    if self.status is None:
      return 'the process was lost'
    if os.WIFSIGNALED(self.status):
      number = os.WTERMSIG(self.status)
      name, guess = signal.Signals(number).name, _GUESSES.get(signal.Signals(number), '')
      said = signal.strsignal(number)
      return f'the process was ended by {name} ({said})' + (f': {guess}' if guess else '')
    code = os.WEXITSTATUS(self.status)
    return (
      f'the process ended with exit status {code} before it had a verdict: something called '
      'sys.exit or os._exit'
    )


def verdict_of(ended: Ended, case: str, module: str) -> CaseVerdict:
  """Returns the verdict that a process has delivered, or the error that it stands for.

  Args:
    ended: the process.
    case: the name of the case.
    module: the file or module that declares it.
  """
  done = ended.last(jobs.DONE)
  if done is not None:
    return dataclasses.replace(case_from_fields(done['verdict']), module=module)
  refused = ended.last(jobs.REFUSED)
  if refused is not None:
    error = ErrorRecord('case', refused['error'], refused['traceback'])
    return _failed(ended, case, module, error)
  return _failed(ended, case, module, ErrorRecord('case', _told(ended), _tail(ended.log)))


def _failed(ended: Ended, case: str, module: str, error: ErrorRecord) -> CaseVerdict:
  """Returns the stages that were done, and the error at the one that was not."""
  stages = [
    stage
    for event in ended.events
    if event['event'] == jobs.STAGE
    for stage in case_from_fields(event['verdict']).stages
  ]
  started = ended.last(jobs.STARTED)
  names = list(started['stages']) if started is not None else []
  left = [name for name in names if name not in {stage.stage for stage in stages}]
  name = left[0] if left else 'importing'
  number = names.index(name) + 1 if left else 0
  spent = sum(stage.seconds for stage in stages)
  stages.append(
    StageVerdict(name, number, Status.ERROR, error=error, seconds=max(0.0, ended.seconds - spent))
  )
  for blocked in left[1:]:
    reason = f'blocked: {name} ERROR'
    stages.append(StageVerdict(blocked, names.index(blocked) + 1, Status.BLOCKED, reason=reason))
  return CaseVerdict(case, module, tuple(stages))


def _told(ended: Ended) -> str:
  doing = ended.last(jobs.DOING)
  step = f', while {doing["step"]}' if doing is not None else ''
  memory = ended.greatest_memory / 2**30
  return f'{ended.cause} (after {ended.seconds:.1f} s, {memory:.1f} GiB of memory{step})'


def _tail(log: str) -> str:
  lines = log.splitlines()
  cut = len(lines) - _SHOWN_LINES
  return '\n'.join([f'… {cut} lines before', *lines[cut:]] if cut > 0 else lines)
