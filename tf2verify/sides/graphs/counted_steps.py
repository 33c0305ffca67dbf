"""A training step from the same values, had another number of steps been taken before it."""

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import CONSTANT, TARGET, VARIABLE, OpGraph, TensorKey
from tf2verify.reference.graph_ops import op_name_of, reached
from tf2verify.reference.perturbation import Perturber
from tf2verify.relation.proof.inductive import states_of
from tf2verify.relation.proof.normal_forms.states import Count
from tf2verify.relation.shadows import SHADOW
from tf2verify.sides.graphs.graph_defs.inlining import data_inputs
from tf2verify.sides.graphs.step_run import (
  RATE_TARGET,
  StepGraph,
  StepVariable,
  applied_target,
  gradient_target,
  step_run,
  update_target,
)

_CONDITIONS = ('If', 'StatelessIf')
_WRITES = (
  'Assign',
  'AssignAdd',
  'AssignSub',
  'AssignVariableOp',
  'AssignAddVariableOp',
  'AssignSubVariableOp',
)
# Between the role of a slot and its variable; no variable has a blank in its name.
_OF = ' of '
_UPDATES = update_target('')
_GRADIENTS = (gradient_target(''), applied_target(''))


@dataclasses.dataclass(frozen=True, eq=False)
class CountedValue:
  """What a side computes from the count of steps alone.

  Attributes:
    tensor: position of the operation that computes it, and number of the output.
    read: what it is computed from, constants aside.
    op_type: of the operation.
    source: the user's line.
    values: at each count that was asked for.
  """

  tensor: TensorKey
  read: tuple[TensorKey, ...]
  op_type: str
  source: SourceLine | None
  values: tuple[np.ndarray, ...]


def reads_numbers(step: StepGraph) -> bool:
  """Returns whether a variable that is one number, as a count is, is read by what follows counts.

  Losses, gradients, and values given to variables that no gradient trains.
  """
  nodes = {node.name: node for node in step.graph_def.node}
  gradients = {target.name for target in step.targets}
  pending = [op_name_of(tensor) for target in step.targets for tensor in target.tensors]
  for node in step.graph_def.node:
    written = step.variables.get(op_name_of(node.input[0])) if node.op in _WRITES else None
    if written is not None and written.shape and gradient_target(written.name) not in gradients:
      pending += [op_name_of(read) for read in node.input[1:]]
  read = _variables_behind(step, nodes, pending)
  return any(not variable.shape for variable in read)


def has_branches(step: StepGraph) -> bool:
  """Returns whether a step has conditions."""
  return any(node.op in _CONDITIONS for node in step.graph_def.node)


def _variables_behind(
  step: StepGraph, nodes: Mapping[str, Any], starts: Sequence[str]
) -> Iterator[StepVariable]:
  """Yields the variables that some nodes are computed from."""

  def read(name: str) -> list[str]:
    if name in step.variables or name not in nodes:
      return []
    return list(map(op_name_of, data_inputs(nodes[name])))

  found = reached(starts, read)
  return (step.variables[name] for name in found if name in nodes and name in step.variables)


