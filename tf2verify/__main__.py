"""`python -m tf2verify ...`."""

import os
import select
import signal
import sys
from typing import TextIO

from tf2verify import cli

_CLOSED_OUTPUT = 128 + signal.SIGPIPE


def main() -> int:
  """Runs one command; quiet where nobody reads its output any more, as in `... | head`.

  Returns:
    The exit status: of `cli.main`, or 141, which a shell gives to what SIGPIPE ends.
  """
  try:
    try:
      return cli.main()
    finally:
      sys.stdout.flush()
  except BrokenPipeError:
    closed = [stream for stream in (sys.stdout, sys.stderr) if _has_no_reader(stream)]
    if not closed:
      raise  # of another pipe
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in closed:
      os.dup2(nowhere, stream.fileno())  # what is still to be flushed when Python ends
    return _CLOSED_OUTPUT


def _has_no_reader(stream: TextIO) -> bool:
  """Tells whether a stream is a pipe or socket whose other end is closed."""
  poll = select.poll()
  poll.register(stream.fileno(), 0)
  return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


if __name__ == '__main__':
  sys.exit(main())
