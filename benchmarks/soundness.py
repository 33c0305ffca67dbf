"""Whether what is proven is true: mutants of right ports, and whether any is proven wrongly.

    python -m benchmarks.soundness [FILE ...] [--most N] [--seed N]

takes the traced ports of the cases in files, by default of the examples and of
`benchmarks/without_effect/`, in inference and in training, with their losses, and a training step.
Of every operation in turn something is changed, several ways (`graph_mutants.py`): constants,
attributes, kind, order of operands, an operand for another tensor of its shape, an operation left
out. The prover relates each of these graphs to that of tf1. Where an output, a loss or an update
behind the change is proven all the same, the right port and the mutant are both computed, from
random inputs and variables of several scales, and compared: where they differ by more than a
thousandth, the proof is wrong.

Prints a row for each graph, and what is proven wrongly; exits 1 where anything is.
`--most` limits the mutants of a graph: of larger ones, a sample.
"""

import argparse
import dataclasses
import glob
import itertools
import os
import random
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from unittest import mock

import numpy as np

from benchmarks.graph_mutants import Mutant, mutants
from benchmarks.graph_runs import GraphRun, NotComputed, updated
from tf2verify.case import EquivalenceCase, new_ladder, verify
from tf2verify.discovery import FoundCase, find_cases
from tf2verify.errors import Tf2VerifyError, UsageError
from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph
from tf2verify.reference import nests
from tf2verify.relation.proof.numbering import Variables
from tf2verify.relation.proof.proving import NO_STATES, Proof, StepStates, prove
from tf2verify.stages.comparison.proof import proving
from tf2verify.stages.comparison.proof.proving import Related, compared
from tf2verify.stages.training.graphs import step_proof