class CountedStep:
  """A step whose count can be set: every variable that each step adds 1 to, or multiplies."""

  def __init__(
    self, step: StepGraph, taken: int, branches: bool = True, trained: bool = False
  ) -> None:
    """Takes a step.

    Args:
      step: as it was built, from the values before it.
      taken: how many steps were taken before it.
      branches: whether other branches are taken at other counts; the step's own otherwise, so that
        what else follows the count can be seen.
      trained: whether to look at what the step trains too, since no rate tells of it.

    Raises:
      WrittenOtherwise: a variable is written in a way that cannot be taken apart.
    """
    self._step = step
    self._run = step_run(step)
    self._values = {variable.name: variable.value for variable in step.variables.values()}
    self._states = states_of(self.graph, self._values, taken)
    self._branches = branches and has_branches(step)
    ends = self.graph.targets()
    self._trains = trained
    given = set() if trained else {ends[name] for name in _trained(self.graph) if name in ends}
    self._dependent = _dependent(self.graph, self._states, given)
    self._base: dict[str, np.ndarray] = {}

  @property
  def graph(self) -> OpGraph:
    """Its operations."""
    return self._run.op_graph

  def close(self) -> None:
    """Lets go of its session."""
    self._run.close()

  def tensors(self) -> dict[str, str]:
    """Returns what is one tensor, by its name on both sides.

    Losses, gradients, and the values that a step gives to what no gradient trains: averages, the
    copies of a target network. Those follow the count themselves; what they read of variables
    that the same step trains is as the step leaves these at its own count.
    """
    counted = {update_target(name) for name in self._states}
    left_out = {*counted, RATE_TARGET}  # rates are compared by themselves
    if self._trains:
      return {name: one for name, one in _targets(self.graph).items() if name not in left_out}
    left_out |= _trained(self.graph)
    if self._branches:  # the graph is made anew at each count, and all of it follows
      left_out |= {name for name in self.graph.targets() if name.startswith(_UPDATES)}
    return {name: one for name, one in _targets(self.graph).items() if name not in left_out}

  def dependent(self) -> frozenset[str]:
    """Returns which of them are computed from the count, or may be, where it decides a branch."""
    tensors = self.tensors()
    ends = self.graph.targets()
    if self._branches and any(isinstance(known, Count) for known in self._states.values()):
      return frozenset(tensors) & self._reading_a_count()
    return frozenset(name for name in tensors if ends[name] in self._dependent)

  def before(self, name: str) -> np.ndarray | None:
    """Returns the value, before the step, of the variable that an update is of; None of others."""
    return self._values.get(name.removeprefix(_UPDATES)) if name.startswith(_UPDATES) else None

  def _reading_a_count(self) -> frozenset[str]:
    """Returns which targets read a count, be it to decide which branch is taken."""
    nodes = {node.name: node for node in self._step.graph_def.node}
    found = set()
    for target in self._step.targets:
      starts = [op_name_of(tensor) for tensor in target.tensors]
      read = _variables_behind(self._step, nodes, starts)
      if any(isinstance(self._states.get(variable.name), Count) for variable in read):
        found.add(target.name)
    return frozenset(found)

  def at(
    self, counts: Sequence[int], names: Collection[str], perturber: Perturber | None = None
  ) -> Iterator[dict[str, np.ndarray] | None]:
    """Yields losses and gradients at each count of steps taken; None where it cannot be run.

    Args:
      counts: of steps taken before.
      names: of losses and gradients.
      perturber: moves the other variables by a unit in the last place; None for none.
    """
    is_whole = self._branches or perturber is not None
    following = [name for name in names if is_whole or self._follows(name)]
    fixed = self._fetched([name for name in names if name not in following])
    given = None if is_whole or fixed is None else self._given(self._ends(following))
    tensors = [self.tensors()[name] for name in following]
    for count in counts:
      found: Sequence[np.ndarray] | None = None
      if given is not None:
        (found,) = self._run.recompute([(tensors, {**given, **self._counts(count)})])
      if found is None:
        made = self._built_anew(count, names, perturber)
        # There, what the step trains follows the count as well.
        unknown = () if self._trains else [n for n in made or () if n.startswith(_UPDATES)]
        yield made and {**made, **{name: np.full(np.shape(made[name]), np.nan) for name in unknown}}
      else:
        yield {**(fixed or {}), **dict(zip(following, found, strict=True))}

  def _follows(self, name: str) -> bool:
    return self.graph.targets()[name] in self._dependent

  def _fetched(self, names: Sequence[str]) -> dict[str, np.ndarray] | None:
    """Returns what does not follow the count; None where it cannot be had."""
    try:
      return dict(zip(names, self._run.fetch([self.tensors()[n] for n in names]), strict=True))
    except (tf.errors.OpError, ValueError, TypeError):
      return None

  def from_count_alone(self, counts: Sequence[int], names: Collection[str]) -> list[CountedValue]:
    """Returns what is computed from the count alone on the way to losses and gradients.

    Args:
      counts: of steps taken before.
      names: of losses and gradients.
    """
    graph = self.graph
    behind = graph.ancestors(self._ends(names))
    if not self._trains and all(name.startswith(_UPDATES) for name in names):
      # Not of the rate, see `_trained`.
      behind -= graph.ancestors(self._ends(_trained(graph) & graph.targets().keys()))
    alone: set[int] = set()
    for position, op in enumerate(graph.ops):
      inputs_alone = all(n in alone or graph.ops[n].op_type == CONSTANT for n, _ in op.inputs)
      if op.name in self._states if op.op_type == VARIABLE else op.pure and inputs_alone:
        alone.add(position)
    alone &= self._dependent & behind
    ends = sorted(
      {key for position in behind - alone for key in graph.ops[position].inputs if key[0] in alone}
    )
    tensors = list(map(graph.tensor, ends))
    found = self._run.recompute([(tensors, self._counts(count)) for count in counts])
    if not ends or any(one is None for one in found):
      return []
    return [
      CountedValue(
        key,
        tuple(one for one in graph.ops[key[0]].inputs if one[0] in alone),
        graph.ops[key[0]].op_type,
        graph.ops[key[0]].source,
        tuple(values),
      )
      for key, *values in zip(ends, *(one or () for one in found), strict=True)
    ]

  def _ends(self, names: Collection[str]) -> list[int]:
    ends = self.graph.targets()
    return [ends[name] for name in names]

  def _counts(self, count: int) -> dict[str, np.ndarray]:
    """Returns the counting variables at a count, by the tensors that read them."""
    reads = {op.name: op.tensors[0] for op in self.graph.ops if op.op_type == VARIABLE}
    values = self._counted(count)
    return {reads[name]: value for name, value in values.items() if name in reads}

  def _counted(self, count: int) -> dict[str, np.ndarray]:
    return {
      name: np.asarray(state.after(count), self._values[name].dtype)
      for name, state in self._states.items()
    }

  def _given(self, ends: Collection[int]) -> Mapping[str, np.ndarray] | None:
    """Returns what the part that depends on the count reads besides; None where that has no value.

    A list of tensors that a loop fills has none.
    """
    graph = self.graph
    inside = self._dependent & graph.ancestors(ends)
    entering = {key for n in inside for key in graph.ops[n].inputs if key[0] not in self._dependent}
    names = sorted(map(graph.tensor, entering))
    wanted = [name for name in names if name not in self._base]
    try:
      self._base.update(zip(wanted, self._run.fetch(wanted), strict=True))
    except (tf.errors.OpError, ValueError, TypeError):
      return None
    return {name: self._base[name] for name in names}

  def _built_anew(
    self, count: int, names: Collection[str], perturber: Perturber | None
  ) -> dict[str, np.ndarray] | None:
    """Returns a run of the graph that is made of the step at a count: of its own branches."""
    counted = self._counted(count)

    def value(name: str) -> np.ndarray:
      known = counted.get(name, self._values[name])
      return known if perturber is None or name in counted else perturber.variable(name, known)

    variables = {
      op_name: dataclasses.replace(variable, value=value(variable.name))
      for op_name, variable in self._step.variables.items()
    }
    with contextlib.closing(step_run(dataclasses.replace(self._step, variables=variables))) as run:
      tensors = _targets(run.op_graph)
      if not set(names) <= tensors.keys():
        return None
      return dict(zip(names, run.fetch([tensors[name] for name in names]), strict=True))


