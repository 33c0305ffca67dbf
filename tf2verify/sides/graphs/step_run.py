"""A run of a training step, of which every tensor can be asked for."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import VARIABLE
from tf2verify.reference.graph_ops import op_name_of
from tf2verify.sides.graphs.graph_defs.extraction import behind
from tf2verify.sides.graphs.graph_defs.inlining import condition_of, is_decision, with_output
from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.numbers_read import ReadNumber
from tf2verify.sides.graphs.reading import GraphReader, Target
from tf2verify.sides.graphs.rewriting.settled_numbers import (
  is_number,
  numbers_of_counts,
  settle_all,
  settle_reads,
)
from tf2verify.sides.graphs.rewriting.taken_branches import CONDITIONS, with_taken_branches
from tf2verify.sides.graphs.rewriting.without_state import WithoutState, without_state
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.variables.given_variables import assignment, make_handle, preparation

v1 = tf.compat.v1
LOSS_TARGET = 'loss (total)'
MINIMIZED_TARGET = 'loss (minimized)'
RATE_TARGET = 'learning rate (of the step)'
# What both sides call their count of steps.
COUNT = 'global step (count)'
_DECISION = 'decision '


def gradient_target(variable: str) -> str:
  """Returns how a gradient as differentiated is called, given the variable's tf1 name."""
  return f'gradient {variable}'


def applied_target(variable: str) -> str:
  """Returns how a gradient as given to the update is called."""
  return f'applied gradient {variable}'


def update_target(variable: str) -> str:
  """Returns how the value of a variable, or of state, after the step is called."""
  return f'update of {variable}'


def is_decision_target(name: str) -> bool:
  """Returns whether a target is what decides which operations of a step run."""
  return name.startswith(_DECISION)


@dataclasses.dataclass(frozen=True, eq=False)
class StepVariable:
  """A variable, a slot or a count before the step."""

  name: str  # what both sides call it; what only one side has, by the side's own name
  value: np.ndarray
  is_own: bool = False  # whether only this side has it
  identity: int = 0  # of the handle, in this process; 0 where it is not told

  @property
  def dtype(self) -> Any:
    """TensorFlow's dtype."""
    return tf.as_dtype(self.value.dtype)

  @property
  def shape(self) -> tuple[int, ...]:
    """The shape."""
    return self.value.shape


@dataclasses.dataclass(frozen=True, eq=False)
class _Choice:
  """Which branches conditions take."""

  graph_def: Any  # what decides it
  tensors: tuple[str, ...]
  taken: tuple[bool, ...]

  def is_of(self, step: 'StepGraph') -> bool:
    """Returns whether the same branches are taken from the values of another step."""
    return self.taken == _truths(_values(step, self.graph_def, self.tensors))


# The graph of a step without its writes, and what decides that it is this one.
_Made = tuple[WithoutState, tuple[_Choice, ...]]


class Rewritten:
  """The graph of a step without its writes, made once for all values that decide alike."""

  def __init__(self) -> None:
    self._known: _Made | None = None

  def of(self, step: 'StepGraph') -> _Made:
    """Returns it for a step of this graph; its GraphDef may be changed.

    Raises:
      WrittenOtherwise: a variable is written in a way that cannot be taken apart.
    """
    if self._known is None or not all(choice.is_of(step) for choice in self._known[1]):
      self._known = _rewritten(step)
    known, choices = self._known
    graph_def = v1.GraphDef()
    graph_def.CopyFrom(known.graph_def)
    return dataclasses.replace(known, graph_def=graph_def), choices


@dataclasses.dataclass(frozen=True, eq=False)
class StepGraph:
  """The graph of a step, as it was built."""

  side: str  # 'tf1' or 'tf2'
  graph_def: Any  # itself
  variables: Mapping[str, StepVariable]  # by the name of a handle's operation
  inputs: Mapping[str, str]  # what both sides call a placeholder, by the name of its operation
  feeds: Mapping[str, np.ndarray]  # by tensor name
  # From a placeholder's op name to the value that it always has.
  constants: Mapping[str, np.ndarray]
  targets: Sequence[Target]  # losses and gradients
  # Tells the user's line of an operation, by its name.
  source_of: Callable[[str], SourceLine | None]
  start: Sequence[str] = ()  # operations that a session runs first
  # How variables are held that lie on the tf1 side differently, by their tf1 names.
  layouts: Mapping[str, Relayout] = dataclasses.field(default_factory=dict)
  # What Python has read while it was traced, which makes it the graph of this step only.
  numbers_read: Sequence[ReadNumber] = ()
  # Numbers that follow from counts of steps and are constants, by the names of operations: where
  # Python has read the count of the other side, that has constants in their place.
  settled: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
  # Whether conditions that write nothing stay, instead of the branches that are taken.
  keeps_choices: bool = False
  # Of this graph, from whatever values the step starts.
  rewritten: Rewritten = dataclasses.field(default_factory=Rewritten)


