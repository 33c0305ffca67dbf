"""Jobs done on this machine: a few at a time, each watched from outside."""

import contextlib
import dataclasses
import math
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tf2verify.errors import Tf2VerifyError
from tf2verify.fleet import processes
from tf2verify.fleet.ended import Ended
from tf2verify.fleet.job import OUTCOMES, Job, read_events
from tf2verify.fleet.own_folder import own_folder
from tf2verify.fleet.server_process import MODULE, ServerLost, ServerProcess, Surroundings
from tf2verify.records.resources import Resources

_LOOK_SECONDS = 0.05
# A process that hangs gets this long to write its stack.
_STACK_SECONDS = 1.0
# A process that was ended, and its server, get this long to say so.
_END_SECONDS = 30.0
_LOG_BYTES = 256 * 2**10
# Beyond this the log of a job is emptied: its end is what a report shows.
_LARGEST_LOG = 64 * 2**20


@dataclasses.dataclass(frozen=True)
class Limits:
  """What one job may take.

  Attributes:
    seconds: of wall time; None for no limit.
    memory: in bytes, as `processes.anonymous_memory` counts; None for no limit. What a
      case declares counts in its place.
    memory_of_all: what all jobs may take together: one that declares more than is left
      waits, unless nothing else runs; None for no limit.
  """

  seconds: float | None = None
  memory: int | None = None
  memory_of_all: int | None = None

  def memory_of(self, request: 'Request') -> int | None:
    """Returns what one job may take."""
    declared = request.resources.memory
    return self.memory if declared is None else declared


@dataclasses.dataclass(frozen=True)
class Request:
  """A job before it has a number.

  Attributes:
    kind: as of `Job`.
    target: as of `Job`.
    stages: as of `Job`.
    key: whatever the caller knows it by.
    resources: what it needs.
  """

  kind: str
  target: str
  stages: tuple[str, ...] | None
  key: Any = None
  resources: Resources = dataclasses.field(default_factory=Resources)


@dataclasses.dataclass
class _Running:
  """A job under way."""

  request: Request
  job: Job
  alone: bool
  start: float
  process: int = 0
  greatest_memory: int = 0
  reason: str = ''
  end_at: float | None = None
  asked_to_end: bool = False


