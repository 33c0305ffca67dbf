"""The supervisor's end of the connection to the process that is copied for every job."""

import contextlib
import dataclasses
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tf2verify.errors import EnvironmentProblem, Tf2VerifyError
from tf2verify.fleet.crash_text import end_of_log
from tf2verify.fleet.job import Job

# The path of modules is the supervisor's; not by way of the environment, which the
# case's own processes would inherit.
_PROGRAM = (
  'import sys, json; sys.path[:] = json.loads(sys.argv[2]); '
  'from {module} import main; main(int(sys.argv[1]), sys.argv[3])'
)
MODULE = 'tf2verify.fleet.fork_server'
_MARK = 'TF2VERIFY_FLEET'
_START_SECONDS = 600.0
_END_SECONDS = 10.0


class ServerLost(Exception):
  """The process has ended, or does not answer; the message is how."""


@dataclasses.dataclass(frozen=True)
class Surroundings:
  """What a process starts with, and every copy of it."""

  path: tuple[str, ...]  # of modules
  environment: Mapping[str, str]  # its variables
  folder: str  # its working folder

  @classmethod
  def of_this_process(cls) -> 'Surroundings':
    """Returns those of this process."""
    return cls(tuple(sys.path), dict(os.environ), os.getcwd())


class ServerProcess:
  """A process that has imported TensorFlow and is copied for every job.

  Args:
    module: whose `main` it runs.
    surroundings: what it starts with.
    folder: of all jobs.
  """

  def __init__(self, module: str, surroundings: Surroundings, folder: str) -> None:
    # Known by it, what a case has daemonized is found after this process is gone.
    self.mark = f'{_MARK}={secrets.token_hex(16)}'
    self._connection, there = socket.socketpair()
    self._unread = b''
    self._start = time.monotonic()
    self.ready = False
    self._log = os.path.join(folder, 'server.log')
    with there, open(self._log, 'wb') as printed:
      program = _PROGRAM.format(module=module)
      path = json.dumps(list(filter(None, surroundings.path)))
      arguments = [str(there.fileno()), path, folder]
      self._process = subprocess.Popen(
        [sys.executable, '-c', program, *arguments],
        pass_fds=[there.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=printed,
        start_new_session=True,  # Ctrl-C is for the supervisor, which ends the others
        cwd=surroundings.folder,
        env={
          'TF_CPP_MIN_LOG_LEVEL': '2',
          **surroundings.environment,
          _MARK: self.mark.partition('=')[2],
        },
      )
    self._selector = selectors.DefaultSelector()
    self._selector.register(self._connection, selectors.EVENT_READ)

  @property
  def number(self) -> int:
    """Its process number."""
    return self._process.pid

  def close(self) -> None:
    """Has it end all jobs and itself, and waits for that."""
    with contextlib.suppress(ServerLost, OSError):
      self._send({'dismissed': True})
    self._selector.close()
    self._connection.close()  # which it takes as the end
    try:
      self._process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
      self._process.kill()
      self._process.wait()

  def never_started(self, how: str) -> Tf2VerifyError:
    """Returns the error of a process that ended while it imported TensorFlow."""
    printed = ''
    with (
      contextlib.suppress(FileNotFoundError),
      open(self._log, encoding='utf-8', errors='replace') as file,
    ):
      printed = end_of_log(file.read())
    return Tf2VerifyError(
      f'the process that imports TensorFlow for the fleet {how}; `python -m tf2verify doctor` '
      f'explains an environment that cannot work; what it printed:\n{printed}'
    )

  def start(self, job: Job) -> None:
    """Asks for a job.

    Raises:
      ServerLost: it is gone.
    """
    self._send({'job': dataclasses.asdict(job)})

  def end(self, job: int) -> None:
    """Asks it to end a job."""
    self._send({'signal': [job, 'end']})

  def show_stack(self, job: int) -> None:
    """Asks it to have a job print its stack."""
    self._send({'signal': [job, 'stack']})

  def messages(self, seconds: float) -> Sequence[dict[str, Any]]:
    """Returns what it has told of its jobs; waits for that a little.

    Raises:
      ServerLost: it is gone, or does not start.
      EnvironmentProblem: TF1-style code cannot run here.
    """
    if not self._selector.select(seconds):
      if not self.ready and time.monotonic() - self._start > _START_SECONDS:
        raise ServerLost(f'did not start within {_START_SECONDS:.0f} s')
      return ()
    try:
      data = self._connection.recv(2**16)
    except ConnectionResetError:
      data = b''
    if not data:
      raise ServerLost(self._how_it_ended())
    *lines, self._unread = (self._unread + data).split(b'\n')
    messages = [json.loads(line) for line in lines]
    for message in messages:
      if 'unfit' in message:
        raise EnvironmentProblem(message['unfit'])
      self.ready = self.ready or 'ready' in message
    return [message for message in messages if 'job' in message]

  def _send(self, message: dict[str, Any]) -> None:
    try:
      self._connection.sendall(json.dumps(message).encode() + b'\n')
    except (BrokenPipeError, ConnectionResetError) as error:
      raise ServerLost(self._how_it_ended()) from error

  def _how_it_ended(self) -> str:
    try:
      code = self._process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
      return 'closed its connection'
    if code >= 0:
      return f'ended with exit status {code}'
    return f'was ended by {signal.Signals(-code).name}'
