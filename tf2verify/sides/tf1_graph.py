"""The tf1 side: the reference's graph, run in fresh sessions."""

import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tf2verify.compare.moving import Mover
from tf2verify.errors import NotApplicable
from tf2verify.records.observation import (
  Observation,
  RegularizationLoss,
  TensorRecord,
  VariableRecord,
)
from tf2verify.records.op_graph import VARIABLE
from tf2verify.sides import functional, nests, randomness, seed_rewriting, side, tf1_build
from tf2verify.sides.graph_reading import GraphReader, Target, target_name, user_source
from tf2verify.sides.graph_run import GraphRun, open_session
from tf2verify.sides.tf1_build import BuiltGraph, GraphGradient, GraphVariable
from tf2verify.sides.user_code import user_code

v1 = tf.compat.v1
# Variables are fed in portions of about this size, to bound memory.
_PORTION_BYTES = 64 * 2**20


class SeededRun(Protocol):
  """A run from seeded initial values."""

  def __call__(self, mover: Mover | None = None) -> Observation:
    """Runs it in a fresh session; with a mover, from moved initial values and inputs."""


class FilledRuns(Protocol):
  """Runs with given variable values."""

  def __call__(self, others: Sequence[side.FilledRun] | None = None) -> tuple[Observation, ...]:
    """Runs what was prepared; or, in fresh sessions, others of the same training mode."""


