"""The tf1 side read back from a recording."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, RecordingError
from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.recordings.run_entries import FilledEntry
from tf2verify.records.observation import Observation, SourceLine, TensorRecord
from tf2verify.records.recorded_here import RecordedGraphHere
from tf2verify.records.sampled import SampledArray
from tf2verify.reference.perturbation import Mover
from tf2verify.sides import side
from tf2verify.sides.fill import ConstantFill, Fill, RecordedFill
from tf2verify.sides.graphs.effects import Program
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.graphs.run import GraphRun, open_session
from tf2verify.sides.process import randomness
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.build import RecordedBuild, lines_of, parsed, variables_of
from tf2verify.sides.recorded.given_values import other_value
from tf2verify.sides.recorded.races import RecordedRaces
from tf2verify.sides.recorded.recording import same_arrays
from tf2verify.sides.recorded.redrawn_fill import RedrawnFill
from tf2verify.sides.recorded.replay import Replay
from tf2verify.sides.tf1 import influence, session_values
from tf2verify.sides.tf1.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.effects import recorded_program
from tf2verify.sides.tf1.graph import Tf1Graph
from tf2verify.sides.tf1.racing import Racing
from tf2verify.sides.tf1.reference import FilledRuns, GraphHere, SeededRun
from tf2verify.sides.tf1.reference_run import graph_run_of


class RecordedGraph(Tf1Graph):
  """Gives the numbers that TensorFlow 1.x recorded, and runs the recorded graph for others.

  What the ladder asks for was recorded, but for odd runs of later stages. The graph is
  imported only where it is to be run or read.
  """

  def __init__(
    self,
    declaration: side.Declaration,
    recording: Recording,
    inputs: Any,
    progress: side.Progress,
    has_own_loss: bool = False,
  ) -> None:
    """Takes a recording that fits its case.

    Args:
      declaration: the case.
      recording: verified.
      inputs: the nest of arrays to feed.
      progress: called with one line of text before every long step.
      has_own_loss: whether the case differentiates another loss than the recorded one.
    """
    super().__init__(declaration, inputs, progress)
    self.recording = recording
    self._has_own_loss = has_own_loss
    self._builds: dict[tuple[str, bool], RecordedBuild] = {}
    self._remarks: list[str] = []
    self._checked_fills: dict[str, str] = {}
    # Once the graph had to be run here, it is run ahead, beside the port, the next times.
    self._kernels_differ = False
    self.racing = Racing(recorded=True)
    self._races = RecordedRaces(recording, self.racing)
    self._ahead: dict[tuple[str, bool], Observation] = {}

  def recorded(self) -> 'RecordedGraph':
    return self

  def remark(self, text: str) -> None:
    """Keeps what the reader of a report has to know, for the stage that is running."""
    if text not in self._remarks:
      self._remarks.append(text)

  def remarks(self) -> tuple[str, ...]:
    """Returns the remarks since this was last asked for."""
    found, self._remarks = tuple(self._remarks), []
    return found

  def entry(self, training: bool) -> GraphEntry:
    """Returns what the recording says of the graph of a training mode."""
    for entry in self.recording.manifest.graphs:
      if entry.training is training:
        return entry
    raise RecordingError(
      f'{self.recording.path} has no graph of {side.training_name(training)} mode: record with '
      '--training'
    )

  def build(self, training: bool, mode: str = randomness.NUM_RANDOM_OPS) -> RecordedBuild:
    """Returns the imported graph of a training mode, for a randomness mode."""
    key = (mode, training)
    if key not in self._builds:
      self._progress(f'importing the recorded graph, {side.training_name(training)}, {mode}')
      self._builds[key] = RecordedBuild(self.recording, self.entry(training), mode)
    return self._builds[key]

  def built(self, training: bool, mode: str = randomness.NUM_RANDOM_OPS) -> BuiltGraph:
    """Returns the graph of a training mode, for a randomness mode."""
    return self.build(training, mode).built

  def built_for(self, mode: str, training: bool) -> BuiltGraph:
    """Returns the graph for a randomness mode."""
    numbered = mode == randomness.COMPUTATION
    return self._numbered(self.built(training)) if numbered else self.built(training, mode)

  def initial_draw(self, variable: str, training: bool) -> InitialDraw:
    """Returns how the recorded graph draws an initial value, by running its initializer here."""
    built = self.built(training)
    only = dataclasses.replace(built, outputs=(), update_ops=(), regularization_losses=())
    self._check_can_run(self.build(training), only, ())
    return super().initial_draw(variable, training)

  def drawn_start(self, variable: str) -> np.ndarray | None:
    """Returns None: a recorded run had the value that its own initializer drew."""
    del variable
    return None

  def inventory(self) -> side.Inventory:
    """Returns the recorded variables, of the training modes of the case."""
    if self._inventory is None:
      by_training = []
      records = {}
      for training in self._declaration.training_modes:
        owned = [v.record for v in variables_of(self.entry(training)) if not v.local]
        records.update({r.name: r for r in owned if r.name not in records})
        by_training.append((training, tuple(record.name for record in owned)))
      self._inventory = side.Inventory(
        tuple(records.values()), variables_by_training=tuple(by_training)
      )
    return self._inventory

  def without_influence(self, outputs_only: bool = False) -> influence.WithoutInfluence:
    """Returns what no recorded number depends on; by the recorded graphs, not imported."""
    found = []
    for training in self._declaration.training_modes:
      entry = self.entry(training)
      graph_def = parsed(self.recording.graph_def(entry), self.recording.path)
      found.append(influence.recorded_reach(entry, graph_def, outputs_only))
    return influence.combined(found)

  def _program(self, training: bool) -> Program:
    entry = self.entry(training)
    graph_def = parsed(self.recording.graph_def(entry), self.recording.path)
    return recorded_program(entry, graph_def, lines_of(self.recording, entry).get)

  def inputs_read(self, training: bool) -> tuple[str, ...]:
    """Returns the paths of the inputs that outputs or losses depend on; by the recorded graph."""
    entry = self.entry(training)
    graph_def = parsed(self.recording.graph_def(entry), self.recording.path)
    return influence.recorded_inputs_read(entry, graph_def)

  @property
  def fixed_size(self) -> str:
    """Why the graph takes inputs of no other size: its builder is not here."""
    return 'a recorded graph has the sizes of its recording'

  def at(self, inputs: Any) -> Tf1Graph:
    """Returns itself: there are no graphs of other sizes."""
    del inputs
    return self

  def prepare_seeded(self, mode: str, training: bool) -> SeededRun:
    """Returns a run that yields what was recorded."""
    entry = self.recording.seeded(mode, training)
    if entry is None:
      self._not_recorded(f'{side.training_name(training)}, {mode}')
      return self._run_seeded(mode, training)
    if self._races.is_model_reordered(self.entry(training)):
      return self._run_seeded(mode, training)
    replay = Replay(self.recording, entry, lambda mover, _: self._run_seeded(mode, training)(mover))
    ahead = self._run_seeded(mode, training) if self._kernels_differ else None

    def observe(mover: Mover | None = None, again: bool = False) -> Observation:
      if ahead is not None and (mode, training) not in self._ahead:
        self._ahead[mode, training] = ahead()
      return replay(mover, again)

    return observe

  def _run_seeded(self, mode: str, training: bool) -> SeededRun:
    aligned = randomness.NUM_RANDOM_OPS if mode == randomness.COMPUTATION else mode
    build = self.build(training, aligned)
    self._check_can_run(build, build.built, ())
    return super().prepare_seeded(mode, training)

  def prepare_filled(self, runs: Sequence[side.FilledRun]) -> FilledRuns:
    """Returns the runs: what was recorded, or the recorded graph run here."""
    replays = [self._replay(run) for run in runs]
    unknown = [run for run, replay in zip(runs, replays, strict=True) if replay is None]
    run_others = None
    if unknown:
      run_others = self._run_filled(unknown[0])
      for run in unknown if self.racing.replays else ():
        self._not_recorded(run.description)

    def replay_of(run: side.FilledRun) -> Replay | None:
      # Mostly one of those that were prepared, moved: its inputs are known.
      for one, replay in zip(runs, replays, strict=True):
        same = run.inputs is one.inputs and run.fill is one.fill
        if same and (run.training, run.gradients) == (one.training, one.gradients):
          return replay
      return self._replay(run)

    def observe(others: Sequence[side.FilledRun] | None = None) -> tuple[Observation, ...]:
      observations: list[Observation] = []
      for run in runs if others is None else others:
        replay = replay_of(run)
        if replay is None:
          observations += (run_others or self._run_filled(run))([run])
        else:
          observations.append(self._replayed(replay, run, others is not None))
      return tuple(observations)

    return observe

  def _replayed(self, replay: Replay, run: side.FilledRun, again: bool) -> Observation:
    self.check_fill(run)
    found = replay(run.mover, again, run.gradients_of)
    wanted = tuple(g for g in found.gradients if run.wants_gradient_of(g.name))
    return dataclasses.replace(found, run=run.description, gradients=wanted)

  def _replay(self, run: side.FilledRun) -> Replay | None:
    entry = self._recorded(run)
    if entry is None or self._races.is_model_reordered(self.entry(run.training), run.gradients):
      return None

    def run_here(mover: Mover | None, gradients_of: frozenset[str] | None) -> Observation:
      here = dataclasses.replace(run, mover=mover, gradients_of=gradients_of)
      return self._run_filled(here)([here])[0]

    return Replay(self.recording, entry, run_here)

  def _run_filled(self, run: side.FilledRun) -> FilledRuns:
    """Returns runs of the graph of this one, of the same training mode, here."""
    built, gradients = self._graph_for(run)
    self._check_can_run(self.build(built.training, built.mode), built, gradients)
    return super().prepare_filled([run])

  def _recorded(self, run: side.FilledRun) -> FilledEntry | None:
    """Returns the recorded run that this one is; None where there is none."""
    if run.gradients and self._has_own_loss:
      raise NotApplicable(
        'the case overrides loss, and the recorded gradients are those of the default loss: leave '
        'loss out of a case with tf1_recording'
      )
    for kind, inputs in (
      ('varied', self.recording.varied_inputs),
      ('given', self.recording.inputs),
    ):
      entry = self.recording.filled(run.training, run.fill.description, kind, run.gradients)
      if entry is not None and same_arrays(run.inputs, inputs):
        return entry
    return None

  def check_fill(self, run: side.FilledRun) -> None:
    """Raises `RecordingError` where a fill gives other values than were recorded."""
    fill = run.fill
    if isinstance(fill, ConstantFill):
      return  # its description says all
    if fill.description not in self._checked_fills:
      self._checked_fills[fill.description] = other_value(run, self.inventory(), self.recording)
    if self._checked_fills[fill.description]:
      raise RecordingError(self._checked_fills[fill.description])

  def source_of(self, op: str, training: bool) -> SourceLine | None:
    """Returns the line that made an operation."""
    return self._races.source_of(self.entry(training), op)

  def _not_recorded(self, run: str) -> None:
    self.remark(
      f'{run} of this kind was not recorded: the recorded graph was run here, by TensorFlow '
      f'{tf.__version__}'
    )

  def _check_can_run(
    self,
    build: RecordedBuild,
    built: BuiltGraph,
    gradients: Sequence[GraphGradient],
    known: Mapping[str, np.ndarray] | None = None,
  ) -> None:
    """Raises `NotApplicable` where something that is not run would have to be.

    Args:
      build: the imported graph.
      built: what of it is to be run.
      gradients: likewise.
      known: values of tensors that need not be computed, by name.
    """
    names = [*session_values.initializers(built), *built.table_initializers, *built.update_ops]
    names += [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
    names += [tensor for _, tensor in built.regularization_losses]
    for gradient in gradients:
      names += [name for name in (gradient.values, gradient.indices) if name is not None]
    refused = [op for op in build.stand_ins_behind(names) if not build.is_given(op, known or {})]
    if refused:
      raise NotApplicable(
        f'the recorded graph is not run here: {graph_safety.refusal_text(refused)}'
      )

  def _with_gradients(self, training: bool) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    entry = self.entry(training)
    if not entry.gradients:
      raise NotApplicable(
        'the recording has no gradients: no output is floating, so the default loss has nothing '
        'to sum, or nothing in it is trainable'
      )
    draws = any(draw.variable is None for draw in entry.random_draws)
    mode = randomness.CONSTANT if draws else randomness.NUM_RANDOM_OPS
    build = self.build(training, mode)
    return build.built, build.gradients

  def inspectable(self, run: side.FilledRun) -> GraphRun:
    """Returns a run, here, of which every tensor can be asked for."""
    built, gradients = self._graph_for(run)
    build = self.build(run.training, built.mode)
    known = self._intermediates(run) if build.refused else {}
    self._check_can_run(build, built, gradients, known)
    given = {name: known[tensor] for tensor, name in build.placeholders.items() if tensor in known}
    return graph_run_of(run, built, gradients, build.source_of, given)

  def seeded_here(self, mode: str, training: bool) -> GraphHere | None:
    """Returns what runs the graph here from its own initial values; None if nothing is recorded."""
    if self.recording.seeded(mode, training) is None:
      return None

    def here(_: frozenset[str]) -> Observation:
      known = self._ahead.pop((mode, training), None) or self._run_seeded(mode, training)()
      self._kernels_differ = True  # where it can be run at all
      return known

    return here

  def filled_here(self, run: side.FilledRun) -> GraphHere | None:
    """Returns what runs the graph here from given values; None if that was not recorded."""
    if self._recorded(run) is None:
      return None

    def here(gradients: frozenset[str]) -> Observation:
      wanted = dataclasses.replace(run, gradients_of=gradients)
      (found,) = self._run_filled(wanted)([wanted])
      self._kernels_differ = True
      return found

    return here

  def recorded_here(self, run: side.FilledRun) -> RecordedGraphHere | None:
    """Returns what the recorded graph yields here for a run, recorded or not."""
    try:
      (observation,) = self._run_filled(run)()
    except NotApplicable:
      return None
    made = self.recording.manifest.environment.get('tensorflow', '(unknown)')
    return RecordedGraphHere(
      f'TensorFlow {made}',
      f'TensorFlow {tf.__version__}',
      observation,
      self._intermediates(run),
    )

  def _intermediates(self, run: side.FilledRun) -> Mapping[str, np.ndarray]:
    """Returns the recorded tensors of a run between inputs and outputs, by name."""
    entry = self._recorded(run)
    for known in self.recording.manifest.intermediates.runs:
      if entry is not None and self.recording.manifest.runs[known.run] is entry:
        return {name: self.recording.array(array) for name, array in known.tensors}
    return {}

  def initial_fill(self, mode: str, training: bool, initial: Sequence[TensorRecord]) -> Fill:
    """Returns the fill of recorded initial values; those stored in part are drawn again."""
    values = {record.name: record.value for record in initial}
    if not any(isinstance(value, SampledArray) for value in values.values()):
      return RecordedFill(mode, values)
    return RedrawnFill(mode, values, lambda names: self._redrawn(mode, training, names))

  def _redrawn(self, mode: str, training: bool, names: Sequence[str]) -> Mapping[str, Any]:
    build = self.build(training, mode)
    self._check_can_run(build, dataclasses.replace(build.built, outputs=(), update_ops=()), ())
    wanted = [v for v in build.built.variables if v.record.name in names]
    with open_session(build.built.graph) as session:
      session_values.fetch(session, [variable.initializer for variable in wanted])
      values = session_values.read_all(session, wanted)
    return {v.record.name: value for v, value in zip(wanted, values, strict=True)}

  def close(self) -> None:
    """Lets go of the graphs and the arrays."""
    super().close()
    self._builds.clear()
    self._ahead.clear()
    self.recording.close()
