"""The tf1 side read back from a recording."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, final

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, RecordingError
from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.recordings.run_entries import FilledEntry
from tf2verify.records.observation import Observation, RandomDraw, TensorRecord
from tf2verify.records.recorded_on_current_tf import RecordedGraphHere
from tf2verify.records.sampled import SampledArray
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides import side
from tf2verify.sides.fill import ConstantFill, Fill, RecordedFill
from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.variables.effects import Effect, Program, effects_in_any
from tf2verify.sides.process import randomness
from tf2verify.sides.recorded.build import lines_of, variables_of
from tf2verify.sides.recorded.given_values import other_value
from tf2verify.sides.recorded.graphs import RecordedGraphs
from tf2verify.sides.recorded.races import RecordedRaces
from tf2verify.sides.recorded.recording import same_arrays
from tf2verify.sides.recorded.redrawn_fill import RedrawnFill
from tf2verify.sides.recorded.replay import Replay
from tf2verify.sides.tf1.graphs import influence
from tf2verify.sides.tf1.graphs.build import BuiltGraph, inventory_of
from tf2verify.sides.tf1.graphs.effects import recorded_program
from tf2verify.sides.tf1.graphs.racing import Racing
from tf2verify.sides.tf1.reference import GraphHere, PreparedRuns, SeededRun
from tf2verify.sides.tf1.session_runs import SessionRuns
from tf2verify.sides.tf1.sessions import session_values, starts
from tf2verify.sides.tf1.sessions.reference_run import graph_run_of


@final
class RecordedGraph:
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
    self.recording = recording
    self.racing = Racing(recorded=True)
    self._declaration = declaration
    self._has_own_loss = has_own_loss
    self._races = RecordedRaces(recording, self.racing)
    self._graphs = RecordedGraphs(recording, self._races, progress)
    self._runs = SessionRuns(self._graphs, inputs, self.racing, progress)
    self._inventory: side.Inventory | None = None
    self._remarks: list[str] = []
    self._checked_fills: dict[str, str] = {}
    # Once the graph had to be run here, it is run ahead, beside the port, the next times.
    self._kernels_differ = False
    self._ahead: dict[tuple[str, bool], Observation] = {}

  def recorded(self) -> 'RecordedGraph':
    """Returns itself: what was recorded."""
    return self

  def entry(self, training: bool) -> GraphEntry:
    """Returns what the recording says of the graph of a training mode."""
    return self._graphs.entry(training)

  def built(self, training: bool) -> BuiltGraph:
    """Returns the graph of a training mode, in which random ops are numbered."""
    return self._graphs.built(training)

  def remark(self, text: str) -> None:
    """Keeps what the reader of a report has to know, for the stage that is running."""
    if text not in self._remarks:
      self._remarks.append(text)

  def pending_notes(self) -> tuple[str, ...]:
    """Returns the remarks since this was last asked for."""
    found, self._remarks = tuple(self._remarks), []
    return found

  def initial_draw(self, variable: str, training: bool) -> InitialDraw:
    """Returns how the recorded graph draws an initial value, by running its initializer here."""
    built = self.built(training)
    only = dataclasses.replace(built, outputs=(), update_ops=(), regularization_losses=())
    self._graphs.check_can_run(self._graphs.build(training), only, ())
    return starts.draw_of(built, variable)

  def drawn_start(self, variable: str) -> np.ndarray | None:
    """Returns None: a recorded run had the value that its own initializer drew."""
    del variable
    return None

  def inventory(self) -> side.Inventory:
    """Returns the recorded variables, of the training modes of the case."""
    if self._inventory is None:
      self._inventory = inventory_of(
        (training, variables_of(self.entry(training)))
        for training in self._declaration.training_modes
      )
    return self._inventory

  def without_influence(self, outputs_only: bool = False) -> influence.WithoutInfluence:
    """Returns what no recorded number depends on; by the recorded graphs, not imported."""
    return influence.combined(
      [
        influence.recorded_reach(
          self.entry(training), self._graphs.graph_def(training), outputs_only
        )
        for training in self._declaration.training_modes
      ]
    )

  def effects_of(self, variables: Collection[str]) -> dict[str, Effect]:
    """Returns which of some variables a recorded number depends on, in any training mode."""
    modes = self._declaration.training_modes
    return effects_in_any((self._program(training) for training in modes), variables)

  def _program(self, training: bool) -> Program:
    entry = self.entry(training)
    lines = lines_of(self.recording, entry)
    return recorded_program(entry, self._graphs.graph_def(training), lines.get)

  def inputs_read(self, training: bool) -> tuple[str, ...]:
    """Returns the paths of the inputs that outputs or losses depend on; by the recorded graph."""
    return influence.recorded_inputs_read(self.entry(training), self._graphs.graph_def(training))

  @property
  def fixed_draws(self) -> tuple[RandomDraw, ...]:
    """Nothing: what was recorded was drawn."""
    return ()

  @property
  def fixed_size(self) -> str:
    """Why the graph takes inputs of no other size: its builder is not here."""
    return 'a recorded graph has the sizes of its recording'

  def at(self, inputs: Any) -> 'RecordedGraph':
    """Returns itself: there are no graphs of other sizes."""
    del inputs
    return self

  def release_other_size(self) -> None:
    """Does nothing: there are no graphs of other sizes."""

  def prepare_seeded(self, mode: str, training: bool) -> SeededRun:
    """Returns a run that yields what was recorded."""
    entry = self.recording.manifest.seeded(mode, training)
    if entry is None:
      self._not_recorded(f'{side.training_name(training)}, {mode}')
      return self._run_seeded(mode, training)
    if self._races.is_model_reordered(self.entry(training)):
      return self._run_seeded(mode, training)
    replay = Replay(
      self.recording, entry, lambda perturber, _: self._run_seeded(mode, training)(perturber)
    )
    ahead = self._run_seeded(mode, training) if self._kernels_differ else None

    def observe(perturber: Perturber | None = None, again: bool = False) -> Observation:
      if ahead is not None and (mode, training) not in self._ahead:
        self._ahead[mode, training] = ahead()
      return replay(perturber, again)

    return observe

  def _run_seeded(self, mode: str, training: bool) -> SeededRun:
    aligned = randomness.NUM_RANDOM_OPS if mode in randomness.OF_COMPUTATION else mode
    build = self._graphs.build(training, aligned)
    self._graphs.check_can_run(build, build.built, ())
    return self._runs.seeded(mode, training)

  def prepare_filled(self, runs: Sequence[side.RunSpec]) -> PreparedRuns:
    """Returns the runs: what was recorded, or the recorded graph run here."""
    replays = [self._replay(run) for run in runs]
    unknown = [run for run, replay in zip(runs, replays, strict=True) if replay is None]
    run_others = None
    if unknown:
      run_others = self._run_filled(unknown[0])
      for run in unknown if self.racing.replays else ():
        self._not_recorded(run.description)

    def replay_of(run: side.RunSpec) -> Replay | None:
      # Mostly one of those that were prepared, moved: its inputs are known.
      for one, replay in zip(runs, replays, strict=True):
        same = run.inputs is one.inputs and run.fill is one.fill
        if same and (run.training, run.gradients) == (one.training, one.gradients):
          return replay
      return self._replay(run)

    def observe(others: Sequence[side.RunSpec] | None = None) -> tuple[Observation, ...]:
      observations: list[Observation] = []
      for run in runs if others is None else others:
        replay = replay_of(run)
        if replay is None:
          observations += (run_others or self._run_filled(run))([run])
        else:
          observations.append(self._replayed(replay, run, others is not None))
      return tuple(observations)

    return observe

  def _replayed(self, replay: Replay, run: side.RunSpec, again: bool) -> Observation:
    self.check_fill(run)
    found = replay(run.perturber, again, run.gradients_of)
    wanted = tuple(g for g in found.gradients if run.wants_gradient_of(g.name))
    return dataclasses.replace(found, run=run.description, gradients=wanted)

  def _replay(self, run: side.RunSpec) -> Replay | None:
    entry = self._recorded(run)
    if entry is None or self._races.is_model_reordered(self.entry(run.training), run.gradients):
      return None

    def run_here(perturber: Perturber | None, gradients_of: frozenset[str] | None) -> Observation:
      here = dataclasses.replace(run, perturber=perturber, gradients_of=gradients_of)
      return self._run_filled(here)([here])[0]

    return Replay(self.recording, entry, run_here)

  def _run_filled(self, run: side.RunSpec) -> PreparedRuns:
    """Returns runs of the graph of this one, of the same training mode, here."""
    built, gradients = self._runs.graph_for(run)
    self._graphs.check_can_run(self._graphs.build(built.training, built.mode), built, gradients)
    return self._runs.filled([run])

  def _recorded(self, run: side.RunSpec) -> FilledEntry | None:
    """Returns the recorded run that this one is; None where there is none."""
    if run.gradients and self._has_own_loss:
      raise NotApplicable(
        'the case overrides loss, and the recorded gradients are those of the default loss: leave '
        'loss out of a case with tf1_recording'
      )
    manifest = self.recording.manifest
    for kind, inputs in (
      ('varied', self.recording.varied_inputs),
      ('given', self.recording.inputs),
    ):
      entry = manifest.filled(run.training, run.fill.description, kind, run.gradients)
      if entry is not None and same_arrays(run.inputs, inputs):
        return entry
    return None

  def check_fill(self, run: side.RunSpec) -> None:
    """Raises `RecordingError` where a fill gives other values than were recorded."""
    fill = run.fill
    if isinstance(fill, ConstantFill):
      return  # its description says all
    if fill.description not in self._checked_fills:
      self._checked_fills[fill.description] = other_value(run, self.inventory(), self.recording)
    if self._checked_fills[fill.description]:
      raise RecordingError(self._checked_fills[fill.description])

  def _not_recorded(self, run: str) -> None:
    self.remark(
      f'{run} of this kind was not recorded: the recorded graph was run here, by TensorFlow '
      f'{tf.__version__}'
    )

  def inspectable(self, run: side.RunSpec) -> GraphRun:
    """Returns a run, here, of which every tensor can be asked for."""
    built, gradients = self._runs.graph_for(run)
    build = self._graphs.build(run.training, built.mode)
    known = self._intermediates(run) if build.refused else {}
    self._graphs.check_can_run(build, built, gradients, known)
    given = {name: known[tensor] for tensor, name in build.placeholders.items() if tensor in known}
    return graph_run_of(run, built, gradients, build.source_of, given)

  def seeded_on_current_tf(self, mode: str, training: bool) -> GraphHere | None:
    """Returns what runs the graph here from its own initial values; None if nothing is recorded."""
    if self.recording.manifest.seeded(mode, training) is None:
      return None

    def here(_: frozenset[str]) -> Observation:
      known = self._ahead.pop((mode, training), None) or self._run_seeded(mode, training)()
      self._kernels_differ = True  # where it can be run at all
      return known

    return here

  def filled_on_current_tf(self, run: side.RunSpec) -> GraphHere | None:
    """Returns what runs the graph here from given values; None if that was not recorded."""
    if self._recorded(run) is None:
      return None

    def here(gradients: frozenset[str]) -> Observation:
      wanted = dataclasses.replace(run, gradients_of=gradients)
      (found,) = self._run_filled(wanted)([wanted])
      self._kernels_differ = True
      return found

    return here

  def on_current_tf(self, run: side.RunSpec) -> RecordedGraphHere | None:
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

  def _intermediates(self, run: side.RunSpec) -> Mapping[str, np.ndarray]:
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
    build = self._graphs.build(training, mode)
    self._graphs.check_can_run(
      build, dataclasses.replace(build.built, outputs=(), update_ops=()), ()
    )
    wanted = [v for v in build.built.variables if v.record.name in names]
    with open_session(build.built.graph) as session:
      session_values.fetch(session, [variable.initializer for variable in wanted])
      values = session_values.read_all(session, wanted)
    return {v.record.name: value for v, value in zip(wanted, values, strict=True)}

  def close(self) -> None:
    """Lets go of the graphs and the arrays."""
    self._graphs.close()
    self._ahead.clear()
    self.recording.close()
