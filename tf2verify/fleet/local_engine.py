"""Jobs done on this machine: a few at a time, each watched from outside."""

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tf2verify.errors import Tf2VerifyError
from tf2verify.fleet.ended import Ended
from tf2verify.fleet.job import Job, read_events
from tf2verify.fleet.job_run import SHOW_STACK

_MODULE = 'tf2verify.fleet.fork_server'
_LOOK_SECONDS = 0.05
# A process that hangs gets this long to write its stack.
_STACK_SECONDS = 0.5
_LOG_BYTES = 256 * 2**10


@dataclasses.dataclass(frozen=True)
class Limits:
  """What one job may take.

  Attributes:
    seconds: of wall time; None for no limit.
    memory: in bytes of resident memory, of the process and what it starts; None for no
      limit.
  """

  seconds: float | None = None
  memory: int | None = None


@dataclasses.dataclass(frozen=True)
class Request:
  """A job before it has a number.

  Attributes:
    kind: as of `Job`.
    target: as of `Job`.
    stages: as of `Job`.
    key: whatever the caller knows it by.
  """

  kind: str
  target: str
  stages: tuple[str, ...] | None
  key: Any


@dataclasses.dataclass
class _Running:
  """A job under way."""

  request: Request
  job: Job
  start: float
  process: int = 0
  greatest_memory: int = 0
  reason: str = ''
  kill_at: float | None = None


class LocalEngine:
  """Does jobs in copies of one process that has imported TensorFlow, until it is closed."""

  def __init__(self, workers: int, limits: Limits) -> None:
    self._workers = workers
    self._limits = limits
    self._running: dict[int, _Running] = {}
    self._numbers = 0
    self._resources = contextlib.ExitStack()
    self._server: _Server | None = None
    self._folder = ''

  def __enter__(self) -> 'LocalEngine':
    return self

  def __exit__(self, *_: object) -> None:
    self._resources.close()
    self._server = None

  def run(
    self, requests: Iterable[Request], started: Callable[[Request], None]
  ) -> Iterator[tuple[Request, Ended]]:
    """Does jobs, and yields each as soon as it has ended.

    Args:
      requests: asked for one by one, when there is room.
      started: called when a job begins.
    """
    waiting = iter(requests)
    while True:
      while len(self._running) < self._workers:
        request = next(waiting, None)
        if request is None:
          break
        self._start(request)
        started(request)
      if not self._running:
        return
      for message in self._ready_server().messages(_LOOK_SECONDS):
        running = self._running.get(message['job'])
        if running is None:
          continue
        if 'process' in message:
          running.process, running.start = message['process'], time.monotonic()
        else:
          yield running.request, self._ended(message['job'], message['status'])
      self._look_after()

  def _ready_server(self) -> '_Server':
    if self._server is None:
      folder = tempfile.TemporaryDirectory(prefix='tf2verify-fleet-')
      self._folder = self._resources.enter_context(folder)
      self._server = self._resources.enter_context(_Server())
    return self._server

  def _start(self, request: Request) -> None:
    server = self._ready_server()
    self._numbers += 1
    events, log = (
      os.path.join(self._folder, f'{self._numbers}.{kind}') for kind in ('events', 'log')
    )
    job = Job(self._numbers, request.kind, request.target, request.stages, events, log)
    self._running[job.number] = _Running(request, job, time.monotonic())
    server.start(job)

  def _ended(self, number: int, status: int) -> Ended:
    running = self._running.pop(number)
    events, log = tuple(read_events(running.job.events)), _end_of(running.job.log)
    for path in (running.job.events, running.job.log):
      with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    seconds = time.monotonic() - running.start
    return Ended(status, events, log, running.reason, seconds, running.greatest_memory)

  def _look_after(self) -> None:
    """Ends what takes more than it may."""
    now = time.monotonic()
    for running in self._running.values():
      if not running.process:
        continue
      memory = memory_of_group(running.process)
      running.greatest_memory = max(running.greatest_memory, memory)
      if running.kill_at is not None:
        if now >= running.kill_at:
          _signal_group(running.process, signal.SIGKILL)
        continue
      allowed, seconds = self._limits.memory, self._limits.seconds
      if allowed is not None and memory > allowed:
        running.reason = (
          f'ended by the fleet: it took {memory / 2**30:.2f} GiB of memory, and may take '
          f'{allowed / 2**30:.2f} (--memory)'
        )
        running.kill_at = now
        _signal_group(running.process, signal.SIGKILL)
      elif seconds is not None and now - running.start > seconds:
        running.reason = (
          f'ended by the fleet: no verdict after {seconds:g} s (--timeout); the stack below '
          'shows where it was'
        )
        running.kill_at = now + _STACK_SECONDS
        _signal(running.process, SHOW_STACK)


class _Server:
  """The process that is copied, and the socket to it."""

  def __enter__(self) -> '_Server':
    here, there = socket.socketpair()
    self._connection, self._unread = here, b''
    with there:
      descriptor = there.fileno()
      self._process = subprocess.Popen(
        [sys.executable, '-m', _MODULE, str(descriptor)],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the supervisor, which ends the others
        env={
          'TF_CPP_MIN_LOG_LEVEL': '2',
          **os.environ,
          'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
        },
      )
    self._selector = selectors.DefaultSelector()
    self._selector.register(here, selectors.EVENT_READ)
    return self

  def __exit__(self, *_: object) -> None:
    self._selector.close()
    self._connection.close()  # which it takes as the end
    self._process.wait()

  def start(self, job: Job) -> None:
    """Asks for a job."""
    self._connection.sendall(job.to_json().encode() + b'\n')

  def messages(self, seconds: float) -> list[dict[str, int]]:
    """Returns what it has told; waits for that a little.

    Raises:
      Tf2VerifyError: it is gone.
    """
    if not self._selector.select(seconds):
      return []
    try:
      data = self._connection.recv(2**16)
    except ConnectionResetError:
      data = b''
    if not data:
      code = self._process.wait()
      raise Tf2VerifyError(
        f'the process that imports TensorFlow for the fleet ended with status {code}; what it '
        'printed is above; `python -m tf2verify doctor` explains an environment that cannot work'
      )
    *lines, self._unread = (self._unread + data).split(b'\n')
    return [message for message in map(json.loads, lines) if 'job' in message]


def memory_of_group(leader: int) -> int:
  """Returns the resident memory, in bytes, of a process and of all it has started.

  Pages that a copy shares with the process that it was copied from count in each.
  """
  total = 0
  for process in _group(leader):
    try:
      with open(f'/proc/{process}/statm', encoding='ascii') as file:
        total += int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
    except (OSError, IndexError):
      continue  # it has ended meanwhile
  return total


def _group(leader: int) -> Iterator[int]:
  """Yields a process and its descendants."""
  pending = [leader]
  while pending:
    process = pending.pop()
    yield process
    try:
      tasks = os.listdir(f'/proc/{process}/task')
    except OSError:
      continue
    for task in tasks:
      try:
        with open(f'/proc/{process}/task/{task}/children', encoding='ascii') as file:
          pending += map(int, file.read().split())
      except OSError:
        continue


def _signal(process: int, number: int) -> None:
  with contextlib.suppress(ProcessLookupError):
    os.kill(process, number)


def _signal_group(leader: int, number: int) -> None:
  for process in list(_group(leader)):
    _signal(process, number)


def _end_of(path: str) -> str:
  """Returns the last part of a log."""
  try:
    with open(path, 'rb') as file:
      file.seek(max(0, os.path.getsize(path) - _LOG_BYTES))
      return file.read().decode('utf-8', 'replace')
  except FileNotFoundError:
    return ''
