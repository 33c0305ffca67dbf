"""A training step of both sides related: what of it is proven for all values."""

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.records.proven import Proven
from tf2verify.records.training import Slot
from tf2verify.relation.proof.held_variables import Held, PairedVariables
from tf2verify.relation.proof.inductive import states_of
from tf2verify.relation.proof.normal_forms.states import Multiple
from tf2verify.relation.proof.proving import StepStates
from tf2verify.sides.graphs.numbers_read import ReadNumber
from tf2verify.sides.graphs.rewriting.taken_branches import CONDITIONS
from tf2verify.sides.graphs.step_run import (
  StepGraph,
  is_decision_target,
  with_choices,
  writing_branches,
)
from tf2verify.sides.tf2.traces.tracing import NotTraceable
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.proof.proving import (
  Related,
  Runs,
  add_blind_spots,
  attempted,
  compared,
  not_related,
  paired_variables,
  why_not_related,
)
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.training.graphs.step_graphs import StepGraphs
from tf2verify.stages.training.steps.quantities import Steps, step_name

# Conditions that are not taken apart.
_CONDITIONS = frozenset(('Case', 'StatelessCase', 'Switch'))
# Each is traced and related by itself.
_MOST_STEPS = 3
# Of the greatest element: a slot and a multiple of another one that are closer are the same.
_SAME = 1e-4
_ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class RelatedStep:
  """A step of both sides, which can be made again as graphs."""

  graphs: StepGraphs
  number: int  # of the step, from 1
  # Slots of the port that hold a multiple of one of the reference, by their names in the graphs.
  multiples: Mapping[str, Multiple]

  @functools.cached_property
  def tf1(self) -> StepGraph:
    """The reference's, as it is built."""
    return self.graphs.step_of_tf1(self.number)

  @property
  def tf2(self) -> StepGraph:
    """The port's, as it is traced, which holds for other values, gradients and counts as well.

    Raises:
      NotTraceable: it cannot be traced, or Python reads numbers of it: with others, the step may
        be another one.
    """
    if self.port.numbers_read:
      raise NotTraceable(_numbers_read(self.port.numbers_read))
    return self.port

  @functools.cached_property
  def port(self) -> StepGraph:
    """The port's as it is traced, which may be that of these values alone."""
    return self.graphs.of_tf2(self.tf1, self.number)


def to_relate(graphs: StepGraphs, steps: Steps) -> RelatedStep:
  """Returns a step.

  Args:
    graphs: makes its graphs.
    steps: taken so far, with the arrays of both sides after this one.
  """
  return RelatedStep(graphs, graphs.number, _multiples(steps, graphs.number))


def representative(count: int) -> int:
  """Returns which of some steps to relate: in the first one, ports set up what they keep."""
  return min(count, 2)


def _multiples(steps: Steps, number: int) -> dict[str, Multiple]:
  """Returns the port's slots that hold a multiple of a slot of the reference after a step."""
  one, other = steps.tf1.steps[number - 1], steps.tf2.steps[number - 1]
  by_value = {id(slot.value): slot.name for slot in one.slots}
  found: dict[str, Multiple] = {}
  for pair in steps.slots(number).pairs:
    name = by_value.get(id(pair.tf1))
    held = [s for s in other.slots if s.name == pair.name and s.value is not pair.tf2]
    factor = _factor(held[0], pair.tf2) if len(held) == 1 else None
    if name is not None and factor is not None and f'{pair.name} of tf2' not in found:
      found[f'{pair.name} of tf2'] = Multiple(name, factor)
  return found


def _factor(slot: Slot, as_tf1: np.ndarray) -> float | None:
  """Returns the number that a slot is times what it is in the unit of tf1; None for none."""
  value = np.asarray(slot.value)
  if value.shape != as_tf1.shape or not value.size:
    return None
  place = np.unravel_index(int(np.argmax(np.abs(as_tf1))), as_tf1.shape)
  if not as_tf1[place]:
    return None
  factor = _decimal(float(value[place]) / float(as_tf1[place]))
  allowed = _SAME * float(np.max(np.abs(value)))
  return factor if np.allclose(as_tf1 * factor, value, 0.0, allowed) and factor != 1 else None


def _decimal(factor: float) -> float:
  """Returns the shortest decimal that a factor is but for rounding: a learning rate is written."""
  for digits in range(1, 8):
    written = float(f'{factor:.{digits}g}')
    if math.isclose(written, factor, rel_tol=_ROUNDING):
      return written
  return factor


def relate(step: RelatedStep, comparison: Comparison, count: int) -> Proven:
  """Relates a step that agrees: losses, gradients, updates and what optimizers keep.

  Args:
    step: the step.
    comparison: of the stage; differences without effect become blind spots of it.
    count: how many steps were taken.
  """
  start, name = time.perf_counter(), f'a training step ({step_name(step.number)})'
  reason = why_not_related(step.graphs.case)
  found = (
    not_related(name, reason, start)
    if reason
    else attempted(name, start, lambda: _related(step, name, start, count))
  )
  add_blind_spots(comparison, found)
  return found.record()


def _related(step: RelatedStep, name: str, start: float, count: int) -> Related:
  reason = _why_of_these_values(step)
  if not reason:
    both = attempted(name, start, lambda: _of_graphs(step, name, start))
    if not _chooses(step) or both.proven.is_whole or both.differences:
      return both
    if not both.proven.reason:
      # What is in a branch has values where it is taken.
      taken = _as_taken(step, name, start)
      return dataclasses.replace(both, idle=(*both.idle, *taken.idle))
    reason = both.proven.reason
  # Of what runs for these values alone, nothing is proven. But what one side alone has can be seen.
  found = [_as_taken(one, name, start) for one in _with_other_branches(step, count)]
  reasons = dict.fromkeys([reason, *(one.proven.reason for one in found if one.proven.reason)])
  return Related(
    not_related(name, '; '.join(reasons), start).proven,
    tuple(difference for one in found for difference in one.differences),
    idle=tuple(text for one in found for text in one.idle),
  )