def _rewritten(step: StepGraph) -> _Made:
  graph_def = _with_handles(step)
  choices: list[_Choice] = []

  def evaluate(tensors: Sequence[str]) -> Sequence[np.ndarray]:
    part = _part(step, graph_def, tensors)
    values = _values(step, part, tensors)
    choices.append(_Choice(part, tuple(tensors), _truths(values)))
    return values

  is_replaced = _write_of(graph_def) if step.keeps_choices else bool
  with_taken_branches(graph_def, evaluate, marks_choices=True, is_replaced=is_replaced)
  return without_state(graph_def, step.variables.keys()), tuple(choices)


def writing_branches(step: StepGraph) -> dict[str, bool]:
  """Returns the conditions of a step of which a branch writes variables, with what they are."""
  writes = _write_of(step.graph_def)
  found = [node for node in step.graph_def.node if node.op in CONDITIONS and writes(node)]
  if not found:
    return {}
  truths = _truths(values_of(step, [with_output(node.input[0]) for node in found]))
  return dict(zip((node.name for node in found), truths, strict=True))


def values_of(step: StepGraph, tensors: Sequence[str]) -> Sequence[np.ndarray]:
  """Returns tensors of a step by name, from the values before it."""
  graph_def = _with_handles(step)
  return _values(step, _part(step, graph_def, tensors), tensors)


def _with_handles(step: StepGraph) -> Any:
  """Returns a GraphDef of its own, whose variables can be given values."""
  graph_def = v1.GraphDef()
  graph_def.CopyFrom(step.graph_def)
  for node in graph_def.node:
    node.attr.pop('_class', None)  # what it names may have been left out
    if node.name in step.variables:
      make_handle(node, step.variables[node.name])
  return graph_def


def _part(step: StepGraph, graph_def: Any, tensors: Sequence[str]) -> Any:
  return behind(graph_def, [*map(op_name_of, tensors), *step.start])


def _write_of(graph_def: Any) -> Callable[[Any], bool]:
  """Returns what tells of a condition of a graph, by its NodeDef, whether a branch writes."""
  library = {function.signature.name: function for function in graph_def.library.function}
  return lambda node: any(
    _writes(library, node.attr[f'{one}_branch'].func.name) for one in ('then', 'else')
  )


def _writes(library: Mapping[str, Any], name: str) -> bool:
  """Returns whether a function writes a variable, or one that it calls does."""
  for node in library[name].node_def if name in library else ():
    called = [value.func.name for value in node.attr.values() if value.HasField('func')]
    is_write = node.op.removeprefix('Resource').startswith(('Assign', 'Apply', 'Scatter', 'Sparse'))
    if is_write or any(_writes(library, one) for one in called):
      return True
  return False


def _truths(values: Sequence[np.ndarray]) -> tuple[bool, ...]:
  return tuple(bool(value.any()) for value in values)


def _fix_settings(
  known: WithoutState, variables: Mapping[str, StepVariable]
) -> Mapping[str, np.ndarray]:
  """Makes constants of numbers that one side keeps in variables and does not write.

  They are settings of an optimizer, which the other side has as constants.

  Returns:
    Their values, by the names of the handles' operations.
  """
  settings = {
    handle: variable.value
    for handle, variable in variables.items()
    if variable.is_own and not variable.shape and known.origins.get(known.after[handle]) == handle
  }
  settle_reads(known.graph_def, settings)
  return settings


def counts_of(step: StepGraph) -> dict[str, np.ndarray]:
  """Returns the counts of steps before a step, by the names of the handles' operations."""
  return {
    handle: variable.value
    for handle, variable in step.variables.items()
    if not variable.shape and variable.dtype.is_integer
  }


def numbers_by_count(step: StepGraph) -> dict[str, np.ndarray]:
  """Returns numbers of a step that follow from its counts alone, by the names of operations.

  Raises:
    WrittenOtherwise: a variable is written in a way that cannot be taken apart.
  """
  known, _ = step.rewritten.of(step)
  kept = {op_name_of(tensor) for tensor in known.after.values()}
  names = numbers_of_counts(known.graph_def, counts_of(step), kept)
  if not names:
    return {}
  values = _values(step, behind(known.graph_def, names), [f'{name}:0' for name in names])
  return {name: value for name, value in zip(names, values, strict=True) if is_number(value)}


def with_choices(step: StepGraph) -> StepGraph:
  """Returns a step in whose graph conditions stay that write nothing."""
  return dataclasses.replace(step, keeps_choices=True, rewritten=Rewritten())


def step_run(
  step: StepGraph, shows_choices: bool = False, shows_decisions: bool = False
) -> GraphRun:
  """Returns a run of a step; see `StepRun`."""
  return StepRun(step, shows_choices=shows_choices, shows_decisions=shows_decisions).run