class Tf1Graph(side.Side):
  """Builds each training mode's graph once; every run has a session of its own."""

  def __init__(self, declaration: side.Declaration, inputs: Any, progress: side.Progress) -> None:
    self._declaration = declaration
    self._inputs = inputs
    self._progress = progress
    self._graphs: dict[tuple[str, bool], BuiltGraph] = {}
    self._inventory: side.Inventory | None = None
    self._gradients: weakref.WeakKeyDictionary[tf.Graph, tuple[GraphGradient, ...]] = (
      weakref.WeakKeyDictionary()
    )

  def built(self, training: bool, mode: str = randomness.NUM_RANDOM_OPS) -> BuiltGraph:
    """Returns the graph of a training mode, built for a randomness mode."""
    key = (mode, training)
    if key not in self._graphs:
      again = ' again, for constant mode' if mode == randomness.CONSTANT else ''
      self._progress(f'building the TF1 graph{again}, {side.training_name(training)}')
      self._graphs[key] = tf1_build.build_graph(self._declaration, self._inputs, training, mode)
    return self._graphs[key]

  def built_for(self, mode: str, training: bool) -> BuiltGraph:
    """Returns the graph for a randomness mode: rewritten where that is valid, else rebuilt."""
    built = self.built(training)
    if mode == randomness.NUM_RANDOM_OPS:
      return built
    rewritten = seed_rewriting.constant_seed_graph(built)
    return rewritten if isinstance(rewritten, BuiltGraph) else self.built(training, mode)

  def _with_gradients(self, training: bool) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    """Returns the graph whose random ops are aligned, with the gradients of the loss added."""
    self._progress(f'adding gradients to the TF1 graph, {side.training_name(training)}')
    built = self.built(training)
    gradients = self._add_gradients(built)
    if not built.draws_in_computation:
      return built, gradients
    rewritten = seed_rewriting.constant_seed_graph(built)
    if isinstance(rewritten, BuiltGraph):
      return rewritten, gradients
    built = self.built(training, randomness.CONSTANT)
    return built, self._add_gradients(built)

  def _add_gradients(self, built: BuiltGraph) -> tuple[GraphGradient, ...]:
    known = self._gradients.get(built.graph)
    if known is not None:
      return known
    gradients = tf1_build.add_gradients(built, self._declaration)
    if gradients is None:
      raise NotApplicable(
        'no output is floating, so the default loss has nothing to sum; override `loss` if there '
        'is something to differentiate'
      )
    self._gradients[built.graph] = gradients
    return gradients

  def inventory(self) -> side.Inventory:
    """Returns the variables of all training modes' graphs."""
    if self._inventory is not None:
      return self._inventory
    records: dict[str, VariableRecord] = {}
    by_training = []
    for training in self._declaration.training_modes:
      names = []
      for variable in self.built(training).variables:
        if not variable.local:
          records.setdefault(variable.record.name, variable.record)
          names.append(variable.record.name)
      by_training.append((training, tuple(names)))
    self._inventory = side.Inventory(
      tuple(records.values()), variables_by_training=tuple(by_training)
    )
    return self._inventory

  def observe_seeded(self, mode: str, training: bool) -> Observation:
    """Runs the graph in a fresh session from its own initial values."""
    return self.prepare_seeded(mode, training)()

  def prepare_seeded(self, mode: str, training: bool) -> SeededRun:
    """Builds what a seeded run needs and returns the run itself.

    Building turns process globals, so it happens here and now; the run turns
    none and may go on in a thread of its own, and be repeated.
    """
    built = self.built_for(mode, training)
    run = f'{side.training_name(training)}, {mode}'

    def observe(mover: Mover | None = None) -> Observation:
      self._progress(f'running the TF1 graph, {run}{_moved_text(mover)}')
      with open_session(built.graph) as session:
        _run(session, [*_initializers(built), *built.table_initializers])
        initial = _read_variables(session, built.variables)
        if mover is not None:
          _move(session, built.variables, mover)
        fetched = _fetch(session, built, side.moved_inputs(self._inputs, mover), ())
        return Observation(
          side=side.TF1,
          run=run,
          initial_values=initial,
          state_after=_read_again(session, built.variables, initial),
          random_draws=built.random_draws,
          **fetched,
        )

    return observe

  def observe_filled(self, runs: Sequence[side.FilledRun]) -> tuple[Observation, ...]:
    """Runs the graph from given values, in a fresh session."""
    return self.prepare_filled(runs)()

  def prepare_filled(self, runs: Sequence[side.FilledRun]) -> FilledRuns:
    """Builds what filled runs need and returns the runs themselves, as `prepare_seeded` does."""
    prepared = runs
    built, gradients = self._graph_for(runs[0])

    def observe_all(runs: Sequence[side.FilledRun]) -> list[Observation]:
      observations = []
      with open_session(built.graph) as session:
        _run(session, built.table_initializers)
        for run in runs:
          self._progress(f'running the TF1 graph, {run.description}{_moved_text(run.mover)}')
          _assign(session, built.variables, run)
          if run.mover is not None:
            _move(session, built.variables, run.mover)
          wanted = [g for g in gradients if run.wants_gradient_of(g.variable)]
          fetched = _fetch(session, built, side.moved_inputs(run.inputs, run.mover), wanted)
          observations.append(
            Observation(
              side=side.TF1,
              run=run.description,
              random_draws=built.random_draws,
              **fetched,
            )
          )
      return observations

    def observe(others: Sequence[side.FilledRun] | None = None) -> tuple[Observation, ...]:
      runs = prepared if others is None else others
      if built.draws_in_computation:
        # A second run in one session would draw other numbers than the first.
        return tuple(observation for run in runs for observation in observe_all([run]))
      return tuple(observe_all(runs))

    return observe

  def _graph_for(self, run: side.FilledRun) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    if run.gradients:
      return self._with_gradients(run.training)
    built = self.built(run.training)
    if built.draws_in_computation:
      built = self.built_for(randomness.CONSTANT, run.training)
    return built, ()

  def inspectable(self, run: side.FilledRun) -> GraphRun:
    """Returns a run of which every tensor can be asked for."""
    built, gradients = self._graph_for(run)
    # A rewritten graph does not know who made its operations.
    made = {op.name: op for op in self.built(run.training).graph.get_operations()}
    handles = {
      built.graph.get_operation_by_name(variable.initializer).inputs[0].op.name: variable
      for variable in built.variables
    }
    reader = GraphReader(
      built.graph,
      {op_name: variable.record.name for op_name, variable in handles.items()},
      {name.rpartition(':')[0]: path for path, name in built.placeholders},
      {},
      lambda op: user_source(made.get(op.name, op)),
    )
    op_graph = reader.read(_targets(built, gradients), built.update_ops, side.TF1)
    read = {op.name: op.tensors[0] for op in op_graph.ops if op.op_type == VARIABLE}
    reads = {
      op_name: read[variable.record.name]
      for op_name, variable in handles.items()
      if variable.record.name in read
    }

    def prepare(session: Any) -> None:
      _run(session, built.table_initializers)
      _assign(session, built.variables, run)

    return GraphRun(op_graph, built.graph, _feeds(built, run.inputs), prepare, reads)

  def close(self) -> None:
    """Lets go of the graphs."""
    self._graphs.clear()


def _run(
  session: Any, fetches: Sequence[str], feeds: Mapping[str, np.ndarray] | None = None
) -> list[Any]:
  """Runs ops and tensors by name; an error is the user's graph's, seen with their feeds."""
  if not fetches:
    return []
  with user_code(side.TF1, 'running the graph of build_tf1_graph'):
    return session.run(list(fetches), feeds)  # type: ignore[no-any-return]


def _initializers(built: BuiltGraph) -> list[str]:
  return [variable.initializer for variable in built.variables]


def _portions(variables: Sequence[GraphVariable]) -> Iterator[list[GraphVariable]]:
  """Splits the variables into portions of about `_PORTION_BYTES`."""
  portion: list[GraphVariable] = []
  size = 0
  for variable in variables:
    shape, dtype = variable.record.shape, tf.as_dtype(variable.record.dtype)
    portion.append(variable)
    size += math.prod(dimension or 1 for dimension in shape) * max(dtype.size, 1)
    if size > _PORTION_BYTES:
      yield portion
      portion, size = [], 0
  if portion:
    yield portion


