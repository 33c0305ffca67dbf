"""Faults planted into real models, and whether the first divergence names them.

    python -m benchmarks.first_divergence --faults 200

Each fault changes one operation of the traced port (two, where variables are swapped),
in inference with distinct variable values or in training with seeded ones. It counts
when it changes a number that the ladder compares by more than rounding does: than four
times what that number moves by when every variable is moved by a unit in the last
place, the greatest of four runs. It is named when the first source's region holds the
faulty operation, on either side.
"""

import argparse
import dataclasses
import functools
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from examples.inception_v3.equivalence_test import InceptionV3Case
from examples.resnet_v2.equivalence_test import ResnetV2Case
from tf2verify.case import EquivalenceCase, new_ladder
from tf2verify.diagnosis.divergence.effects.narrowing import Narrowing
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.numerics.agreement import Agreement, agreement
from tf2verify.numerics.noise import FACTOR
from tf2verify.records.op_graph import TARGET
from tf2verify.records.planted_fault import FaultKind, PlantedFault
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.fill import RecordedFill
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.process import randomness
from tf2verify.sides.process import state as process_state
from tf2verify.sides.side import RunSpec, training_name
from tf2verify.sides.tf2.traces import planting
from tf2verify.sides.tf2.traces.possible_faults import PossibleFault, possible_faults
from tf2verify.sides.tf2.traces.tracing import TracedPort
from tf2verify.stages.passes.zero_randomness import CaseFill, ZeroRandomness
from tf2verify.stages.stage import CaseUnderTest

_CASES = (ResnetV2Case, InceptionV3Case)
_MOVED_RUNS = 4
_TARGET = 0.95


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What became of a planted fault.

  Attributes:
    where: model and training mode.
    planted: the fault.
    changes: whether it changes a compared number beyond noise.
    named: whether the first source's region holds it.
    first: the first source, as text.
    size: operations in the first source's larger region.
    others: how many further sources there are.
    seconds: of the comparison, planting aside.
  """

  where: str
  planted: PlantedFault
  changes: bool
  named: bool = False
  first: str = ''
  size: int = 0
  others: int = 0
  seconds: float = 0.0


class Subject:
  """A model in one training mode: its reference, its traced port, and the port's noise."""

  def __init__(self, case: CaseUnderTest, name: str, training: bool) -> None:
    self.where = f'{name}, {training_name(training)}'
    names = {tf1: tf1 for tf1, _ in case.alignment().pairs}
    tf2_names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
    fill = CaseFill(case.declaration)
    if training:
      initial = case.tf1.prepare_seeded(randomness.CONSTANT, True)().initial_values
      fill = RecordedFill(randomness.CONSTANT, {r.name: r.value for r in initial})
    run = RunSpec(case.inputs, training, fill, names)
    self.tf1 = case.tf1.inspectable(run)
    port = case.tf2.traced(dataclasses.replace(run, tf1_names=tf2_names))
    self.port = dataclasses.replace(port, values=functools.cache(port.values))
    self.base = self.port.run()
    self.values = target_values(self.base)
    self.noise = self._noise()
    self.pairing = Divergence(self.tf1, self.base, []).pairing
    self.possible = possible_faults(self.base.op_graph, self.port.prefix)

  def _noise(self) -> dict[str, float]:
    noise = dict.fromkeys(self.values, 0.0)
    for number in range(_MOVED_RUNS):
      moved = moved_port(self.port, Perturber(number)).run()
      for name, value in target_values(moved).items():
        noise[name] = max(noise[name], agreement(self.values[name], value).absolute)
      moved.close()
    return noise

  def changed(self, values: Mapping[str, np.ndarray]) -> list[str]:
    """Returns the targets that differ from the port's own by more than noise."""
    return [
      name
      for name, value in values.items()
      if _beyond(agreement(self.values[name], value), self.noise[name])
    ]

  def outcome(self, possible: PossibleFault) -> Outcome:
    """Plants a fault and looks for it.

    Raises:
      CannotPlant: the graph does not run with it.
    """
    faulty = planting.plant(self.port, possible)
    try:
      changed = self.changed(target_values(faulty))
      if not changed:
        return Outcome(self.where, possible.fault, False)
      return self._named(possible, faulty, changed)
    finally:
      faulty.close()

  def _named(self, possible: PossibleFault, faulty: GraphRun, changed: list[str]) -> Outcome:
    start = time.perf_counter()
    divergence = Divergence(self.tf1, faulty, changed)
    sources = divergence.sources()
    outcome = Outcome(self.where, possible.fault, True, first='no source')
    if sources:
      first = Narrowing(self.tf1, faulty, divergence).narrowed(sources[0]).regions
      tf1 = {first.tf1.end, *first.tf1.inner}
      tf2 = {faulty.op_graph.ops[n].name for n in (first.tf2.end, *first.tf2.inner)}
      base = {op.name: n for n, op in enumerate(self.base.op_graph.ops)}
      partners = {self.pairing.tf1_of[base[name]] for name in possible.operations}
      end = self.tf1.op_graph.ops[first.tf1.end]
      outcome = dataclasses.replace(
        outcome,
        named=bool(tf2 & set(possible.operations) or tf1 & partners),
        first=f'{end.name} ({end.op_type})',
        size=max(len(tf1), len(tf2)),
        others=len(sources) - 1,
      )
    return dataclasses.replace(outcome, seconds=time.perf_counter() - start)


