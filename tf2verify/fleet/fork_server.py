"""The process that has imported TensorFlow; every job is done by a copy of it.

    python -m tf2verify.fleet.fork_server DESCRIPTOR

TensorFlow's start takes seconds, a copy of a process in which it is imported, but has
run nothing and has no threads of its own yet, a tenth of one.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys

from tf2verify.fleet import job_run
from tf2verify.fleet.job import Job

_LEAST_SECONDS = 0.02


def _import_what_jobs_need() -> None:
  import tensorflow as tf

  import tf2verify.case
  import tf2verify.diagnosis.of_stage
  import tf2verify.discovery  # noqa: F401

  _ = tf.compat.v1.keras.utils  # loaded at its first use


class ForkServer:
  """Starts a copy of itself for every job, and tells how each ended."""

  def __init__(self, connection: socket.socket) -> None:
    self._connection = connection
    self._jobs: dict[int, int] = {}
    self._unread = b''

  def serve(self) -> None:
    """Goes on until the supervisor closes the connection, or is gone."""
    self._tell({'ready': os.getpid()})
    while True:
      timeout = _LEAST_SECONDS if self._jobs else None
      readable, _, _ = select.select([self._connection], [], [], timeout)
      if readable:
        data = self._connection.recv(2**16)
        if not data:
          break
        *lines, self._unread = (self._unread + data).split(b'\n')
        for line in lines:
          self._start(Job.from_json(line.decode()))
      self._tell_ended()
    for process in self._jobs:
      _end_group(process)

  def _start(self, job: Job) -> None:
    process = os.fork()
    if process == 0:
      status = 1
      try:
        self._connection.close()
        os.setsid()  # so that what it starts itself can be ended with it
        _prefer_for_lack_of_memory()
        status = job_run.do(job)
      except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
      finally:
        # No exit handlers: those are the server's, and TensorFlow's would wait for threads.
        sys.stderr.flush()
        os._exit(status)
    self._jobs[process] = job.number
    self._tell({'job': job.number, 'process': process})

  def _tell_ended(self) -> None:
    for process in list(self._jobs):
      ended, status = os.waitpid(process, os.WNOHANG)
      if ended:
        self._tell({'job': self._jobs.pop(process), 'status': status})
        _end_group(process)  # whatever it has left behind

  def _tell(self, message: dict[str, int]) -> None:
    self._connection.sendall(json.dumps(message).encode() + b'\n')


def _prefer_for_lack_of_memory() -> None:
  """Lets the kernel end this process first, and not the fleet, when memory runs out."""
  try:
    with open('/proc/self/oom_score_adj', 'w', encoding='ascii') as file:
      file.write('1000')
  except OSError:
    pass  # no Linux, or not allowed: the supervisor's own limit remains


def _end_group(process: int) -> None:
  with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
    os.killpg(process, signal.SIGKILL)


def main(descriptor: int) -> None:
  """Serves the supervisor at the other end of a socket.

  Args:
    descriptor: of the socket.
  """
  with socket.socket(fileno=descriptor) as connection:
    _import_what_jobs_need()
    gc.collect()
    gc.freeze()  # so that a copy's collections leave the shared pages alone
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the supervisor is gone
      ForkServer(connection).serve()


if __name__ == '__main__':
  main(int(sys.argv[1]))
