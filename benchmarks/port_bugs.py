"""The port-bug suite, and right ports under other seeds.

    python -m benchmarks.port_bugs [--seeds 5] [--processes 2] [--right NAME ...]

prints how many of the wrong ports are detected, at which stage, and whether the
cause is named; then how many right ports (of the pairs, the controls and the
examples) are blamed when inputs, variable values and random seeds are others. A ladder that
ends INCONCLUSIVE (values that leave every ReLU of a small model at zero) blames nobody; it is
counted by itself, with what it says. Targets: 100 %, 95 %, 90 %, and no false alarm. Exits
with 1 when one is missed. `--right` climbs only with right ports whose names contain one of these.
"""

import argparse
import contextlib
import functools
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager
from unittest import mock

import tf2verify
from tests.port_bugs import suite
from tests.port_bugs.classes import CLASSES
from tf2verify.discovery import find_cases
from tf2verify.reference import inputs
from tf2verify.reference.versions import VERSIONS
from tf2verify.sides.process import logical_devices, randomness

_LEFT_OUT = ('broken', 'full_size', 'demo')


_MARKS = (('detected', 1.0), ('stage', 0.95), ('cause', 0.9))


def _marks(number: int) -> dict[str, bool]:
  """Returns what a wrong port, by its place in the suite, was found to be."""
  bug = suite.PORT_BUGS[number]
  found = suite.found(bug, 'determinism')
  text = found.to_text()
  return {
    'detected': found.status is bug.status,
    'stage': (found.stage, found.status) == (bug.stage, bug.status),
    'cause': all(word in text for word in bug.words),
  }


def _wrong_ports(processes: ProcessPoolExecutor) -> bool:
  """Measures detection; returns whether the targets are met."""
  classes = [identifier for identifier, _ in CLASSES]
  good: dict[str, dict[str, bool]] = {name: {} for name, _ in _MARKS}
  every = processes.map(_marks, range(len(suite.PORT_BUGS)))
  for bug, marks in zip(suite.PORT_BUGS, every, strict=True):
    for name, mark in marks.items():
      good[name][bug.identifier] = good[name].get(bug.identifier, True) and mark
    if not all(marks.values()):
      print(f'  {bug.identifier} {bug.title}: {marks}', flush=True)
  met = True
  for name, target in _MARKS:
    share = sum(good[name].get(one, False) for one in classes) / len(classes)
    met &= share >= target
    print(
      f'{name:<10} {100 * share:5.1f} % of {len(classes)} classes (target {100 * target:.0f} %)'
    )
  return met


# A name, the case, and what makes its module and recording be found.
_RightPort = tuple[
  str, type[tf2verify.EquivalenceCase], Callable[[], AbstractContextManager[object]]
]


@functools.cache
def _right_ports() -> tuple[_RightPort, ...]:
  return tuple(_found_right_ports())


def _found_right_ports() -> Iterator[_RightPort]:
  for bug in suite.PORT_BUGS:
    yield f'{bug.identifier} {bug.title}', bug.right, contextlib.nullcontext
  for control in suite.CONTROLS:
    yield f'control: {control.title}', control.right, contextlib.nullcontext
  for found in find_cases('examples'):
    if not any(word in found.case.__module__ for word in _LEFT_OUT):
      # A recording is looked for beside the case's file.
      yield f'example: {found.case.__name__}', found.case, found.importable


def _under_seed(case: type[tf2verify.EquivalenceCase], number: int) -> tf2verify.CaseVerdict:
  normal_inputs = inputs.normal_inputs

  def other_inputs(shape: tuple[int, ...], seed: int = 0) -> object:
    return normal_inputs(shape, 1000 * number + seed)

  with (
    mock.patch.object(inputs, 'normal_inputs', other_inputs),
    mock.patch.dict(VERSIONS, fill=number),
    mock.patch.object(randomness, 'SEED', 42 + number),
  ):
    return tf2verify.verify(case)


def _climbed(number: int, seed: int | None) -> tuple[int, tf2verify.Status, str]:
  """Climbs with a right port; returns tensors excused by rounding, the status and its text."""
  _, case, importable = _right_ports()[number]
  with importable():
    verdict = tf2verify.verify(case) if seed is None else _under_seed(case, seed)
  return sum(stage.compared.rounding for stage in verdict.stages), verdict.status, verdict.to_text()


def main() -> int:
  """Measures and prints."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--seeds', type=int, default=5)
  parser.add_argument('--processes', type=int, default=2)
  parser.add_argument('--right', nargs='+', metavar='NAME')
  arguments = parser.parse_args()
  start = time.perf_counter()
  with ProcessPoolExecutor(
    arguments.processes, multiprocessing.get_context('spawn'), logical_devices.ask_for_two_cpus
  ) as processes:
    met = bool(arguments.right) or _wrong_ports(processes)
    print(f'wrong ports: {time.perf_counter() - start:.0f} s', flush=True)
    start, alarms, undecided, excused = time.perf_counter(), 0, 0, 0
    # What TensorFlow 1.15.5 has recorded, it has recorded with one seed.
    ladders = [
      (number, seed)
      for number, (name, case, _) in enumerate(_right_ports())
      if not arguments.right or any(part in name for part in arguments.right)
      for seed in ((None,) if case.tf1_recording else range(1, arguments.seeds + 1))
    ]
    every = processes.map(_climbed, *zip(*ladders, strict=True))
    for (number, seed), (rounding, status, text) in zip(ladders, every, strict=True):
      excused += rounding
      if status is tf2verify.Status.PASSED:
        continue
      known = status is tf2verify.Status.INCONCLUSIVE
      undecided += known
      alarms += not known
      summary = text.rpartition('\n\n')[2] if known else text
      print(f'  {_right_ports()[number][0]}, seed {seed}: {summary}', flush=True)
  print(
    f'{alarms} false alarms and {undecided} inconclusive in {len(ladders)} ladders of right ports '
    f'({excused} tensors excused by rounding), {time.perf_counter() - start:.0f} s with '
    f'{arguments.processes} processes'
  )
  return 0 if met and not alarms else 1


if __name__ == '__main__':
  sys.exit(main())
