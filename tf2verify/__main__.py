"""`python -m tf2verify ...`."""

import contextlib
import os
import select
import signal
import sys
from typing import TextIO

from tf2verify.commands import cli
from tf2verify.environment import interruption
from tf2verify.safe_text import make_streams_safe, say

_CLOSED_OUTPUT = 128 + signal.SIGPIPE


def main() -> int:
  """Runs one command; quiet where nobody reads its output any more, as in `... | head`.

  Returns:
    The exit status: of `cli.main`; 130 after Ctrl-C; or 141, which a shell gives to what
    SIGPIPE ends.
  """
  make_streams_safe()
  # The fleet has a handler of its own, which ends the cases first.
  watched = contextlib.nullcontext() if sys.argv[1:2] == ['fleet'] else interruption.watched()
  try:
    try:
      with watched:
        return cli.main()
    finally:
      if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()
  except KeyboardInterrupt:
    say('tf2verify: interrupted', sys.stderr)
    return interruption.EXIT_STATUS
  except BrokenPipeError:
    closed = [stream for stream in (sys.stdout, sys.stderr) if _has_no_reader(stream)]
    if not closed:
      raise  # of another pipe
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in closed:
      os.dup2(nowhere, stream.fileno())  # what is still to be flushed when Python ends
    return _CLOSED_OUTPUT


def _has_no_reader(stream: TextIO) -> bool:
  """Returns whether a stream is a pipe or socket whose other end is closed."""
  poll = select.poll()
  poll.register(stream.fileno(), 0)
  return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


if __name__ == '__main__':
  sys.exit(main())