_FILES = tuple(sorted(glob.glob('examples/*/*_test.py')))
_MODELS = tuple(sorted(glob.glob('benchmarks/without_effect/*.py')))
_TRIALS = (1.0, 0.1, 30.0, -1.0, 1e-4, 1000.0)  # scales; below 0: all values are positive
_DIFFERS = 1e-3  # of the greatest element; less may be rounding
Leaves = dict[tuple[str, str], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Subject:
  """A right port whose graph is changed.

  Attributes:
    name: of case and run.
    tf1: the reference's graph.
    tf2: the port's.
    variables: those that are pairs.
    inputs: of the case, by path.
    targets: names of those that are related; None for all.
    states: of a training step.
  """

  name: str
  tf1: OpGraph
  tf2: OpGraph
  variables: Variables
  inputs: Mapping[str, np.ndarray]
  targets: Collection[str] | None = None
  states: StepStates = NO_STATES

  def proof(self, tf2: OpGraph) -> Proof:
    """Relates a graph to the reference's, as the stage does."""
    return prove(self.tf1, tf2, self.variables, self.targets, states=self.states)


@dataclasses.dataclass
class Count:
  """How the mutants of one graph ended."""

  mutants: int = 0
  equal: int = 0
  wrong: int = 0
  not_computed: int = 0


def _subjects(case: type[EquivalenceCase], name: str) -> list[Subject]:
  """Returns what the stages relate of a case: its forward pass, losses and a training step."""
  asked: list[Subject] = []
  inputs: dict[str, np.ndarray] = {}

  def keep(path: str, leaf: np.ndarray) -> np.ndarray:
    inputs[path] = np.asarray(leaf)
    return leaf

  def capture(
    tf1: OpGraph,
    tf2: OpGraph,
    variables: Variables,
    run: str,
    start: float,
    targets: Collection[str] | None = None,
    states: StepStates = NO_STATES,
  ) -> Related:
    asked.append(Subject(f'{name}, {run}', tf1, tf2, variables, inputs, targets, states))
    return compared(tf1, tf2, variables, run, start, targets, states)

  with (
    mock.patch.object(proving, 'compared', capture),
    mock.patch.object(step_proof, 'compared', capture),
  ):
    verdict = verify(case, stages=['training_steps'])
  if not asked:
    print(f'{name}: nothing was related, {verdict.status.value}')
  ladder = new_ladder(case, lambda _: None)
  try:
    nests.map_leaves(keep, ladder.prepared().inputs)
  finally:
    ladder.close()
  return asked


def _leaves(subject: Subject, scale: float, seed: int) -> Leaves:
  """Returns values of all that a graph reads."""
  source = np.random.RandomState(seed)
  found: Leaves = {}
  for op in subject.tf2.ops:
    if op.op_type not in (INPUT, VARIABLE):
      continue
    name = op.name.partition(' after its update')[0]
    dtype, shape = op.outputs[0]
    if op.op_type == VARIABLE and name in subject.variables:
      own_dtype, own = subject.variables[name]
      dtype, shape = (own_dtype, own) if dtype == 'resource' else (dtype, shape)
    given = subject.inputs.get(name) if op.op_type == INPUT else None
    if dtype.startswith(('float', 'bfloat')):
      size = tuple(given.shape if given is not None else (shape or ()))
      value = source.normal(size=size) * abs(scale)
      if scale < 0 or 'variance' in name or 'rms' in name:
        value = np.abs(value) + 0.01
      found[op.op_type, name] = value.astype(dtype)
    elif given is not None and given.size and given.dtype.kind in 'iu':
      low, high = int(given.min()), int(given.max())
      found[op.op_type, name] = source.randint(low, high + 1, given.shape).astype(given.dtype)
    elif given is not None and given.dtype.kind == 'b':
      found[op.op_type, name] = source.randint(0, 2, given.shape).astype(bool)
    elif given is not None:
      found[op.op_type, name] = given
    else:
      found[op.op_type, name] = np.ones([size or 1 for size in shape or ()], dtype)
  return found


def _behind_change(graph: OpGraph, position: int) -> tuple[set[int], list[str]]:
  """Returns what is computed from an operation, itself included, and the targets among it."""
  changed, names = {position}, []
  for number, op in enumerate(graph.ops):
    if any(producer in changed for producer, _ in op.inputs):
      changed.add(number)
      if op.op_type == TARGET:
        names.append(op.name)
  return changed, names


def _values(run: GraphRun, leaves: Leaves, graph: OpGraph, name: str) -> list[np.ndarray]:
  op = graph.ops[graph.targets()[name]]
  is_update = str(op.attribute('op') or '').startswith('Assign') and (VARIABLE, name[10:]) in leaves
  return [updated(run, leaves, op)] if is_update else run.target(name)


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
  if one.shape != other.shape:
    return True
  if one.dtype.kind not in 'fc':
    return not np.array_equal(one, other)
  one, other = one.astype('float64'), other.astype('float64')
  seen = np.isfinite(one) & np.isfinite(other)
  if not seen.any():
    return False
  return bool(np.abs(one - other)[seen].max() > _DIFFERS * max(np.abs(one[seen]).max(), 1e-30))


def _told_apart(
  subject: Subject, mutant: Mutant, names: list[str], kept: dict[int, tuple[Leaves, GraphRun]]
) -> bool:
  """Returns whether any trial tells a port from a mutant that is proven.

  Raises:
    NotComputed: if no trial can be computed.
  """
  computed = 0
  changed, _ = _behind_change(mutant.graph, mutant.position)
  for number, scale in enumerate(_TRIALS):
    if number not in kept:
      leaves = _leaves(subject, scale, number)
      kept[number] = (leaves, GraphRun(subject.tf2, leaves))
    leaves, right = kept[number]
    wrong = GraphRun(mutant.graph, leaves)
    try:
      before = [v for name in names for v in _values(right, leaves, subject.tf2, name)]
      wrong.start_from(right, changed)
      after = [v for name in names for v in _values(wrong, leaves, mutant.graph, name)]
    except NotComputed as error:
      last = error
      continue
    computed += 1
    if any(_differ(one, other) for one, other in zip(before, after, strict=True)):
      return True
  if not computed:
    raise last
  return False


def _judged(subject: Subject, most: int, seed: int, verbose: bool) -> Count:
  count = Count()
  kept: dict[int, tuple[Leaves, GraphRun]] = {}
  right = subject.proof(subject.tf2)
  found = mutants(subject.tf2, seed)
  if len(subject.tf2.ops) * 8 > most:
    found = _sampled(subject.tf2, most, seed)
  for mutant in found:
    _, names = _behind_change(mutant.graph, mutant.position)
    names = [name for name in names if name in right.targets and name not in right.tested]
    if not names:
      continue
    count.mutants += 1
    try:
      proof = subject.proof(mutant.graph)
    except AssertionError:
      continue  # no trace is like this: a handle of another shape
    proven = [name for name in names if name not in proof.tested]
    if not proven:
      continue
    try:
      wrong = _told_apart(subject, mutant, proven, kept)
    except NotComputed as error:
      count.not_computed += 1
      if verbose:
        print(f'  not computed: {mutant.what}: {str(error)[:160]}')
      continue
    count.wrong += wrong
    count.equal += not wrong
    if wrong or verbose:
      print(f'  {"WRONG" if wrong else "the same"}: {mutant.what}, at {proven[0]}', flush=True)
  return count


def _sampled(graph: OpGraph, most: int, seed: int) -> Iterator[Mutant]:
  """Yields mutants of some operations: of so many that there are about as many as wanted."""
  chance = random.Random(seed)
  positions = chance.sample(range(len(graph.ops)), min(len(graph.ops), most))
  found = mutants(graph, seed, frozenset(positions[: most // 4]))
  return itertools.islice(found, most)


def _cases(path: str) -> Sequence[FoundCase]:
  try:
    return find_cases(path)
  except UsageError:  # tests without a case
    return ()


def main() -> int:
  """Prints what was found; returns the exit status."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('files', nargs='*', default=[*_MODELS, *_FILES])
  parser.add_argument('--most', type=int, default=400)
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument('--verbose', action='store_true', help='print what is proven rightly, too')
  arguments = parser.parse_args()
  warnings.simplefilter('ignore')
  rows, whole = [], Count()
  for path in arguments.files:
    if os.path.basename(path) == '__init__.py':
      continue
    for found in _cases(path):
      with found.importable():
        found.case.relate_graphs = True
        place = os.path.splitext(path)[0].removesuffix('equivalence_test').strip('/')
        name = f'{place.removeprefix("benchmarks/")}, {found.case.__name__}'
        try:
          for subject in _subjects(found.case, name):
            print(subject.name, f'{len(subject.tf2.ops)} operations', flush=True)
            start = time.perf_counter()
            count = _judged(subject, arguments.most, arguments.seed, arguments.verbose)
            took = time.perf_counter() - start
            counted = ' | '.join(f'{n:,}' for n in dataclasses.astuple(count))
            rows.append(f'| {subject.name} | {counted} | {took:.0f} |')
            print(rows[-1], flush=True)
            for field in dataclasses.fields(Count):
              more = getattr(count, field.name)
              setattr(whole, field.name, getattr(whole, field.name) + more)
        except Tf2VerifyError as error:
          rows.append(f'| {name} | {error!r:.80} | | | | |')
  print('\n| port | mutants | proven, the same | proven wrongly | not computed | seconds |')
  print('| --- | --- | --- | --- | --- | --- |\n' + '\n'.join(rows))
  counted = ' | '.join(f'{n:,}' for n in dataclasses.astuple(whole))
  print(f'| all | {counted} | |')
  return int(bool(whole.wrong))


if __name__ == '__main__':
  sys.exit(main())
