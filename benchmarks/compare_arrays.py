"""Times `compare_arrays` against `numpy.testing.assert_allclose`, side by side.

    python benchmarks/compare_arrays.py --elements 100000000

Both get the same float32 arrays and the same tolerance in the same process, in turns;
the shortest time of each counts. Extra memory is what is allocated during the call
(tracemalloc), measured in a call of its own. Exits with 1 if a target is missed; the
last row, where no element passes, has no target.
"""

import argparse
import pathlib
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

# The script measures the checkout that it lies in, installed or not.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.tolerance import Tolerance

_TOLERANCE = Tolerance(rtol=1e-6, atol=1e-5)
_LEAST_RATIO = 5.0
_MOST_MEGABYTES = 16.0

Situation = tuple[str, np.ndarray, np.ndarray, int]


def situations(elements: int) -> Iterator[Situation]:
  """Yields name, tf1, tf2 and how many elements are too far apart."""
  tf1 = np.random.default_rng(0).standard_normal(elements, dtype=np.float32)
  yield 'identical', tf1, tf1.copy(), 0
  rounded = np.nextafter(tf1, np.float32(np.inf))
  yield 'rounding everywhere', tf1, rounded, 0
  few = np.linspace(0, elements - 1, 20, dtype=np.int64)
  mismatched = tf1.copy()
  mismatched[few] += np.float32(0.01)
  yield '20 mismatches', tf1, mismatched, 20
  rounded[few] += np.float32(0.01)
  yield 'rounding, 20 mismatches', tf1, rounded, 20
  # The absolute allowance alone passes no rounding of values as large as these.
  large = tf1 * np.float32(1000)
  yield 'rounding, values ~1000', large, np.nextafter(large, np.float32(np.inf)), 0
  yield 'all mismatched', tf1, tf1 + np.float32(0.01), elements


def seconds(call: Callable[[], object]) -> float:
  """Returns the wall time of one call."""
  start = time.perf_counter()
  call()
  return time.perf_counter() - start


def extra_megabytes(call: Callable[[], object]) -> float:
  """Returns the peak of what is allocated during one call, in MB."""
  tracemalloc.start()
  try:
    call()
    return tracemalloc.get_traced_memory()[1] / 1e6
  finally:
    tracemalloc.stop()


def measure(situation: Situation, repeats: int) -> bool:
  """Prints one row of the table; returns whether the targets are met."""
  name, tf1, tf2, mismatched = situation

  def by_tf2verify() -> None:
    difference = compare_arrays(tf1, tf2, _TOLERANCE).difference
    found = 0 if difference is None else difference.mismatched
    if found != mismatched:
      raise ValueError(f'{name}: {found} mismatches, planted were {mismatched}')

  def by_numpy() -> None:
    try:
      np.testing.assert_allclose(tf2, tf1, rtol=_TOLERANCE.rtol, atol=_TOLERANCE.atol)
    except AssertionError:
      if not mismatched:
        raise

  turns = [(seconds(by_tf2verify), seconds(by_numpy)) for _ in range(repeats)]
  ours, numpys = (min(times) for times in zip(*turns, strict=True))
  our_memory, numpys_memory = extra_megabytes(by_tf2verify), extra_megabytes(by_numpy)
  print(
    f'{name:24} {ours:9.3f} {numpys:9.3f} {numpys / ours:6.1f}x '
    f'{our_memory:10.1f} {numpys_memory:10.1f}',
    flush=True,
  )
  return numpys / ours >= _LEAST_RATIO and our_memory <= _MOST_MEGABYTES


def main() -> int:
  """Prints the table; returns 0 if every row meets the targets."""
  parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
  parser.add_argument('--elements', type=int, default=100_000_000)
  parser.add_argument('--repeats', type=int, default=3)
  arguments = parser.parse_args()
  print(f'{arguments.elements} float32 elements, numpy {np.__version__}')
  print(f'{"":24} {"tf2verify":>9} {"numpy":>9} {"ratio":>7} {"tf2verify":>10} {"numpy":>10}')
  print(f'{"situation":24} {"s":>9} {"s":>9} {"":>7} {"extra MB":>10} {"extra MB":>10}')
  met = [measure(situation, arguments.repeats) for situation in situations(arguments.elements)][:-1]
  print(f'target: at least {_LEAST_RATIO:.0f}x, at most {_MOST_MEGABYTES:.0f} MB extra: ', end='')
  print('met' if all(met) else 'MISSED')
  return 0 if all(met) else 1


if __name__ == '__main__':
  sys.exit(main())