def _targets(graph: OpGraph) -> dict[str, str]:
  return {
    op.name: graph.tensor(op.inputs[0])
    for op in graph.ops
    if op.op_type == TARGET and len(op.inputs) == 1
  }


def _trained(graph: OpGraph) -> set[str]:
  """Returns the updates of variables that have gradients, and of what an optimizer keeps of them.

  They follow the learning rate, which is compared by itself.
  """
  # Of gradients that are summed over towers, only the sum is known.
  known = [(name, start) for name in graph.targets() for start in _GRADIENTS]
  trained = {name.removeprefix(start) for name, start in known if name.startswith(start)}
  found = set()
  for name in graph.targets():
    role, _, owner = name.removeprefix(_UPDATES).rpartition(_OF)
    if name.startswith(_UPDATES) and role != SHADOW and owner in trained:
      found.add(name)
  return found


def _dependent(graph: OpGraph, counting: Collection[str], trained: Collection[int]) -> set[int]:
  """Returns the positions of what is computed from variables that count.

  Args:
    graph: of the step.
    counting: names of such variables.
    trained: positions of the targets whose values count as given.
  """
  found: set[int] = set()
  given = {key[0] for position in trained for key in graph.ops[position].inputs}
  for position, op in enumerate(graph.ops):
    if position in given:
      continue
    counts = op.op_type == VARIABLE and op.name in counting
    if counts or any(n in found for n, _ in op.inputs):
      found.add(position)
  return found
