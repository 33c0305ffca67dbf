"""How much of the examples is proven for all inputs.

    python -m benchmarks.proven [FILE ...]

relates the graphs of the cases in files, by default of the examples, in inference and in training,
as the stages do, and prints a row of a table for each: operations of the port that are proven, of
all behind what is compared; the same of outputs, losses and updates; the time of reading the
reference's graph and tracing the port, and that of the proof.
"""

import argparse
import glob
import time

from tf2verify.case import new_ladder
from tf2verify.discovery import find_cases
from tf2verify.errors import Tf2VerifyError
from tf2verify.records.proven import Proven
from tf2verify.sides.fill import ConstantFill
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.proving import related
from tf2verify.stages.stage import CaseUnderTest


def _row(name: str, proven: Proven) -> str:
  if proven.reason:
    return f'| {name} | {proven.run} | not related: {proven.reason:.80} | | |'
  operations = f'{proven.tf2_proven:,} of {proven.tf2_operations:,}'
  targets = f'{proven.targets_proven} of {proven.targets}'
  return f'| {name} | {proven.run} | {operations} | {targets} | {proven.seconds:.2f} |'


def _related(case: CaseUnderTest) -> list[Proven]:
  names = {two: one for one, two in case.alignment().pairs}
  found = []
  for training in case.declaration.training_modes:
    found.append(related(case, RunSpec(case.inputs, training, ConstantFill(), names)).proven)
  return found


def main() -> None:
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('files', nargs='*', default=sorted(glob.glob('examples/*/*_test.py')))
  print('| case | run | operations proven | results proven | seconds |')
  print('| --- | --- | --- | --- | --- |')
  proven, operations, start = 0, 0, time.perf_counter()
  for path in parser.parse_args().files:
    for found in find_cases(path):
      with found.importable():
        found.case.relate_graphs = True
        ladder = new_ladder(found.case, lambda _: None)
        try:
          rows = _related(ladder.prepared())
        except Tf2VerifyError as error:
          print(f'| {found.case.__name__} | | {error!r:.80} | | |')
          continue
        finally:
          ladder.close()
      for row in rows:
        proven += row.tf2_proven
        operations += row.tf2_operations
        print(_row(found.case.__name__, row), flush=True)
  share = 100 * proven / max(operations, 1)
  print(f'\n{proven:,} of {operations:,} operations ({share:.1f} %)')
  print(f'{time.perf_counter() - start:.0f} s in all')


if __name__ == '__main__':
  main()
