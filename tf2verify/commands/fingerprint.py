"""Runs a case once and writes a digest of every tensor; a program of its own.

    python -m tf2verify.commands.fingerprint [--op_determinism] FILE::Case DIGESTS.json

The stage `determinism` starts it, in processes with another environment.
"""

import argparse
import sys
from collections.abc import Sequence

from tf2verify.case import new_ladder
from tf2verify.discovery import find_cases
from tf2verify.sides.process import state as process_state
from tf2verify.sides.repetition import repeating
from tf2verify.stages.repetition import fresh_processes
from tf2verify.stages.repetition.repetition import Repeater


def main(argv: Sequence[str]) -> None:
  """Writes the digests of both sides.

  Args:
    argv: options, target and path.
  """
  parser = argparse.ArgumentParser()
  parser.add_argument('--op_determinism', action='store_true')
  parser.add_argument('target', metavar='FILE::Case')
  parser.add_argument('path')
  options = parser.parse_args(argv)
  (found,) = find_cases(options.target)
  with found.importable(), process_state.preserved():
    ladder = new_ladder(found.case, lambda _: None)
    repeater = Repeater.of(ladder.prepared())
    if options.op_determinism:
      with repeating.op_determinism():
        digests = repeater.digests()
    else:
      digests = repeater.digests()
    ladder.close()
  with open(options.path, 'w', encoding='utf-8') as file:
    file.write(fresh_processes.written(digests))


if __name__ == '__main__':
  main(sys.argv[1:])
