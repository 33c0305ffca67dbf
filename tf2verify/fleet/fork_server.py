"""The process that has imported TensorFlow; every job is done by a copy of it.

TensorFlow's start takes seconds, a copy of a process in which it is imported, but has
run nothing, a tenth of one. The threads that the process has by then are OpenBLAS's
(numpy's and scipy's), which are stopped before a copy is made and started again at
their first use; TensorFlow starts its own at its first operation.
"""

import contextlib
import gc
import json
import os
import select
import shutil
import socket
import sys
from collections.abc import Callable
from typing import Any

from tf2verify.errors import Tf2VerifyError
from tf2verify.fleet import job_run, processes
from tf2verify.fleet.job import UNCAUGHT, Job
from tf2verify.safe_text import make_streams_safe

_LOOK_SECONDS = 0.02


class ForkServer:
  """Starts a copy of itself for every job, and tells how each ended.

  Args:
    connection: to the supervisor: a line of JSON per message, either way.
    folder: of all jobs; goes with the supervisor, if that cannot see to it.
    do: does a job in the copy and returns its exit status.
  """

  def __init__(self, connection: socket.socket, folder: str, do: Callable[[Job], int]) -> None:
    self._connection = connection
    self._folder = folder
    self._do = do
    self._jobs: dict[int, int] = {}  # number of the job by process
    self._unread = b''
    self._is_dismissed = False  # else, when the connection ends, the supervisor is gone

  def serve(self) -> None:
    """Goes on until the supervisor closes the connection, or is gone."""
    processes.adopt_orphans()
    self._tell(ready=os.getpid())
    while True:
      timeout = _LOOK_SECONDS if self._jobs else None
      readable, _, _ = select.select([self._connection], [], [], timeout)
      if readable:
        data = self._connection.recv(2**16)
        if not data:
          return
        *lines, self._unread = (self._unread + data).split(b'\n')
        for line in lines:
          self._obey(json.loads(line))
      self._tell_ended()

  def end_all(self) -> None:
    """Ends all jobs, and what they have started; the supervisor may be gone."""
    for process in self._jobs:
      processes.end_descendants(process)
      processes.end_session(process)
    self._jobs.clear()
    self._end_orphans()
    if not self._is_dismissed:
      shutil.rmtree(self._folder, ignore_errors=True)

  def _obey(self, message: dict[str, Any]) -> None:
    if 'dismissed' in message:
      self._is_dismissed = True
      return
    if 'job' in message:
      self._start(Job.from_fields(message['job']))
      return
    # Only what is still a child of this process is signalled: its number cannot be
    # another process's by now.
    number, wanted = message['signal']
    for process in [known for known, job in self._jobs.items() if job == number]:
      if wanted == 'end':
        processes.end_descendants(process)
      else:
        processes.kill(process, job_run.SHOW_STACK)

  def _start(self, job: Job) -> None:
    server = os.getpid()
    try:
      process = os.fork()
    except OSError as error:
      self._tell(job=job.number, refused=f'could not start a process: {error.strerror}')
      return
    if process == 0:
      self._become(job, server)
    self._jobs[process] = job.number
    self._tell(job=job.number, process=process)

  def _become(self, job: Job, server: int) -> None:
    """Does a job and ends, in the copy."""
    status = UNCAUGHT
    try:
      processes.end_with_parent(server)
      self._connection.close()
      # What it daemonizes stays its own, and counts as its own, until it ends.
      processes.adopt_orphans()
      os.setsid()  # so that what it starts itself can be ended with it
      processes.end_first_for_lack_of_memory()
      status = self._do(job)
    except BaseException:  # noqa: BLE001 - nothing may return into the server's own loop
      sys.excepthook(*sys.exc_info())
    finally:
      # No exit handlers: those are the server's, and TensorFlow's would wait for threads.
      try:
        sys.stderr.flush()
      finally:
        os._exit(status)

  def _tell_ended(self) -> None:
    with contextlib.suppress(ChildProcessError):  # there are no children
      while True:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
          break
        number = self._jobs.pop(process, None)
        if number is not None:  # else an orphan that was adopted
          processes.end_session(process)
          self._end_orphans()
          self._tell(job=number, status=status)
    if not self._jobs:
      self._end_orphans()

  def _end_orphans(self) -> None:
    """Ends what jobs that have ended have left behind, in whatever session.

    Orphans of a job that runs are children of that job: what is a child of this process,
    and no job, is of one that has ended.
    """
    for process in processes.children(os.getpid()):
      if process not in self._jobs:
        processes.end_descendants(process)

  def _tell(self, **message: Any) -> None:
    self._connection.sendall(json.dumps(message).encode() + b'\n')


def serve(
  descriptor: int, folder: str, prepare: Callable[[], None], do: Callable[[Job], int]
) -> None:
  """Serves the supervisor at the other end of a socket, and ends this process.

  Args:
    descriptor: of the socket.
    folder: of all jobs.
    prepare: imports what jobs need.
    do: does a job.
  """
  with socket.socket(fileno=descriptor) as connection:
    try:
      prepare()
    except Tf2VerifyError as error:
      connection.sendall(json.dumps({'unfit': str(error)}).encode() + b'\n')
      return
    gc.collect()
    gc.freeze()  # so that a copy's collections leave the shared pages alone
    server = ForkServer(connection, folder, do)
    try:
      with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the supervisor is gone
        server.serve()
    finally:
      server.end_all()
  sys.stderr.flush()
  os._exit(0)  # what TensorFlow does at exit takes time, and is of no use here


def main(descriptor: int, folder: str) -> None:
  """Serves with TensorFlow.

  Args:
    descriptor: of the socket.
    folder: of all jobs.
  """
  make_streams_safe()
  serve(descriptor, folder, job_run.prepare, job_run.do)
