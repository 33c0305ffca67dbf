"""Losses and training steps of the tf1 side, read back from a recording."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, RecordingError
from tf2verify.recordings.graph_entries import GraphEntry, VariableEntry
from tf2verify.recordings.training_entries import LossesEntry, StepsEntry
from tf2verify.records.observation import SourceLine
from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import (
  ClippingTrial,
  LossObservation,
  TrainingRun,
)
from tf2verify.reference import nests
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import StepGraph
from tf2verify.sides.graphs.variables.effects import Program
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.build import RecordedBuild, lines_of, parsed, variables_of
from tf2verify.sides.recorded.loss import RecordedLossFunction
from tf2verify.sides.recorded.races import RecordedRaces
from tf2verify.sides.recorded.recording import same_arrays
from tf2verify.sides.recorded.steps import RecordedSteps
from tf2verify.sides.recorded.train_graph import step_fetches, train_graph
from tf2verify.sides.tf1 import checkpoint as tf1_checkpoint
from tf2verify.sides.tf1.graphs.build import BuiltGraph
from tf2verify.sides.tf1.graphs.effects import recorded_program
from tf2verify.sides.tf1.graphs.loss_graph import LossGraph
from tf2verify.sides.tf1.graphs.racing import Fetches, Racing
from tf2verify.sides.tf1.graphs.train_graph import TrainGraph
from tf2verify.sides.tf1.reference import RecordedReference
from tf2verify.sides.tf1.reference_steps import PreparedSteps, ReferenceSteps
from tf2verify.sides.tf1.sessions import session_values
from tf2verify.sides.tf1.training_runs import TrainingRuns

NO_LOSSES = (
  'the recording has no losses: record with --loss MODULE:FUNCTION (and --labels, where it takes '
  'some)'
)
NO_STEPS = (
  'the recording has no training steps: record with --optimizer MODULE:FUNCTION or --train_op '
  'MODULE:FUNCTION'
)
_REASONS = {
  'tf1_loss': NO_LOSSES,
  'tf2_loss': 'the recording has a loss, and the case declares no tf2_loss',
  'make_tf1_optimizer': NO_STEPS,
}
_DEFAULT_OF_UPDATES = True


@final
class RecordedTraining:
  """Gives the losses and training steps that TensorFlow 1.x recorded.

  Losses of other runs than the recorded one come from the recorded graph, run here.
  """

  def __init__(
    self,
    declaration: side.Declaration,
    graph: RecordedReference,
    labels: Any,
    progress: side.Progress,
  ) -> None:
    """Takes a case.

    Args:
      declaration: the case.
      graph: its recording, and what is remarked of it.
      labels: the nest of arrays to feed; None without.
      progress: called with one line of text before every long step.
    """
    self._declaration = declaration
    self._progress = progress
    self._graph = graph
    self._recording = graph.recording
    self._build: RecordedBuild | None = None
    self.racing = Racing(recorded=True)
    self._races = RecordedRaces(graph.recording, self.racing)
    self._runs = TrainingRuns(labels, self.racing, self._source_of)

  def reason_without(self, hook: str) -> str:
    """Returns why the recording has nothing of a hook, and how to record that."""
    return _REASONS.get(hook, '')

  def observe_losses(self, run: side.RunSpec, again: bool = False) -> LossObservation:
    """Returns the recorded losses; for another run, those of the recorded graph run here.

    Raises:
      NotApplicable: none were recorded.
    """
    entry = self._losses_entry()
    if not self._is_recorded(run, entry.training, entry.run):
      self._graph.remark(
        f'losses, {run.description}, were not recorded: the recorded graph was run here, by '
        f'TensorFlow {tf.__version__}'
      )
      return self._observe_here(run, entry)
    if self._races.are_reordered(entry.graph, Fetches(frozenset(_loss_fetches(entry)))):
      return self._observe_here(run, entry)
    self._graph.check_fill(run)
    found = self._recording.losses(
      moved=run.perturber is not None, again=again and run.perturber is None
    )
    return self._changing() if found is None else found

  def loss_function(self, outputs: Any, labels: Any) -> RecordedLossFunction:
    """Returns what runs the recorded loss on arrays, given the nests that they are of."""
    del labels  # the recorded graphs have their own placeholders
    return RecordedLossFunction(self._recording, outputs, self._graph.remark)

  def computed_from_slots(self) -> frozenset[str]:
    """Returns nothing: the recorded steps have started from the recorded values."""
    return frozenset()

  def trained_variables(self) -> frozenset[str] | None:
    """Returns the variables that the recorded train op moves by gradients; None if not known."""
    entry = self._recording.manifest.steps
    return None if entry is None or entry.trained is None else frozenset(entry.trained)

  def prepare_steps(self, run: side.RunSpec, count: int) -> PreparedSteps:
    """Returns the recorded training steps.

    Raises:
      NotApplicable: none were recorded.
      RecordingError: fewer were recorded than are wanted, or those of another run.
    """
    entry = self._steps_entry(run, count)
    losses = self._losses_entry()
    if self._races.are_reordered(losses.graph, step_fetches(entry, losses.total_loss)):
      recorded = self._recording.steps()
      return PreparedSteps(
        lambda perturber, _: self._begin_here(run, entry, perturber, recorded), count
      )
    self._graph.check_fill(run)
    self._progress(f'reading {count} recorded training steps, {entry.run}')

    def begin(perturber: Perturber | None, again: bool) -> RecordedSteps:
      moved = perturber is not None
      found = self._recording.steps(moved=moved, again=again and not moved)
      assert found is not None, 'there is an entry'
      return RecordedSteps(
        dataclasses.replace(found, run=run.description),
        lambda factors: self._try_clipping(run, entry, factors),
      )

    return PreparedSteps(begin, count, lambda: self._begin_here(run, entry))

  def inspectable_losses(self, run: side.RunSpec) -> GraphRun:
    """Returns a run of the recorded graph of model and losses, here.

    Raises:
      NotApplicable: the graph is not run here.
    """
    entry = self._losses_entry()
    built = self._imported(entry).built
    self._check_can_run(_loss_fetches(entry), built, ())
    lines = self._races.source_of
    return self._runs.inspectable_losses(
      _loss_graph(entry, built), run, lambda op: lines(entry.graph, op.name)
    )

  def inspectable_step(self, run: side.RunSpec, number: int, names: Mapping[str, str]) -> StepGraph:
    """Takes the steps before one with the recorded graph, here, and returns that one as a graph.

    Raises:
      NotApplicable: the graph is not run here.
    """
    losses, train = self._graphs(self._steps_entry(run, number))
    graph = losses.built.graph
    return self._runs.inspectable_step(
      losses, train, run, number, names, lambda op: self._source_of(graph, op)
    )

  def save(self, run: side.RunSpec, count: int, prefix: str) -> str:
    """Writes recorded values, after recorded steps, as a name-based checkpoint.

    Raises:
      NotApplicable: no steps were recorded, or their values only in part.
    """
    entry = self._recording.manifest.steps
    found = self._recording.steps()
    if entry is None or found is None:
      raise NotApplicable(NO_STEPS)
    taken = found.steps[:count]
    last = taken[-1] if taken else None
    values = {
      record.name: record.value for record in (last.variables if last else found.values_before)
    }
    values.update({slot.name: slot.value for slot in (last.slots if last else found.slots_before)})
    sampled = [name for name, value in values.items() if isinstance(value, SampledArray)]
    if sampled:
      self._graph.remark(
        f'{len(sampled)} variables and slots after the recorded steps were stored by samples only, '
        'so the checkpoint has the values that the fill gives, and no slots'
      )
      raise NotApplicable('the values after the recorded steps are not known as a whole')
    if entry.global_step is not None and entry.global_step not in values:
      counted = last.global_step if last else 0
      values[entry.global_step] = np.asarray(counted, self._dtype_of(entry, entry.global_step))
    self._graph.remark(
      f'the checkpoint was written here, of the values after {len(taken)} recorded training steps'
    )
    os.makedirs(os.path.dirname(prefix) or '.', exist_ok=True)
    return tf1_checkpoint.write(prefix, {n: v for n, v in values.items() if v is not None})

  def close(self) -> None:
    """Lets go of the graph."""
    self._build = None

  def program(self) -> Program | None:
    """Returns the recorded graph of losses and training; None where none was recorded."""
    recording, losses = self._recording, self._recording.manifest.losses
    if losses is None:
      return None
    steps = recording.manifest.steps
    return recorded_program(
      losses.graph,
      parsed(recording.graph_def(losses.graph), recording.path),
      lines_of(recording, losses.graph).get,
      ((losses.loss, 'the loss'), (losses.total_loss, 'the total loss')),
      () if steps is None else (steps.train_op,),
    )

  def _dtype_of(self, entry: StepsEntry, name: str) -> Any:
    dtypes = [variable.dtype for variable in entry.added if variable.name == name]
    return np.dtype(dtypes[0] if dtypes else np.int64)

  def _losses_entry(self) -> LossesEntry:
    entry = self._recording.manifest.losses
    if entry is None:
      raise NotApplicable(NO_LOSSES)
    return entry

  def _is_recorded(self, run: side.RunSpec, training: bool, description: str) -> bool:
    recorded = self._recording.varied_inputs
    same = run.training is training and run.description == description
    return same and same_arrays(run.inputs, recorded)

  def _steps_entry(self, run: side.RunSpec, count: int) -> StepsEntry:
    """Returns the entry of the steps, if they are those that are wanted."""
    entry = self._recording.manifest.steps
    path = self._recording.path
    if entry is None:
      raise NotApplicable(NO_STEPS)
    if not self._is_recorded(run, entry.training, entry.run):
      raise RecordingError(
        f'{path} has training steps of the run {entry.run!r}, not of {run.description!r} with '
        'these inputs: record again'
      )
    losses, declares = self._losses_entry(), self._declaration.declares
    default = not (losses.own_loss or losses.own_total_loss or declares('tf2_train_step'))
    if default and declares('tf2_loss'):
      raise RecordingError(
        f'{path} has training steps of the default loss, since it was recorded without --loss, and '
        'the case declares tf2_loss: record with --loss, or leave tf2_loss out of the case'
      )
    if count > len(entry.steps):
      raise RecordingError(
        f'training_steps_to_take is {count}, and {path} has {len(entry.steps)} steps: record with '
        f'--steps {count}, or set training_steps_to_take = {len(entry.steps)}'
      )
    wanted, recorded = self._declaration.run_update_ops, entry.run_update_ops
    if recorded is not None and wanted is not recorded and wanted is not _DEFAULT_OF_UPDATES:
      raise RecordingError(
        f'run_update_ops of the case is {wanted}, and {path} was recorded with {recorded}: record '
        f'with --run_update_ops {str(wanted).lower()}, or leave it out of the case'
      )
    return entry

  def _changing(self) -> LossObservation:
    """Returns the losses of a run that did not repeat itself: no number that is known."""
    found = self._recording.losses()
    assert found is not None, 'there is an entry'
    total = found.regularization_total
    return dataclasses.replace(
      found,
      loss=np.full_like(found.loss, np.nan),
      total_loss=np.full_like(found.total_loss, np.nan),
      regularization_total=None if total is None else np.full_like(total, np.nan),
    )

  def _source_of(self, graph: tf.Graph, op: str) -> SourceLine | None:
    """Returns the line of the reference's code that made an operation."""
    del graph  # there is one
    return self._races.source_of(self._losses_entry().graph, op)

  def _begin_here(
    self,
    run: side.RunSpec,
    entry: StepsEntry,
    perturber: Perturber | None = None,
    recorded: TrainingRun | None = None,
  ) -> ReferenceSteps:
    """Returns the same steps, taken by this TensorFlow with the recorded graph.

    Args:
      run: inputs and values.
      entry: of the steps.
      perturber: moves them; None leaves them.
      recorded: what is known of optimizers and random operations; None to leave that out.

    Raises:
      NotApplicable: the graph is not run here.
    """
    graph, train = self._graphs(entry)
    if recorded is not None:
      train = dataclasses.replace(
        train, optimizers=recorded.optimizers, random_draws=recorded.random_draws
      )
    self._progress(f'taking training steps with the recorded graph, {entry.run}')
    return self._runs.begin(graph, train, run, perturber)

  def _graphs(self, entry: StepsEntry) -> tuple[LossGraph, TrainGraph]:
    """Returns the recorded graph with the train op, in the order which is asked for."""
    losses = self._losses_entry()
    built = self._imported(losses).built
    added = variables_of(_with_variables(losses.graph, entry.added))
    train = train_graph(entry, built, added)
    self._check_can_run([train.train_op, losses.total_loss], built, entry.added)
    return self._runs.steps_in_order(_loss_graph(losses, built), train), train

  def _try_clipping(
    self, run: side.RunSpec, entry: StepsEntry, factors: Mapping[str, float] | None
  ) -> ClippingTrial | None:
    """Runs the recorded graph of the train op on far larger gradients, by this TensorFlow."""
    if entry.gradients and entry.gradients == entry.applied_gradients:
      return None
    with self._begin_here(run, entry) as steps:
      return steps.try_clipping(factors)

  def _imported(self, entry: LossesEntry) -> RecordedBuild:
    if self._build is None:
      self._progress('importing the recorded graph with losses')
      self._build = RecordedBuild(self._recording, entry.graph, mode='')
    return self._build

  def _check_can_run(
    self, names: Sequence[str], built: BuiltGraph, added: Sequence[VariableEntry]
  ) -> None:
    assert self._build is not None, 'it is the graph that was built'
    initializers = [*session_values.initializers(built), *(v.initializer for v in added)]
    refused = self._build.stand_ins_behind([*names, *initializers, *built.table_initializers])
    if refused:
      raise NotApplicable(
        f'the recorded graph is not run here: {graph_safety.refusal_text(refused)}'
      )

  def _observe_here(self, run: side.RunSpec, entry: LossesEntry) -> LossObservation:
    """Runs the recorded graph of model and losses, by this TensorFlow."""
    built = self._imported(entry).built
    outputs = {
      '' if path == nests.THE_OUTPUT else path: name
      for path, name in built.outputs
      if isinstance(name, str)
    }
    steps = self._recording.manifest.steps
    added = () if steps is None else steps.added
    self._check_can_run(_loss_fetches(entry), built, added)
    variables = () if steps is None else variables_of(_with_variables(entry.graph, added))
    nest = self._recording.nest(entry.output_nest)
    return self._runs.observe(_loss_graph(entry, built), run, outputs, nest, variables)


def _loss_graph(entry: LossesEntry, built: BuiltGraph) -> LossGraph:
  return LossGraph(built, entry.label_placeholders, entry.loss, entry.total_loss)


def _with_variables(entry: GraphEntry, variables: tuple[VariableEntry, ...]) -> GraphEntry:
  return dataclasses.replace(entry, variables=variables)


def _loss_fetches(entry: LossesEntry) -> list[str]:
  """Returns what is fetched where losses are looked at."""
  names = [entry.loss, entry.total_loss]
  names += [name for _, name in entry.graph.outputs if name is not None]
  return names + [name for _, name in entry.graph.regularization_losses]