@dataclasses.dataclass(frozen=True, eq=False)
class _Start:
  """Gives the variables of a session the values before a step."""

  step: StepGraph
  # By the name of a handle's operation: the assignment, and what that is fed with.
  assigned: Mapping[str, tuple[str, str]]

  def __call__(self, session: Any) -> None:
    session.run(list(self.step.start))
    preparation(self.assigned, lambda op_name: self.step.variables[op_name].value)(session)


class StepRun:
  """A run of a step's graph, which can go on from the values of other steps of the same graph.

  Attributes:
    run: the run.
  """

  def __init__(
    self,
    step: StepGraph,
    change: Callable[[Any], None] | None = None,
    targets_only: bool = False,
    shows_choices: bool = False,
    shows_decisions: bool = False,
  ) -> None:
    """Makes the graph.

    Args:
      step: the step.
      change: changes its graph, in which nothing is written any more, before it is run.
      targets_only: whether other operations are left out of the records.
      shows_choices: whether numbers that conditions have chosen are operations, see `GraphReader`.
      shows_decisions: whether what decides which branches are taken, and numbers that Python has
        read, are targets; see `is_decision_target`.

    Raises:
      WrittenOtherwise: a variable is written in a way that cannot be taken apart.
    """
    known, self._choices = step.rewritten.of(step)
    self._rewritten = step.rewritten
    self._settings = dict(_fix_settings(known, step.variables))
    if step.settled:
      settle_all(known.graph_def, step.settled)
      self._settings.update(counts_of(step))
    if change is not None:
      change(known.graph_def)
    graph, self._start = _imported(step, known.graph_def)
    names = {op_name: variable.name for op_name, variable in step.variables.items()}
    reader = GraphReader(
      graph,
      names,
      step.inputs,
      step.constants,
      lambda op: step.source_of(condition_of(known.origins.get(op.name, op.name))),
      shows_choices,
    )
    updates = [
      Target(update_target(names[op_name]), (tensor if ':' in tensor else f'{tensor}:0',))
      for op_name, tensor in known.after.items()
    ]
    if shows_decisions:
      updates += _decisions(step, graph)
    read_graph = reader.read_targets if targets_only else reader.read
    op_graph = read_graph([*step.targets, *updates], (), step.side)
    op_graph = dataclasses.replace(op_graph, is_of_one_step=bool(step.numbers_read))
    read = {op.name: op.tensors[0] for op in op_graph.ops if op.op_type == VARIABLE}
    reads = {op_name: read[name] for op_name, name in names.items() if name in read}
    self.run = GraphRun(op_graph, graph, _feeds(step), self._start, reads, step.layouts)

  def restart(self, step: StepGraph) -> bool:
    """Goes from the values of another step from now on; returns False where it cannot.

    Args:
      step: of the same graph, whose settings are the same, or this one from other values.
    """
    if step.rewritten is not self._rewritten:
      return False
    if not all(choice.is_of(step) for choice in self._choices):
      return False
    values = {name: step.variables[name].value for name in self._settings}
    if not all(np.array_equal(values[name], known) for name, known in self._settings.items()):
      return False
    self.run.restart(dataclasses.replace(self._start, step=step), _feeds(step))
    return True


def _decisions(step: StepGraph, graph: tf.Graph) -> list[Target]:
  """Returns what decides which operations of a step run, as targets that one side alone has."""
  ops = graph.get_operations()
  tensors = [op.outputs[0].name for op in ops if is_decision(op.name)]
  there = {op.name for op in ops}
  tensors += [n.tensor for n in step.numbers_read if op_name_of(n.tensor) in there]
  return [
    Target(f'{_DECISION}{number} of {step.side}', (tensor,))
    for number, tensor in enumerate(dict.fromkeys(tensors))
  ]


def _imported(step: StepGraph, graph_def: Any) -> tuple[tf.Graph, _Start]:
  """Returns a graph, and what gives its variables their values in a session."""
  assigned = {
    op_name: assignment(graph_def, op_name, variable)
    for op_name, variable in step.variables.items()
  }
  return imported(graph_def), _Start(step, assigned)


def _feeds(step: StepGraph) -> dict[str, np.ndarray]:
  return {**step.feeds, **{f'{name}:0': value for name, value in step.constants.items()}}


def _values(step: StepGraph, graph_def: Any, tensors: Sequence[str]) -> Sequence[np.ndarray]:
  """Returns tensors of a part of a step's graph, which stays as it is."""
  part = v1.GraphDef()
  part.CopyFrom(graph_def)
  there = {node.name for node in part.node}
  step = dataclasses.replace(
    step,
    variables={name: known for name, known in step.variables.items() if name in there},
    feeds={name: value for name, value in step.feeds.items() if op_name_of(name) in there},
    constants={name: value for name, value in step.constants.items() if name in there},
  )
  graph, prepare = _imported(step, part)
  with open_session(graph) as session:
    prepare(session)
    return [np.asarray(value) for value in session.run(list(tensors), _feeds(step))]