def _beyond(found: Agreement, noise: float) -> bool:
  return not found.is_rounding and found.absolute > FACTOR * noise


def target_values(run: GraphRun) -> dict[str, np.ndarray]:
  """Returns what a run yields, by target."""
  ops = [op for op in run.op_graph.ops if op.op_type == TARGET]
  values = planting.fetched(run, [op.tensors[0] for op in ops])
  return dict(zip([op.name for op in ops], values, strict=True))


def moved_port(port: TracedPort, perturber: Perturber) -> TracedPort:
  """Returns the port with every variable moved by a unit in the last place."""
  return dataclasses.replace(port, values=lambda name: perturber.variable(name, port.values(name)))


def outcomes_of(
  case: type[EquivalenceCase], share: int, seed: int
) -> Iterator[Outcome | planting.CannotPlant]:
  """Plants so many faults in either training mode; faults that cannot run come on top."""
  ladder = new_ladder(case, lambda step: None)
  verdict = ladder.stage(ZeroRandomness)
  print(f'{case.__name__}: {verdict.to_text()}', file=sys.stderr)
  with process_state.preserved():
    for training in (False, True):
      subject = Subject(ladder.prepared(), case.__name__, training)
      left = share
      for possible in planting.drawn(subject.possible, seed):
        if not left:
          break
        try:
          yield subject.outcome(possible)
          left -= 1
        except planting.CannotPlant as error:
          yield error
      print(f'{subject.where}: {len(subject.possible)} possible faults', file=sys.stderr)
  ladder.close()


def report(outcomes: Sequence[Outcome]) -> bool:
  """Prints tables by model and by kind and the faults that are not named; tells success."""
  groups = {
    **{where: [o for o in outcomes if o.where == where] for where in _ordered(outcomes)},
    **{kind.value: [o for o in outcomes if o.planted.kind is kind] for kind in FaultKind},
    'all': list(outcomes),
  }
  print('| faults | planted | change a number beyond noise | named first | share |')
  print('| --- | --- | --- | --- | --- |')
  for title, group in groups.items():
    if group:
      changing = [outcome for outcome in group if outcome.changes]
      named = sum(outcome.named for outcome in changing)
      share = f'{100 * named / len(changing):.1f} %' if changing else ''
      print(f'| {title} | {len(group)} | {len(changing)} | {named} | {share} |')
  changing = [outcome for outcome in outcomes if outcome.changes]
  if not changing:
    return False
  sizes = [outcome.size for outcome in changing if outcome.named]
  alone = sum(not outcome.others for outcome in changing if outcome.named)
  print(
    f'\nA named region holds {statistics.median(sizes):.0f} operations (median), '
    f'{max(sizes)} at most; {alone} of {len(sizes)} have no further source. '
    f'{statistics.median(outcome.seconds for outcome in changing):.1f} s a fault (median).'
  )
  for outcome in outcomes:
    if not outcome.changes:
      print(f'changes nothing beyond noise: {outcome.where}: {outcome.planted}')
    elif not outcome.named:
      print(f'not named: {outcome.where}: {outcome.planted}; first: {outcome.first}')
  return sum(outcome.named for outcome in changing) >= _TARGET * len(changing)


def _ordered(outcomes: Sequence[Outcome]) -> list[str]:
  return list(dict.fromkeys(outcome.where for outcome in outcomes))


def main() -> int:
  """Prints the tables; returns 1 when the target is missed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--faults', type=int, default=200, help='over both models and modes')
  parser.add_argument('--seed', type=int, default=0)
  arguments = parser.parse_args()
  share = arguments.faults // (2 * len(_CASES))
  found = [one for case in _CASES for one in outcomes_of(case, share, arguments.seed)]
  outcomes = [one for one in found if isinstance(one, Outcome)]
  print(f'{len(outcomes)} faults planted; {len(found) - len(outcomes)} more could not run\n')
  return int(not report(outcomes))


if __name__ == '__main__':
  sys.exit(main())
