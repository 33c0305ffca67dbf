"""How much the metrics of one training vary over runs, by what is set, and at what price.

    python -m benchmarks.determinism [--runs 10] [--epochs 3]

repeats `determinism_training.py` (10-fold cross-validation of a small convolutional net
on scikit-learn's digits) in fresh processes under four settings that take turns: nothing
set, seeds, seeds and op determinism, and these with one thread. Prints the variance over
the runs of the means over the folds, and the time beside that of a run with nothing set.
Exits with 1 if the last setting does not repeat itself bit by bit. It needs scikit-learn.
"""

import argparse
import pathlib
import statistics
import sys
from collections.abc import Sequence

from tf2verify.commands import repeating_scripts

_SCRIPT = pathlib.Path(__file__).with_name('determinism_training.py')
_TIME = 'training_seconds'
_METRICS = ('loss', 'accuracy', 'weights')


def _training_time(measured: Sequence[repeating_scripts.ScriptRuns]) -> list[str]:
  """Returns the time that training alone takes, without the start of the process."""
  seconds = [statistics.median(dict(runs.metrics)[_TIME]) for runs in measured]
  return [
    f'  {runs.setting.name}: {taken:.2f} s, {taken / seconds[0]:.2f} times'
    for runs, taken in zip(measured, seconds, strict=True)
  ]


def main() -> int:
  """Runs the protocol and prints its tables."""
  parser = argparse.ArgumentParser()
  parser.add_argument('--runs', type=int, default=10)
  parser.add_argument('--epochs', type=int, default=3)
  options = parser.parse_args()
  measured = repeating_scripts.repeat(
    str(_SCRIPT),
    ['--epochs', str(options.epochs)],
    repeating_scripts.SETTINGS,
    options.runs,
    wanted=(*_METRICS, _TIME),
    progress=lambda line: print(line, file=sys.stderr, flush=True),
  )
  print('\n'.join(repeating_scripts.report_lines(measured)))
  print('median time of training alone:', *_training_time(measured), sep='\n')
  last = dict(measured[-1].metrics)
  return int(any(repeating_scripts.distinct(last[name]) > 1 for name in _METRICS))


if __name__ == '__main__':
  sys.exit(main())
