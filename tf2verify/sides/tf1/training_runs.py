"""Runs of the graph of losses and train op, whether it was built here or recorded."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine, TensorRecord
from tf2verify.records.training import LossObservation
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.graphs.reading import Target
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import StepGraph
from tf2verify.sides.losses import functional, loss_function
from tf2verify.sides.tf1.graphs.build import GraphVariable
from tf2verify.sides.tf1.graphs.loss_graph import LossGraph
from tf2verify.sides.tf1.graphs.racing import Fetches, Racing
from tf2verify.sides.tf1.graphs.step_graph import step_graph
from tf2verify.sides.tf1.graphs.train_graph import TrainGraph
from tf2verify.sides.tf1.sessions import session_values
from tf2verify.sides.tf1.sessions.reference_run import graph_run_of
from tf2verify.sides.tf1.sessions.session_steps import SessionSteps


@final
class TrainingRuns:
  """Runs losses and training steps; every run has a session of its own."""

  def __init__(
    self,
    labels: Any,
    racing: Racing,
    source_of: Callable[[tf.Graph, str], SourceLine | None],
  ) -> None:
    """Takes what all runs have in common.

    Args:
      labels: the nest of arrays to feed; None without.
      racing: in which order operations run that the graph does not order.
      source_of: gives the user's line of an operation of a graph, by its name.
    """
    self._labels = labels
    self._racing = racing
    self._source_of = source_of

  def observe(
    self,
    losses: LossGraph,
    run: side.RunSpec,
    outputs: Mapping[str, Any],
    nest: Any,
    added: Sequence[GraphVariable] = (),
  ) -> LossObservation:
    """Runs model and losses in a fresh session from given values.

    Args:
      losses: the graph.
      run: inputs and values, and what moves them.
      outputs: what to fetch for the outputs, by their paths.
      nest: that they are leaves of.
      added: variables besides the model's, of losses and train op, that what is run may read.
    """
    built = losses.built
    names = [*outputs.values(), losses.loss, losses.total_loss]
    names += [name for _, name in (*(losses.parts or ()), *built.regularization_losses)]
    if all(isinstance(name, str) for name in names):
      built = self._in_order(losses, Fetches(frozenset(names))).built
    with open_session(built.graph) as session:
      session_values.fetch(session, built.table_initializers)
      session_values.assign(session, built.variables, run)
      if run.perturber is not None:
        session_values.move(session, built.variables, run.perturber)
      session_values.fetch(session, [variable.initializer for variable in added])
      values = session_values.fetch(session, names, self._feeds(losses, run, run.perturber))
    by_path = dict(zip(outputs, values, strict=False))
    loss, total, *further = values[len(outputs) :]
    places = [place for place, _ in losses.parts or ()]
    regularization = further[len(places) :]
    return LossObservation(
      side.TF1,
      run.description,
      nests.map_leaves(lambda path, leaf: by_path.get(path, leaf), nest),
      np.asarray(loss),
      np.asarray(total),
      functional.total(regularization[::-1]),
      tuple(map(TensorRecord, places, map(np.asarray, further))),
    )

  def begin(
    self,
    losses: LossGraph,
    train: TrainGraph | None,
    run: side.RunSpec,
    perturber: Perturber | None,
  ) -> SessionSteps:
    """Returns a session before its first step.

    Args:
      losses: the graph, in the order which is asked for.
      train: what its train op has added; None to take no step.
      run: inputs and values.
      perturber: moves them; None leaves them.
    """
    steps = SessionSteps(losses, train, self._feeds(losses, run, perturber), run.description)
    try:
      steps.start(run, perturber)
    except BaseException:
      steps.close()
      raise
    return steps

  def inspectable_losses(
    self,
    losses: LossGraph,
    run: side.RunSpec,
    line_of: Callable[[tf.Operation], SourceLine | None],
  ) -> GraphRun:
    """Returns a run of model and losses of which every tensor can be asked for.

    Args:
      losses: the graph.
      run: inputs and values.
      line_of: gives the user's line of an operation.
    """
    found = [('loss', losses.loss), (loss_function.TOTAL, losses.total_loss)]
    found += [(loss_function.part_name(place), name) for place, name in losses.parts or ()]
    targets = [Target(loss_function.target_in_model(what), (name,)) for what, name in found]
    labels = self._named_labels(losses)
    made = tuple(variable.initializer for variable in losses.added)
    start = (*losses.built.table_initializers, *made)
    built = dataclasses.replace(losses.built, table_initializers=start) if made else losses.built
    return graph_run_of(run, built, (), line_of, labels=labels, targets=targets)

  def inspectable_step(
    self,
    losses: LossGraph,
    train: TrainGraph,
    run: side.RunSpec,
    number: int,
    names: Mapping[str, str],
    line_of: Callable[[str], SourceLine | None],
  ) -> StepGraph:
    """Takes the steps before one, and returns that one as a graph.

    Args:
      losses: the graph, in the order which is asked for.
      train: what its train op has added.
      run: inputs and values.
      number: of the step, from 1.
      names: what both sides call a slot, by its own name.
      line_of: gives the user's line of an operation, by its name.
    """
    variables = (*losses.built.variables, *train.added)
    with self.begin(losses, train, run, None) as steps:
      for _ in range(number - 1):
        steps.update()
      values = session_values.copy_all(steps.session, variables)
      feeds = steps.fed()
    labels = {name: label for name, (label, _) in self._named_labels(losses).items()}
    before = list(zip(variables, values, strict=True))
    return step_graph(losses, train, before, feeds, labels, names, line_of)

  def steps_in_order(self, losses: LossGraph, train: TrainGraph) -> LossGraph:
    """Returns the graph so that a training step is in the order which is asked for."""
    return self._in_order(losses, train.fetches(losses.total_loss))

  def _in_order(self, losses: LossGraph, fetches: Fetches) -> LossGraph:
    graph = losses.built.graph
    built = self._racing.in_order(losses.built, fetches, lambda op: self._source_of(graph, op))
    return losses if built is losses.built else dataclasses.replace(losses, built=built)

  def _feeds(
    self, losses: LossGraph, run: side.RunSpec, perturber: Perturber | None
  ) -> dict[str, np.ndarray]:
    feeds = session_values.feeds(losses.built, side.moved_inputs(run.inputs, perturber))
    named = self._named_labels(losses)
    return {**feeds, **{name: value for name, (_, value) in named.items()}}

  def _named_labels(self, losses: LossGraph) -> dict[str, tuple[str, np.ndarray]]:
    """Returns labels by their placeholders, each with what both sides call it."""
    if self._labels is None:
      return {}
    leaves = nests.leaves_by_path(self._labels)
    return {
      name: (loss_function.label_name(path), leaves[path])
      for path, name in losses.label_placeholders
    }
