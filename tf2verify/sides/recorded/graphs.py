"""The graphs of a recording, imported."""

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from tf2verify.errors import NotApplicable, RecordingError
from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.records.observation import SourceLine
from tf2verify.sides import side
from tf2verify.sides.process import randomness
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.build import RecordedBuild, parsed
from tf2verify.sides.recorded.races import RecordedRaces
from tf2verify.sides.tf1.graphs import seed_rewriting
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.sessions import session_values


@final
class RecordedGraphs:
  """Imports each recorded graph once, where it is to be run or read."""

  def __init__(self, recording: Recording, races: RecordedRaces, progress: side.Progress) -> None:
    self._recording = recording
    self._races = races
    self._progress = progress
    self._builds: dict[tuple[str, bool], RecordedBuild] = {}

  def entry(self, training: bool) -> GraphEntry:
    """Returns what the recording says of the graph of a training mode."""
    for entry in self._recording.manifest.graphs:
      if entry.training is training:
        return entry
    raise RecordingError(
      f'{self._recording.path} has no graph of {side.training_name(training)} mode: record with '
      '--training'
    )

  def graph_def(self, training: bool) -> Any:
    """Returns the GraphDef of a training mode, which need not be imported to be looked into."""
    return parsed(self._recording.graph_def(self.entry(training)), self._recording.path)

  def build(self, training: bool, mode: str = randomness.NUM_RANDOM_OPS) -> RecordedBuild:
    """Returns the imported graph of a training mode, for a randomness mode."""
    key = (mode, training)
    if key not in self._builds:
      self._progress(f'importing the recorded graph, {side.training_name(training)}, {mode}')
      self._builds[key] = RecordedBuild(self._recording, self.entry(training), mode)
    return self._builds[key]

  def built(self, training: bool, mode: str = randomness.NUM_RANDOM_OPS) -> BuiltGraph:
    """Returns the graph of a training mode, for a randomness mode."""
    return self.build(training, mode).built

  def built_for(self, mode: str, training: bool) -> BuiltGraph:
    """Returns the graph to run in a randomness mode."""
    if mode in randomness.OF_COMPUTATION:
      return seed_rewriting.computation_seed_graph(self.built(training), mode)
    return self.built(training, mode)

  def with_gradients(self, training: bool) -> tuple[BuiltGraph, tuple[GraphGradient, ...]]:
    """Returns the graph whose random ops are aligned, with the recorded gradients."""
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

  def source_of(self, op: str, training: bool) -> SourceLine | None:
    """Returns the line that made an operation."""
    return self._races.source_of(self.entry(training), op)

  def check_can_run(
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
      names += gradient.tensors
    refused = [op for op in build.stand_ins_behind(names) if not build.is_given(op, known or {})]
    if refused:
      raise NotApplicable(
        f'the recorded graph is not run here: {graph_safety.refusal_text(refused)}'
      )

  def close(self) -> None:
    """Lets go of them."""
    self._builds.clear()
