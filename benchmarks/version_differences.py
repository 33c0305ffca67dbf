"""How far kernels of TensorFlow 2 round differently from those of 1.15.5.

    python -m benchmarks.version_differences [--python PYTHON ...] [--recordings DIR]

climbs the ladder to the gradients with every recorded example (`examples/recorded_models`)
and prints, per model, the greatest difference from the numbers of TensorFlow 1.15.5,
relative to the greatest element of the tensor: in outputs, losses and states after a call,
and in gradients. Each PYTHON (that which runs this, by default) runs twice: with oneDNN and
without. Exits with 1 when a ladder does not pass.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Iterator

import tf2verify
from examples.recorded_models import verify
from tf2verify.records.difference import Deviation, Judgement
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict

_STAGES = {
  'forward': ('zero_randomness', 'seeded_constant', 'seeded_num_random_ops'),
  'gradient': ('gradients',),
}
# A tensor that is as small as its noise, or that the tolerance cannot tell from zeros, has no
# relative difference that means anything.
_TOLD_FROM_NOISE = (Judgement.PASSED, Judgement.ROUNDING)
# Beyond it, the table says which tensor it is.
_REMARKABLE = 2e-6


@dataclasses.dataclass(frozen=True)
class Row:
  """What one model gave.

  Attributes:
    model: its name.
    status: of the ladder.
    rounding: tensors beyond the tolerance that rounding noise excuses.
    inconclusive: tensors that are as small as their noise or the tolerance.
    greatest: per kind, the greatest relative difference, and of which tensor.
  """

  model: str
  status: str
  rounding: int
  inconclusive: int
  greatest: dict[str, tuple[float, str]]


def _relative(deviation: Deviation) -> float:
  if not deviation.frontier or not deviation.magnitude:
    return 0.0
  return max(difference for _, difference in deviation.frontier) / deviation.magnitude


def _greatest(verdict: CaseVerdict, stages: Iterable[str]) -> tuple[float, str]:
  found = [
    (_relative(one), f'{one.quantity} {one.subject} [{one.run}]')
    for stage in verdict.stages
    if stage.stage in stages
    for one in stage.deviations
    if one.judgement in _TOLD_FROM_NOISE
  ]
  return max(found, default=(0.0, ''))


def _row(model: str, verdict: CaseVerdict) -> Row:
  return Row(
    model,
    verdict.status.value,
    sum(stage.compared.rounding for stage in verdict.stages),
    sum(stage.compared.inconclusive for stage in verdict.stages),
    {kind: _greatest(verdict, stages) for kind, stages in _STAGES.items()},
  )


def _rows(recordings: pathlib.Path) -> Iterator[Row]:
  for name, case in verify.cases(recordings).items():
    print(f'{name} …', file=sys.stderr, flush=True)
    yield _row(name, tf2verify.verify(case, [stage for some in _STAGES.values() for stage in some]))


def _print_table(title: str, rows: list[Row]) -> None:
  print(f'\n{title}\n')
  print('| model | ladder | excused by noise | inconclusive | forward | gradient |')
  print('| --- | --- | --- | --- | --- | --- |')
  for row in rows:
    figures = ' | '.join(f'{row.greatest[kind][0]:.1e}' for kind in _STAGES)
    print(f'| {row.model} | {row.status} | {row.rounding} | {row.inconclusive} | {figures} |')
  for row in rows:
    for kind, (figure, tensor) in row.greatest.items():
      if figure > _REMARKABLE:
        print(f'  {row.model}, {kind}: {figure:.1e} in {tensor}')


def _in_process(python: str, onednn: str, recordings: pathlib.Path) -> tuple[str, list[Row]]:
  words = [python, '-m', 'benchmarks.version_differences', '--one', str(recordings)]
  environment = {**os.environ, 'TF_ENABLE_ONEDNN_OPTS': onednn, 'TF_CPP_MIN_LOG_LEVEL': '3'}
  done = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
  title, *lines = done.stdout.splitlines()[-1:][0].split('\x1f')
  return title, [Row(**json.loads(line)) for line in lines]


def main() -> int:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--python', nargs='+', default=[sys.executable])
  parser.add_argument('--recordings', type=pathlib.Path, default=verify.COMMITTED, metavar='DIR')
  parser.add_argument('--one', type=pathlib.Path, help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.one:
    import tensorflow as tf

    lines = [json.dumps(dataclasses.asdict(row)) for row in _rows(arguments.one)]
    print('\x1f'.join([f'TensorFlow {tf.__version__}', *lines]))
    return 0
  passed = True
  for python in arguments.python:
    for onednn in ('1', '0'):
      title, rows = _in_process(python, onednn, arguments.recordings)
      _print_table(f'{title}, oneDNN {"on" if onednn == "1" else "off"}', rows)
      passed &= all(row.status == Status.PASSED.value for row in rows)
  return 0 if passed else 1


if __name__ == '__main__':
  sys.exit(main())
