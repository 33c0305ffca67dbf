"""The ladder against the same steps by hand: wall time and peak memory.

Each runs in a process of its own, one after the other, for two models: the
flagship (Inception-ResNet-v2, 299 x 299, 1000 classes) and one of three layers.

    python -m benchmarks.ladder [--models flagship small] [--repeats 1]

prints a table with the medians and the targets: at most 0.4 times the wall time
by hand, and at most its peak memory, for the flagship; at most 1.0 times for the
small model. Exits with 1 when a target is missed.
"""

import argparse
import dataclasses
import os
import statistics
import subprocess
import sys
import time

TARGETS = {'flagship': 0.4, 'small': 1.0}
_FOLDER = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Cost:
  """What one process took: wall seconds, and peak resident memory in MiB."""

  seconds: float
  mebibytes: float


def measure(script: str, model: str) -> Cost:
  """Runs one script to its end.

  Raises:
    RuntimeError: it failed; a failed run has no time.
  """
  start = time.perf_counter()
  process = subprocess.Popen(
    [sys.executable, os.path.join(_FOLDER, script), model],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    cwd=os.path.dirname(_FOLDER),
  )
  assert process.stderr is not None
  errors = process.stderr.read()
  _, status, usage = os.wait4(process.pid, 0)
  seconds = time.perf_counter() - start
  if status:
    raise RuntimeError(f'{script} {model} failed:\n{errors.decode()[-2000:]}')
  return Cost(seconds, usage.ru_maxrss / 1024)


def _median(costs: list[Cost]) -> Cost:
  return Cost(
    statistics.median(cost.seconds for cost in costs),
    statistics.median(cost.mebibytes for cost in costs),
  )


def main() -> int:
  """Measures and prints the table."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--models', nargs='+', choices=sorted(TARGETS), default=sorted(TARGETS))
  parser.add_argument('--repeats', type=int, default=1)
  arguments = parser.parse_args()
  missed = 0
  print(f'{"model":<10} {"by hand":>19} {"tf2verify":>19} {"time":>6} {"target":>7} {"memory":>7}')
  for model in arguments.models:
    by_hand, ladder = [], []
    for _ in range(arguments.repeats):
      by_hand.append(measure('by_hand.py', model))
      ladder.append(measure('climb.py', model))
    hand, ours = _median(by_hand), _median(ladder)
    ratio, memory = ours.seconds / hand.seconds, ours.mebibytes / hand.mebibytes
    missed += ratio > TARGETS[model] or (model == 'flagship' and memory > 1.0)
    print(
      f'{model:<10} {hand.seconds:7.1f} s {hand.mebibytes:5.0f} MiB {ours.seconds:7.1f} s '
      f'{ours.mebibytes:5.0f} MiB {ratio:6.2f} {TARGETS[model]:7.1f} {memory:7.2f}',
      flush=True,
    )
  return 1 if missed else 0


if __name__ == '__main__':
  sys.exit(main())
