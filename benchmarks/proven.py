"""How much of the examples is proven for all inputs.

    python -m benchmarks.proven [FILE ...]

climbs the ladder of the cases in files, by default of the examples, to the training steps. Prints a
row of a table for each run whose graphs were related: operations of the port that are proven, of
all behind what is compared; the same of outputs, losses and updates; the time of making the graphs
and of the proof. Then the totals by the kind of port; exits with 1 if one is below its target.
"""

import argparse
import collections
import glob
import sys
import time
from collections.abc import Iterator

import tf2verify
from tf2verify.discovery import find_cases
from tf2verify.records.proven import Proven

# Ports in Keras layers; all others run TF1's function under the shim.
_NATIVE = ('keras3_', 'checkpoint_conversion', 'broken')
_FORWARD = ('inference', 'training')
_TARGETS = {
  'forward pass, under the shim': 0.995,
  'forward pass, Keras layers': 0.95,
  'losses and training steps': 0.9,
}


def _row(name: str, proven: Proven) -> str:
  if proven.reason:
    return f'| {name} | {proven.run} | not related: {proven.reason:.80} | | |'
  operations = f'{proven.tf2_proven:,} of {proven.tf2_operations:,}'
  targets = f'{proven.targets_proven} of {proven.targets}'
  return f'| {name} | {proven.run} | {operations} | {targets} | {proven.seconds:.2f} |'


def _related(case: type[tf2verify.EquivalenceCase]) -> Iterator[Proven]:
  case.relate_graphs = True
  verdict = tf2verify.verify(case, stages=['training_steps'])
  return (stage.proven for stage in verdict.stages if stage.proven is not None)


def _kind(path: str, proven: Proven) -> str:
  if proven.run not in _FORWARD:
    return 'losses and training steps'
  is_native = any(name in path for name in _NATIVE)
  return 'forward pass, Keras layers' if is_native else 'forward pass, under the shim'


def main() -> int:
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument(
    'files', nargs='*', default=sorted(glob.glob('examples/*/equivalence_test.py'))
  )
  print('| case | run | operations proven | results proven | seconds |')
  print('| --- | --- | --- | --- | --- |')
  counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
  start = time.perf_counter()
  for path in parser.parse_args().files:
    for found in find_cases(path):
      with found.importable():
        for proven in _related(found.case):
          if not proven.reason:
            counts[_kind(path, proven)][0] += proven.tf2_proven
            counts[_kind(path, proven)][1] += proven.tf2_operations
          print(_row(found.case.__name__, proven), flush=True)
  print('\n| ports of these files | operations proven | | target |\n| --- | --- | --- | --- |')
  missed = False
  for kind, target in _TARGETS.items():
    proven_count, count = counts[kind]
    share = proven_count / max(count, 1)
    missed = missed or (bool(count) and share < target)
    print(f'| {kind} | {proven_count:,} of {count:,} | {share:.1%} | {target:.1%} |')
  print(f'{time.perf_counter() - start:.0f} s in all')
  return int(missed)


if __name__ == '__main__':
  sys.exit(main())
