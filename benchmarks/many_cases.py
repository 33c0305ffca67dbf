"""Many small cases in one process: neither slower nor larger as they go on.

    python -m benchmarks.many_cases [--cases 100] [--xla]

The whole ladder, without the mode `jit_compile`: TensorFlow keeps every program that XLA
has compiled as long as the process lives. `--xla` runs that mode as well.

Targets: the last 20 cases take at most 1.1 times the first 20 (medians), and memory
grows by at most 2 MiB a case. The first five cases load kernels and are not counted.
Exits with 1 when a target is missed.
"""

import argparse
import gc
import resource
import statistics
import sys
import time

import tf2verify
from benchmarks.small_case import SmallCase
from tf2verify.optional_hooks import DEFAULT_MODES

_WARM_UP = 5
_GROUP = 20
MOST_SLOWER = 1.1
MOST_GROWTH = 2.0


def _resident() -> float:
  """Returns the memory in use now, in MiB."""
  with open('/proc/self/statm', encoding='ascii') as file:
    return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def main() -> int:
  """Runs the cases and prints the two figures beside their targets."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--cases', type=int, default=100)
  parser.add_argument('--xla', action='store_true', help='with the mode jit_compile')
  arguments = parser.parse_args()
  count = arguments.cases
  modes = tuple(mode for mode in DEFAULT_MODES if arguments.xla or mode != 'jit_compile')
  seconds = []
  before = 0.0
  for number in range(_WARM_UP + count):
    if number == _WARM_UP:
      gc.collect()
      before = _resident()
    case = type(f'SmallCase{number}', (SmallCase,), {'modes_to_run': modes})
    start = time.perf_counter()
    verdict = tf2verify.verify(case)
    seconds.append(time.perf_counter() - start)
    if verdict.status is not tf2verify.Status.PASSED:
      print(verdict.to_text())
      return 1
  gc.collect()
  growth = (_resident() - before) / count
  counted = seconds[_WARM_UP:]
  first, last = counted[:_GROUP], counted[-_GROUP:]
  slower = statistics.median(last) / statistics.median(first)  # a busy machine hits single cases
  print(f'{count} cases, median {statistics.median(counted):.2f} s each')
  print(f'last {_GROUP} against first {_GROUP}: {slower:.2f} (at most {MOST_SLOWER})')
  print(f'memory growth: {growth:.2f} MiB a case (at most {MOST_GROWTH})')
  return 0 if slower <= MOST_SLOWER and growth <= MOST_GROWTH else 1


if __name__ == '__main__':
  sys.exit(main())