def _as_taken(step: RelatedStep, name: str, start: float) -> Related:
  """Relates what runs for the values of a step, and what decides that; of choices, both ways."""

  def found() -> Related:
    if _chooses(step):
      both = attempted(name, start, lambda: _of_graphs(step, name, start, shows_decisions=True))
      if both.differences:
        return both
    return _of_graphs(step, name, start, shows_decisions=True, is_taken=True)

  return attempted(name, start, found)


def _chooses(step: RelatedStep) -> bool:
  return any(node.op in CONDITIONS for node in _nodes(step))


def _nodes(step: RelatedStep) -> Iterator[Any]:
  """Yields the operations of both graphs, with those of their functions."""
  for graph in (step.tf1, step.port):
    yield from graph.graph_def.node
    for function in graph.graph_def.library.function:
      yield from function.node_def


def _with_other_branches(step: RelatedStep, count: int) -> Iterator[RelatedStep]:
  """Yields a step, and others in which TF1 takes other branches, of those that write variables."""
  known = [writing_branches(step.tf1)]
  yield step
  for number in (*range(2, count + 1), 1) if known[0] else ():
    if number != step.number and len(known) < _MOST_STEPS:
      branches = writing_branches(step.graphs.step_of_tf1(number))
      if branches not in known:
        known.append(branches)
        yield dataclasses.replace(step, number=number)


def _why_of_these_values(step: RelatedStep) -> str:
  """Returns why a step from other values may run other operations; '' where it does not."""
  if step.port.numbers_read:
    return _numbers_read(step.port.numbers_read)
  writes = any(map(writing_branches, (step.tf1, step.port)))
  if writes or any(node.op in _CONDITIONS for node in _nodes(step)):
    return 'values decide which operations of the step run, so that other steps differ'
  return ''


def _of_graphs(
  step: RelatedStep,
  name: str,
  start: float,
  shows_decisions: bool = False,
  is_taken: bool = False,
) -> Related:
  """Relates a step.

  Args:
    step: the step.
    name: what is related.
    start: when that was begun.
    shows_decisions: whether what decides which operations run is related as well.
    is_taken: whether branches are taken also where none of them writes.
  """
  tf1, tf2 = ((one if is_taken else with_choices(one)) for one in (step.tf1, step.port))
  one, other = step.graphs.runs(tf1, tf2, shows_decisions=shows_decisions)
  try:
    runs = contextlib.nullcontext((one, other))
    return _compared(step, (tf1, one.op_graph), (tf2, other.op_graph), name, start, lambda: runs)
  finally:
    one.close()
    other.close()


def _numbers_read(numbers: Sequence[ReadNumber]) -> str:
  lines = dict.fromkeys(number.line.short for number in numbers if number.line is not None)
  places = f' ({", ".join(lines)})' if lines else ''
  return f'Python reads numbers of the step{places}, so that other steps may differ'


def _compared(
  step: RelatedStep,
  tf1: tuple[StepGraph, OpGraph],
  tf2: tuple[StepGraph, OpGraph],
  name: str,
  start: float,
  runs: Callable[[], Runs],
) -> Related:
  states = StepStates(
    states_of(tf1[1], _values(tf1[0]), step.number - 1),
    states_of(tf2[1], _values(tf2[0]), step.number - 1),
    step.multiples,
  )
  further = [multiple.of for multiple in step.multiples.values()]
  variables = _shared(step.graphs.case, tf1[0], tf2[1], further)
  aliases = {f'update of {own}': f'update of {m.of}' for own, m in step.multiples.items()}
  theirs = {aliases.get(target, target) for target in tf2[1].targets()}
  # What one side alone keeps is compared where both sides have it, or noted where only one has.
  targets = [target for target in tf1[1].targets() if target in theirs]
  targets += [n for _, graph in (tf1, tf2) for n in graph.targets() if is_decision_target(n)]
  return compared(tf1[1], tf2[1], variables, name, start, targets, states, runs)


def _values(step: StepGraph) -> dict[str, np.ndarray]:
  return {variable.name: variable.value for variable in step.variables.values()}


def _shared(
  case: CaseUnderTest, tf1: StepGraph, tf2: OpGraph, further: Iterable[str]
) -> PairedVariables:
  """Returns the variables that both sides have before the step."""
  theirs = {op.name for op in tf2.ops if op.op_type == VARIABLE} | set(further)
  held = dict(_held(theirs, paired_variables(case).held))
  theirs |= {name for known in held.values() for name in known.tf1}
  return PairedVariables(dict(_pairs(tf1, theirs)), held)


def _held(names: Iterable[str], laid_out: Mapping[str, Held]) -> Iterator[tuple[str, Held]]:
  """Yields how the port holds variables, and slots of them: as tf1 calls these, `w/Adam`."""
  for name in names:
    if name in laid_out and laid_out[name].tf1 != (name,):
      yield name, laid_out[name]  # a part
      continue
    owner = name
    while owner and owner not in laid_out:
      owner = owner.rpartition('/')[0]
    if owner and laid_out[owner].tf1 == (owner,):
      held = laid_out[owner]
      slot = dataclasses.replace(held, tf1=(name,), with_constants=False)
      yield name, held if owner == name else slot


def _pairs(tf1: StepGraph, names: set[str]) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
  for variable in tf1.variables.values():
    if variable.name in names:
      yield variable.name, (variable.dtype.name, variable.shape)
