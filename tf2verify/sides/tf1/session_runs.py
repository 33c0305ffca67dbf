"""Runs of the reference's graphs in fresh sessions, whether they were built here or recorded."""

from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np

from tf2verify.records.observation import (
  Observation,
  RegularizationLoss,
  SourceLine,
  TensorRecord,
)
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.losses import functional
from tf2verify.sides.process import randomness
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.graphs.racing import Racing, fetches_of
from tf2verify.sides.tf1.reference import PreparedRuns, SeededRun
from tf2verify.sides.tf1.sessions import session_values


class Graphs(Protocol):
  """Has the graphs of a reference: makes them, or reads them from a recording."""

  def built(self, training: bool) -> BuiltGraph:
    """Returns the graph of a training mode, in which random ops are numbered."""

  def built_for(self, mode: str, training: bool) -> BuiltGraph:
    """Returns the graph to run in a randomness mode, which may be a rewritten one."""

  def with_gradients(self, training: bool) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    """Returns the graph whose random ops are aligned, with the gradients of the loss.

    Raises:
      NotApplicable: there are none.
    """

  def source_of(self, op: str, training: bool) -> SourceLine | None:
    """Returns the user's line of an operation of the graph of a training mode, by name."""


@final
class SessionRuns:
  """Runs some graphs; every run has a session of its own."""

  def __init__(self, graphs: Graphs, inputs: Any, racing: Racing, progress: side.Progress) -> None:
    """Takes what to run.

    Args:
      graphs: has them.
      inputs: the nest of arrays to feed to seeded runs.
      racing: in which order operations run that a graph does not order.
      progress: called with one line of text before every run.
    """
    self._graphs = graphs
    self._inputs = inputs
    self._racing = racing
    self._progress = progress

  def seeded(self, mode: str, training: bool) -> SeededRun:
    """Builds what a seeded run needs and returns the run itself.

    Building turns process globals, so it happens here and now; the run turns
    none and may go on in a thread of its own, and be repeated.
    """
    built = self._in_order(self._graphs.built_for(mode, training))
    run = f'{side.training_name(training)}, {mode}'

    def observe(perturber: Perturber | None = None, again: bool = False) -> Observation:
      del again  # every run is one
      self._progress(f'running the TF1 graph, {run}{_moved_text(perturber)}')
      with open_session(built.graph) as session:
        session_values.fetch(
          session, [*session_values.initializers(built), *built.table_initializers]
        )
        initial = session_values.read_variables(session, built.variables)
        if perturber is not None:
          session_values.move(session, built.variables, perturber)
        fetched = _fetch(session, built, side.moved_inputs(self._inputs, perturber), ())
        return Observation(
          side=side.TF1,
          run=run,
          initial_values=initial,
          state_after=session_values.read_again(session, built.variables, initial),
          random_draws=built.random_draws,
          **fetched,
        )

    return observe

  def filled(self, runs: Sequence[side.RunSpec]) -> PreparedRuns:
    """Builds what filled runs need and returns the runs themselves, as `seeded` does."""
    prepared = runs
    built, gradients = self.graph_for(runs[0])

    def observe_all(runs: Sequence[side.RunSpec]) -> list[Observation]:
      observations = []
      with open_session(built.graph) as session:
        session_values.fetch(session, built.table_initializers)
        for run in runs:
          self._progress(f'running the TF1 graph, {run.description}{_moved_text(run.perturber)}')
          session_values.assign(session, built.variables, run)
          if run.perturber is not None:
            session_values.move(session, built.variables, run.perturber)
          wanted = [g for g in gradients if run.wants_gradient_of(g.variable)]
          fetched = _fetch(session, built, side.moved_inputs(run.inputs, run.perturber), wanted)
          observations.append(
            Observation(
              side=side.TF1,
              run=run.description,
              random_draws=built.random_draws,
              **fetched,
            )
          )
      return observations

    def observe(others: Sequence[side.RunSpec] | None = None) -> tuple[Observation, ...]:
      runs = prepared if others is None else others
      if built.draws_in_computation:
        # A second run in one session would draw other numbers than the first.
        return tuple(observation for run in runs for observation in observe_all([run]))
      return tuple(observe_all(runs))

    return observe

  def graph_for(self, run: side.RunSpec) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    """Returns the graph for a filled run, and the gradients that are asked for."""
    if run.gradients:
      built, gradients = self._graphs.with_gradients(run.training)
      return self._in_order(built, gradients), gradients
    built = self._graphs.built(run.training)
    if built.draws_in_computation:
      built = self._graphs.built_for(randomness.CONSTANT, run.training)
    return self._in_order(built), ()

  def _in_order(self, built: BuiltGraph, gradients: Sequence[GraphGradient] = ()) -> BuiltGraph:
    """Returns a graph that runs in the order which is asked for."""
    if not any(variable.may_change for variable in built.variables):
      return built
    names = [name for gradient in gradients for name in gradient.tensors]
    return self._racing.in_order(
      built, fetches_of(built, names), lambda op: self._graphs.source_of(op, built.training)
    )


def _moved_text(perturber: Perturber | None) -> str:
  return '' if perturber is None else f', perturbed by rounding ({perturber.number + 1})'


def _fetch(
  session: Any, built: BuiltGraph, inputs: Any, gradients: Sequence[GraphGradient]
) -> dict[str, Any]:
  """Runs the outputs, losses, update ops and gradients together, as one training step would."""
  feeds = session_values.feeds(built, inputs)
  names = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  names += [tensor for _, tensor in built.regularization_losses]
  for gradient in gradients:
    names += gradient.tensors
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
