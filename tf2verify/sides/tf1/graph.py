"""The tf1 side: the reference's graph, run in fresh sessions."""

import weakref
from collections.abc import Callable, Sequence
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
from tf2verify.records.recorded_here import RecordedGraphHere
from tf2verify.sides import functional, side
from tf2verify.sides.fill import Fill, RecordedFill
from tf2verify.sides.graphs.reading import user_source
from tf2verify.sides.graphs.run import GraphRun, open_session
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1 import build as tf1_build
from tf2verify.sides.tf1 import seed_rewriting, session_values
from tf2verify.sides.tf1.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.influence import WithoutInfluence, without_influence
from tf2verify.sides.tf1.reference_run import graph_run_of

v1 = tf.compat.v1


class SeededRun(Protocol):
  """A run from seeded initial values."""

  def __call__(self, mover: Mover | None = None, again: bool = False) -> Observation:
    """Runs it in a fresh session; with a mover, from moved initial values and inputs.

    Args:
      mover: moves values and inputs; None leaves them.
      again: whether the run is to show if it repeats itself.
    """


class FilledRuns(Protocol):
  """Runs with given variable values."""

  def __call__(self, others: Sequence[side.FilledRun] | None = None) -> tuple[Observation, ...]:
    """Runs what was prepared; or, in fresh sessions, others of the same training mode.

    Others that are those which were prepared show if these repeat themselves.
    """


# Runs a recorded graph here, with the gradients for these variables.
GraphHere = Callable[[frozenset[str]], Observation]


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

    def observe(mover: Mover | None = None, again: bool = False) -> Observation:
      del again  # every run is one
      self._progress(f'running the TF1 graph, {run}{_moved_text(mover)}')
      with open_session(built.graph) as session:
        session_values.fetch(
          session, [*session_values.initializers(built), *built.table_initializers]
        )
        initial = session_values.read_variables(session, built.variables)
        if mover is not None:
          session_values.move(session, built.variables, mover)
        fetched = _fetch(session, built, side.moved_inputs(self._inputs, mover), ())
        return Observation(
          side=side.TF1,
          run=run,
          initial_values=initial,
          state_after=session_values.read_again(session, built.variables, initial),
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
        session_values.fetch(session, built.table_initializers)
        for run in runs:
          self._progress(f'running the TF1 graph, {run.description}{_moved_text(run.mover)}')
          session_values.assign(session, built.variables, run)
          if run.mover is not None:
            session_values.move(session, built.variables, run.mover)
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
    return graph_run_of(run, built, gradients, lambda op: user_source(made.get(op.name, op)))

  def initial_fill(self, mode: str, training: bool, initial: Sequence[TensorRecord]) -> Fill:
    """Returns the fill that gives variables the initial values of a seeded run.

    Args:
      mode: of the run.
      training: of the run.
      initial: what the run has shown of them.
    """
    del training
    return RecordedFill(mode, {record.name: record.value for record in initial})

  def without_influence(self) -> WithoutInfluence:
    """Returns what of the graphs no compared number depends on."""
    return without_influence([self.built(mode) for mode in self._declaration.training_modes])

  def recorded_here(self, run: side.FilledRun) -> RecordedGraphHere | None:
    """Returns what a recorded graph yields for a run here; None for one that was built here."""
    del run
    return None

  def seeded_here(self, mode: str, training: bool) -> GraphHere | None:
    """Returns what runs a recorded graph here as a seeded run; None for one built here."""
    del mode, training
    return None

  def filled_here(self, run: side.FilledRun) -> GraphHere | None:
    """Returns what runs a recorded graph here as a filled run; None for one built here."""
    del run
    return None

  def remarks(self) -> tuple[str, ...]:
    """Returns what readers have to know of the runs since this was last asked for."""
    return ()

  def close(self) -> None:
    """Lets go of the graphs."""
    self._graphs.clear()


def _moved_text(mover: Mover | None) -> str:
  return '' if mover is None else f', moved by rounding ({mover.number + 1})'


def _fetch(
  session: Any, built: BuiltGraph, inputs: Any, gradients: Sequence[GraphGradient]
) -> dict[str, Any]:
  """Runs the outputs, losses, update ops and gradients together, as one training step would."""
  feeds = session_values.feeds(built, inputs)
  names = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  names += [tensor for _, tensor in built.regularization_losses]
  for gradient in gradients:
    names += [name for name in (gradient.values, gradient.indices) if name is not None]
  fetched = session_values.fetch(session, names + list(built.update_ops), feeds)
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
    'gradients': tuple(session_values.gradient_record(gradient, values) for gradient in gradients),
  }
