"""Times the making and the opening of a page of 300 cases with 1,000 tensors each.

    python -m benchmarks.html_report --cases 300 --tensors 1000

The verdicts are made up: random numbers, names like those of a large model, a third of
the cases failing with 100 differences, a growth and the noise of all gradients. The page
is opened in a headless Chromium, which is told to forget what it knows, five times; the
median counts, from the start of the navigation to the first paint and to the end of
loading, as the browser tells it. Exits with 1 if a target is missed: 20 MB, 30 s to make,
2 s to the first paint.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

# The script measures the checkout that it lies in, installed or not.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from tests import browser
from tf2verify.records.diagnosis import Cause, Diagnosis, GrowthPoint
from tf2verify.records.difference import (
  ArrayDifference,
  Aspect,
  Deviation,
  Difference,
  Judgement,
)
from tf2verify.records.side_by_side import VariablePair, VariableSummary
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.report.html.page import page
from tf2verify.report.html.words import PROVES

_MOST_BYTES, _MOST_SECONDS, _MOST_PAINT = 20e6, 30.0, 2.0
_OPENINGS = 5
_ENDS = ('weights', 'BatchNorm/gamma', 'BatchNorm/beta', 'BatchNorm/moving_mean', 'biases')
_DIFFERENCES = 100


def _names(random: np.random.Generator, tensors: int) -> list[str]:
  model = f'Model{random.integers(1000)}'
  return [
    f'{model}/Repeat_{n // 200}/block{random.integers(40)}_{n % 200 // 20}/Branch_{n % 20 // 5}/'
    f'Conv2d_0{"abcd"[n % 4]}_{random.integers(1, 8)}x{random.integers(1, 8)}/{_ENDS[n % 5]}'
    for n in range(tensors)
  ]


def _deviation(random: np.random.Generator, name: str, failed: bool) -> Deviation:
  x, y = (float(v) for v in np.exp(random.uniform(-12, 3, 2)))
  bins = random.poisson(500 * np.exp(-((np.arange(24) - random.uniform(2, 18)) ** 2) / 30))
  return Deviation(
    'gradient',
    name,
    'training, distinct values',
    'float32',
    1e-6,
    1e-5,
    ((x, y), (2 * x, 1.5 * y)),
    x,
    Judgement.FAILED if failed else Judgement.PASSED,
    y * float(random.uniform(1e-6, 1)) if failed else None,
    tuple(int(count) for count in bins),
  )


def _difference(deviation: Deviation) -> Difference:
  (x, y), *_ = deviation.frontier
  return Difference(
    deviation.quantity,
    deviation.subject,
    Aspect.VALUES,
    run=deviation.run,
    array=ArrayDifference(
      (3, 3, 32, 64), 'float32', 9000, 18432, (1, 2, 3, 4), x, x + y, y, y / x, 1e-6, 1e-5, y,
      y / x, deviation.noise,
    ),
  )  # fmt: skip


def made_up_case(number: int, tensors: int) -> CaseVerdict:
  """Returns a verdict of six stages; every third fails."""
  random = np.random.default_rng(number)
  names, failed = _names(random, tensors), number % 3 == 0
  deviations = tuple(_deviation(random, name, failed) for name in names)
  summaries = [VariableSummary(name, (3, 3, 32, 64), 'float32', True) for name in names]
  growth = tuple(GrowthPoint(name, float(random.uniform())) for name in names[:60])
  cause = Cause(f'cause {number % 7} of those that are known', 'what was seen', 'rule')
  others = [
    StageVerdict(stage, rung, Status.PASSED, Compared(tensors, 10**6), seconds=float(rung))
    for rung, stage in enumerate(list(PROVES)[:5], 1)
    if stage != 'variable_inventory'
  ]
  stages = [
    *others,
    StageVerdict(
      'variable_inventory',
      2,
      Status.PASSED,
      Compared(tensors, noun='variables'),
      inventory=tuple(VariablePair(summary, summary) for summary in summaries),
    ),
    StageVerdict(
      'gradients',
      6,
      Status.FAILED if failed else Status.PASSED,
      Compared(tensors, 10**7),
      tuple(map(_difference, deviations[:_DIFFERENCES])) if failed else (),
      diagnosis=Diagnosis('training', (cause,), growth=growth) if failed else None,
      deviations=deviations,
    ),
  ]
  ordered = tuple(sorted(stages, key=lambda stage: stage.number))
  return CaseVerdict(f'Case{number:03}', f'models/model_{number}.py', ordered)


def _opening(path: str) -> tuple[float, float]:
  """Returns seconds to the first paint and to the end of loading, medians."""
  paints, loads = [], []
  for _ in range(_OPENINGS):
    chromium = browser.Browser()
    try:
      chromium.look()
      chromium.open(path)
      paint = "performance.getEntriesByName('first-contentful-paint')[0]"
      paints.append(chromium.wait_for(f'{paint} && {paint}.startTime') / 1000)
      load = "performance.getEntriesByType('navigation')[0].loadEventEnd"
      loads.append(chromium.wait_for(load) / 1000)
    finally:
      chromium.close()
  return statistics.median(paints), statistics.median(loads)


def main() -> int:
  """Prints the measurements; returns 1 if a target is missed."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('--cases', type=int, default=300)
  parser.add_argument('--tensors', type=int, default=1000)
  arguments = parser.parse_args()
  cases = [made_up_case(number, arguments.tensors) for number in range(arguments.cases)]
  start = time.perf_counter()
  text = page(cases)
  seconds = time.perf_counter() - start
  size = len(text.encode('utf-8'))
  print(f'{arguments.cases} cases x {arguments.tensors} tensors, as many variables')
  print(f'made in {seconds:.1f} s (target {_MOST_SECONDS:.0f})')
  print(f'size {size / 1e6:.1f} MB (target {_MOST_BYTES / 1e6:.0f})')
  good = seconds <= _MOST_SECONDS and size <= _MOST_BYTES
  if browser.executable() is None:
    print('no chromium here: the opening was not measured')
    return 0 if good else 1
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'page.html')
    pathlib.Path(path).write_text(text, encoding='utf-8')
    paint, load = _opening(path)
  print(f'first paint after {paint:.2f} s (target {_MOST_PAINT:.0f}), loaded after {load:.2f} s')
  return 0 if good and paint <= _MOST_PAINT else 1


if __name__ == '__main__':
  sys.exit(main())
