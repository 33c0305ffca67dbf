"""The tf1 side: the reference's graph, run in fresh sessions."""

import weakref
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import (
  Observation,
  RegularizationLoss,
  SourceLine,
  TensorRecord,
  VariableRecord,
)
from tf2verify.records.recorded_here import RecordedGraphHere
from tf2verify.reference.perturbation import Mover
from tf2verify.sides import functional, side
from tf2verify.sides.fill import Fill, RecordedFill
from tf2verify.sides.graphs.effects import Effect, Program, effects
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.graphs.reading import user_source
from tf2verify.sides.graphs.run import GraphRun, open_session
from tf2verify.sides.other_sizes import shapes_of
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1 import build as tf1_build
from tf2verify.sides.tf1 import seed_rewriting, session_values, starts
from tf2verify.sides.tf1.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.effects import program_of
from tf2verify.sides.tf1.influence import WithoutInfluence, inputs_read, without_influence
from tf2verify.sides.tf1.racing import Racing, fetches_of
from tf2verify.sides.tf1.reference import FilledRuns, GraphHere, RecordedReference, SeededRun
from tf2verify.sides.tf1.reference_run import graph_run_of

v1 = tf.compat.v1


class Tf1Graph(side.Side):
  """Builds each training mode's graph once; every run has a session of its own.

  Attributes:
    racing: in which order operations run that the graph does not order.
  """

  def __init__(self, declaration: side.Declaration, inputs: Any, progress: side.Progress) -> None:
    self._declaration = declaration
    self._inputs = inputs
    self._progress = progress
    self.racing = Racing()
    self._graphs: dict[tuple[str, bool], BuiltGraph] = {}
    self._inventory: side.Inventory | None = None
    self._drawn_starts: dict[str, np.ndarray | None] = {}
    self._other_size: Tf1Graph | None = None
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
    if mode == randomness.COMPUTATION:
      return self._numbered(built)
    rewritten = seed_rewriting.constant_seed_graph(built)
    return rewritten if isinstance(rewritten, BuiltGraph) else self.built(training, mode)

  def _numbered(self, built: BuiltGraph) -> BuiltGraph:
    """Returns a graph whose random ops of the computation are counted by themselves.

    Raises:
      NotApplicable: not all of them have the seeds that the build gave them.
    """
    numbered = seed_rewriting.computation_seed_graph(built)
    if isinstance(numbered, str):
      raise NotApplicable(f'the random ops of the computation cannot be numbered: {numbered}')
    return numbered

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

  @property
  def fixed_size(self) -> str:
    """Why the graph takes inputs of no other size; '' where it can be built for others."""
    return ''

  def at(self, inputs: Any) -> 'Tf1Graph':
    """Returns the side whose graphs are those of inputs of this size: itself, or another.

    Another one is kept until it is asked for a third size, or released.

    Args:
      inputs: a nest of arrays, in the structure of the case's.
    """
    wanted = shapes_of(inputs)
    if wanted == shapes_of(self._inputs):
      return self
    if self._other_size is None or shapes_of(self._other_size._inputs) != wanted:
      self._other_size = Tf1Graph(self._declaration, inputs, self._progress)
      self._other_size.racing = self.racing
    return self._other_size

  def release_other_size(self) -> None:
    """Lets go of the graphs of another size."""
    self._other_size = None

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
    built = self._in_order(self.built_for(mode, training))
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

  def initial_draw(self, variable: str, training: bool) -> InitialDraw:
    """Returns how the initial value of a variable is drawn, by its name.

    Raises:
      NotApplicable: its initializer is not run here.
    """
    built = self.built(training)
    found = next(known for known in built.variables if known.record.name == variable)
    return starts.draw_of(built, found)

  def drawn_start(self, variable: str) -> np.ndarray | None:
    """Returns a value that a variable starts with by chance, the same each time; None for others.

    The port is given it where nothing else fills the variable: it draws other numbers itself.
    """
    if variable not in self._drawn_starts:
      graphs = (self.built(training) for training in self._declaration.training_modes)
      known = ((b, v) for b in graphs for v in b.variables if v.record.name == variable)
      found = next(known, None)
      self._drawn_starts[variable] = None if found is None else starts.drawn_value(*found)
    return self._drawn_starts[variable]

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
      built, gradients = self._with_gradients(run.training)
      return self._in_order(built, gradients), gradients
    built = self.built(run.training)
    if built.draws_in_computation:
      built = self.built_for(randomness.CONSTANT, run.training)
    return self._in_order(built), ()

  def _in_order(self, built: BuiltGraph, gradients: Sequence[GraphGradient] = ()) -> BuiltGraph:
    """Returns a graph that runs in the order which is asked for."""
    if not any(variable.may_change for variable in built.variables):
      return built
    names = [name for g in gradients for name in (g.values, g.indices) if name is not None]
    return self.racing.in_order(
      built, fetches_of(built, names), lambda op: self.source_of(op, built.training)
    )

  def source_of(self, op: str, training: bool) -> SourceLine | None:
    """Returns the user's line of an operation of the graph of a training mode, by name."""
    graph = self.built(training).graph  # a rewritten one does not know who made its operations
    try:
      return user_source(graph.get_operation_by_name(op))
    except KeyError:
      return None

  def inspectable(self, run: side.FilledRun) -> GraphRun:
    """Returns a run of which every tensor can be asked for."""
    if (other := self.at(run.inputs)) is not self:
      return other.inspectable(run)
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

  def without_influence(self, outputs_only: bool = False) -> WithoutInfluence:
    """Returns what of the graphs no compared number, or no output, depends on."""
    graphs = [self.built(mode) for mode in self._declaration.training_modes]
    return without_influence(graphs, outputs_only)

  def effects_of(self, variables: Collection[str]) -> dict[str, Effect]:
    """Returns which of some variables a compared number depends on, in any training mode."""
    found: dict[str, Effect] = {}
    for training in self._declaration.training_modes:
      found = {**effects(self._program(training), variables), **found}
    return found

  def _program(self, training: bool) -> Program:
    return program_of(self.built(training))

  def inputs_read(self, training: bool) -> tuple[str, ...]:
    """Returns the paths of the inputs that outputs or regularization losses depend on."""
    return inputs_read(self.built(training))

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

  def recorded(self) -> RecordedReference | None:
    """Returns what was recorded: nothing, it is run here."""
    return None

  def remarks(self) -> tuple[str, ...]:
    """Returns what readers have to know of the runs since this was last asked for."""
    return ()

  def close(self) -> None:
    """Lets go of the graphs."""
    self._graphs.clear()
    self.release_other_size()


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
    'narrow_bits': built.narrow_bits,
    'gradients': tuple(session_values.gradient_record(gradient, values) for gradient in gradients),
  }