def _read_variables(session: Any, variables: Sequence[GraphVariable]) -> tuple[TensorRecord, ...]:
  """Reads the variables' values, which share the session's memory until a variable changes."""
  owned = [variable for variable in variables if not variable.local]
  values = _run(session, [variable.read for variable in owned])
  return tuple(
    TensorRecord(variable.record.name, np.asarray(value))
    for variable, value in zip(owned, values, strict=True)
  )


def _read_again(
  session: Any, variables: Sequence[GraphVariable], before: Sequence[TensorRecord]
) -> tuple[TensorRecord, ...]:
  """Reads the variables that may have changed; the others keep the record before."""
  changed = [variable for variable in variables if variable.may_change]
  after = {record.name: record for record in _read_variables(session, changed)}
  return tuple(after.get(record.name, record) for record in before)


def _assign(session: Any, variables: Sequence[GraphVariable], run: side.FilledRun) -> None:
  """Gives every variable its value: filled, or initial where the fill has none."""
  unfilled: list[str] = []
  for portion in _portions(variables):
    values = [(variable, run.value_for(variable.record)) for variable in portion]
    unfilled += [variable.initializer for variable, value in values if value is None]
    _write(session, [(variable, value) for variable, value in values if value is not None])
  _run(session, unfilled)


def _move(session: Any, variables: Sequence[GraphVariable], mover: Mover) -> None:
  """Moves the value that every floating variable has."""
  owned = [variable for variable in variables if not variable.local]
  for portion in _portions(owned):
    values = map(np.asarray, _run(session, [variable.read for variable in portion]))
    pairs = list(zip(portion, values, strict=True))
    moved = [mover.variable(variable.record.name, value) for variable, value in pairs]
    _write(
      session,
      [(pair[0], value) for pair, value in zip(pairs, moved, strict=True) if value is not pair[1]],
    )


def _write(session: Any, values: Sequence[tuple[GraphVariable, np.ndarray]]) -> None:
  """Initializes variables with values of their own, in one run as far as that is possible."""
  together = [(variable, value) for variable, value in values if not variable.shares_value]
  feeds = {variable.value: value for variable, value in together}
  _run(session, [variable.initializer for variable, _ in together], feeds)
  for variable, value in values:
    if variable.shares_value:
      _run(session, [variable.initializer], {variable.value: value})


def _moved_text(mover: Mover | None) -> str:
  return '' if mover is None else f', moved by rounding ({mover.number + 1})'


def _fetch(
  session: Any, built: BuiltGraph, inputs: Any, gradients: Sequence[GraphGradient]
) -> dict[str, Any]:
  """Runs the outputs, losses, update ops and gradients together, as one training step would."""
  feeds = _feeds(built, inputs)
  names = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  names += [tensor for _, tensor in built.regularization_losses]
  for gradient in gradients:
    names += [name for name in (gradient.values, gradient.indices) if name is not None]
  fetched = _run(session, names + list(built.update_ops), feeds)
  values = dict(zip(names, fetched, strict=False))  # the update ops come last and yield None
  losses = [values[tensor] for _, tensor in built.regularization_losses]
  return {
    'structure': built.structure,
    'outputs': tuple(
      TensorRecord(path, np.asarray(values[leaf]) if isinstance(leaf, str) else leaf)
      for path, leaf in built.outputs
    ),
    'regularization_losses': tuple(
      RegularizationLoss(variables, np.asarray(values[tensor]))
      for variables, tensor in built.regularization_losses
    ),
    'regularization_total': functional.total(losses[::-1]),
    'gradients': tuple(_gradient_record(gradient, values) for gradient in gradients),
  }


def _feeds(built: BuiltGraph, inputs: Any) -> dict[str, np.ndarray]:
  leaves: dict[str, np.ndarray] = {}
  nests.map_leaves(leaves.__setitem__, inputs)
  return {name: leaves[path] for path, name in built.placeholders}


def _targets(built: BuiltGraph, gradients: Sequence[GraphGradient]) -> list[Target]:
  found = [Target(f'output {path}', (t,)) for path, t in built.outputs if isinstance(t, str)]
  losses: dict[str, str] = {}
  for number, (variables, tensor) in enumerate(built.regularization_losses):
    losses[target_name('regularization loss', variables, number, losses)] = tensor
  found += [Target(name, (tensor,)) for name, tensor in losses.items()]
  for gradient in gradients:
    if gradient.values is not None:
      tensors = (gradient.values, *((gradient.indices,) if gradient.indices else ()))
      found.append(Target(f'gradient {gradient.variable}', tensors))
  return found


def _gradient_record(gradient: GraphGradient, values: Mapping[str, Any]) -> TensorRecord:
  if gradient.values is None:
    return TensorRecord(gradient.variable, None)
  value = np.asarray(values[gradient.values])
  if gradient.indices is not None:
    value = side.dense_gradient(value, np.asarray(values[gradient.indices]), gradient.shape)
  return TensorRecord(gradient.variable, value)