class LocalEngine:
  """Does jobs in copies of one process that has imported TensorFlow, until it is closed.

  Should that process itself end, what ran then is run again, one job after the other: the
  job with which it ends a second time is to blame, and the others are done.

  Args:
    workers: how many jobs at once.
    limits: of each.
    module: the program of the process that is copied.
    surroundings: what that process starts with; those of this one by default.
  """

  def __init__(
    self,
    workers: int,
    limits: Limits,
    module: str = MODULE,
    surroundings: Surroundings | None = None,
  ) -> None:
    self._workers = workers
    self._limits = limits
    self._module = module
    self._surroundings = surroundings or Surroundings.of_this_process()
    self._next: Request | None = None
    self._running: dict[int, _Running] = {}
    self._suspects: list[Request] = []
    self._numbers = 0
    self._resources = contextlib.ExitStack()
    self._server: ServerProcess | None = None
    self._folder = ''
    self._own_children: frozenset[int] = frozenset()

  def __enter__(self) -> 'LocalEngine':
    self._folder = self._resources.enter_context(own_folder())
    # Should the process that is copied be killed, what its cases have daemonized comes here.
    processes.adopt_orphans()
    self._resources.callback(processes.adopt_orphans, False)
    self._own_children = frozenset(processes.children(os.getpid()))
    return self

  def __exit__(self, *_: object) -> None:
    try:
      self._close_server()
    finally:
      self._resources.close()

  def run(
    self, requests: Iterable[Request], started: Callable[[Request], None]
  ) -> Iterator[tuple[Request, Ended]]:
    """Does jobs, and yields each as soon as it has ended.

    Args:
      requests: asked for one by one, when there is room.
      started: called when a job begins.

    Raises:
      EnvironmentProblem: TF1-style code cannot run here.
      Tf2VerifyError: the process that imports TensorFlow does not start.
    """
    waiting, self._next = iter(requests), None
    while True:
      try:
        self._fill(waiting, started)
        if not self._running:
          return
        for message in self._ready_server().messages(_LOOK_SECONDS):
          yield from self._heard(message)
        self._look_after()
      except ServerLost as lost:
        yield from self._without_server(str(lost))

  def _fill(self, waiting: Iterator[Request], started: Callable[[Request], None]) -> None:
    if self._suspects:
      if not self._running:
        self._start(self._suspects.pop(0), alone=True)
      return
    while len(self._running) < self._workers:
      self._next = self._next or next(waiting, None)
      if self._next is None or not self._has_room_for(self._next):
        return
      request, self._next = self._next, None
      started(request)
      self._start(request, alone=False)

  def _has_room_for(self, request: Request) -> bool:
    requests = [running.request for running in self._running.values()]
    if not requests:
      return True  # it will not get more
    requests.append(request)
    if sum(max(1, math.ceil(one.resources.cpus)) for one in requests) > self._workers:
      return False
    if all(one.resources.memory is None for one in requests):
      return True
    memory = sum(self._limits.memory_of(one) or 0 for one in requests)
    return self._limits.memory_of_all is None or memory <= self._limits.memory_of_all

  def _ready_server(self) -> ServerProcess:
    if self._server is None:
      self._server = ServerProcess(self._module, self._surroundings, self._folder)
    return self._server

  def _close_server(self) -> ServerProcess | None:
    """Ends the process that is copied, if there is one, and returns it."""
    server, self._server = self._server, None
    if server is not None:
      server.close()
      processes.end_marked(server.mark)
      processes.end_children(self._own_children)
    return server

  def _start(self, request: Request, alone: bool) -> None:
    self._numbers += 1
    folder = os.path.join(self._folder, str(self._numbers))
    try:
      os.mkdir(folder)
    except OSError as error:
      raise Tf2VerifyError(
        f'could not create {folder}: {error.strerror}; TMPDIR names a different folder for '
        'temporary '
        'files; continue with --resume'
      ) from error
    job = Job(self._numbers, request.kind, request.target, request.stages, folder)
    self._running[job.number] = _Running(request, job, alone, time.monotonic())
    self._ready_server().start(job)

  def _heard(self, message: dict[str, Any]) -> Iterator[tuple[Request, Ended]]:
    running = self._running.get(message['job'])
    if running is None:
      return
    if 'process' in message:
      running.process, running.start = message['process'], time.monotonic()
      return
    del self._running[running.job.number]
    running.reason = running.reason or message.get('refused', '')
    yield running.request, self._ended(running, message.get('status'))

  def _ended(self, running: _Running, status: int | None) -> Ended:
    events, log = tuple(read_events(running.job.events)), _end_of(running.job.log)
    shutil.rmtree(running.job.folder, ignore_errors=True)
    seconds = time.monotonic() - running.start
    return Ended(status, events, log, running.reason, seconds, running.greatest_memory)

  def _without_server(self, how: str) -> Iterator[tuple[Request, Ended]]:
    """Goes on when the process that is copied has ended."""
    lost = list(self._running.values())
    self._running.clear()
    server = self._close_server()
    if server is not None and not server.ready:
      raise server.never_started(how)
    for running in lost:
      if running.process:
        processes.end_session(running.process)
    for running in lost:
      told = any(event['event'] in OUTCOMES for event in read_events(running.job.events))
      blamed = running.alone and running.process
      if told or blamed or running.reason:
        running.reason = running.reason or (
          f'the process from which cases are forked {how} while this case ran alone, for the '
          'second '
          'time: the case ends processes that are not its own'
        )
        yield running.request, self._ended(running, None)
      else:
        self._suspects.append(running.request)

  def _look_after(self) -> None:
    """Ends what takes more than it may."""
    now = time.monotonic()
    for running in [known for known in self._running.values() if known.process]:
      if running.end_at is not None:
        self._end(running, now)
        continue
      memory = processes.anonymous_memory(running.process)
      running.greatest_memory = max(running.greatest_memory, memory)
      allowed, seconds = self._limits.memory_of(running.request), self._limits.seconds
      if allowed is not None and memory > allowed:
        running.reason = (
          f'ended by the fleet: it took {memory / 2**30:.2f} GiB of memory, and may take '
          f'{allowed / 2**30:.2f} ({_said_by(running.request)})'
        )
        running.end_at = now
        self._end(running, now)
      elif seconds is not None and now - running.start > seconds:
        running.reason = (
          f'ended by the fleet: no verdict after {seconds:g} s (--timeout); the stack below '
          'shows where it was'
        )
        running.end_at = now + _STACK_SECONDS
        self._ready_server().show_stack(running.job.number)
      elif _size(running.job.log) > _LARGEST_LOG:
        with contextlib.suppress(OSError):
          os.truncate(running.job.log, 0)

  def _end(self, running: _Running, now: float) -> None:
    """Has a job ended whose time is over."""
    if running.end_at is None or now < running.end_at:
      return
    if not running.asked_to_end:
      running.asked_to_end = True
      self._ready_server().end(running.job.number)
    elif now > running.end_at + _END_SECONDS:
      raise ServerLost('does not answer')


def _said_by(request: Request) -> str:
  return '--memory' if request.resources.memory is None else 'its resources'


def _size(path: str) -> int:
  try:
    return os.path.getsize(path)
  except OSError:
    return 0


def _end_of(path: str) -> str:
  """Returns the last part of a log."""
  try:
    with open(path, 'rb') as file:
      file.seek(max(0, os.path.getsize(path) - _LOG_BYTES))
      return file.read().decode('utf-8', 'replace')
  except FileNotFoundError:
    return ''
