"""Entries of a manifest as the records that stages compare."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from tf2verify.recordings.array_entries import Nest, TensorEntry, Tensors
from tf2verify.recordings.graph_entries import DrawEntry, SourceEntry, VariableEntry
from tf2verify.recordings.manifest_entries import Manifest
from tf2verify.recordings.run_entries import FilledEntry, RunEntry
from tf2verify.recordings.training_entries import SlotEntry, StepEntry
from tf2verify.records.observation import (
  Observation,
  RandomDraw,
  RegularizationLoss,
  SourceLine,
  TensorRecord,
  VariableRecord,
)
from tf2verify.records.training import (
  LossObservation,
  OptimizerRecord,
  Slot,
  TrainingRun,
  TrainingStep,
)

_Array = np.ndarray[Any, Any]


class Arrays(Protocol):
  """What `tf2verify.recordings.recording.Recording` reads its arrays by."""

  manifest: Manifest

  def tensor(
    self, entry: TensorEntry | None, moved: bool = False, again: bool = False
  ) -> _Array | None: ...
  def nest(self, nest: Nest) -> Any: ...


def source_lines(sources: Iterable[SourceEntry]) -> tuple[SourceLine, ...]:
  """Returns lines of code as records."""
  return tuple(SourceLine(s.path, s.line, s.function, s.code) for s in sources)


def variable_record(entry: VariableEntry, sources: tuple[SourceLine, ...]) -> VariableRecord:
  """Returns a variable as an inventory shows it."""
  return VariableRecord(
    entry.name,
    entry.shape,
    entry.dtype,
    entry.trainable,
    entry.trainable_flag,
    entry.collections,
    None if entry.source is None else sources[entry.source],
  )


def random_draws(
  entries: Iterable[DrawEntry], sources: tuple[SourceLine, ...]
) -> tuple[RandomDraw, ...]:
  """Returns random ops as records."""
  return tuple(
    RandomDraw(
      entry.op_type,
      entry.shape,
      entry.variable,
      None if entry.source is None else sources[entry.source],
      entry.in_loop,
      entry.op_name,
      entry.feeds_outputs,
    )
    for entry in entries
  )


def description(run: RunEntry) -> str:
  """Returns what was run, as a live reference calls it: `training, constant`."""
  what = run.fill if isinstance(run, FilledEntry) else run.mode
  return f'{"training" if run.training else "inference"}, {what}'


class _Reader:
  """Reads tensors as they were, moved, or as a second run gave them."""

  def __init__(self, recording: Arrays, moved: bool, again: bool) -> None:
    self._recording = recording
    self._how = {'moved': moved, 'again': again}

  def value(self, entry: TensorEntry | None) -> _Array | None:
    """Returns a tensor."""
    return self._recording.tensor(entry, **self._how)

  def records(self, entries: Tensors) -> tuple[TensorRecord, ...]:
    """Returns named tensors."""
    return tuple(TensorRecord(name, self.value(entry)) for name, entry in entries)

  def slots(self, entries: Iterable[SlotEntry]) -> tuple[Slot, ...]:
    """Returns slots; one that did not repeat is left out."""
    found = []
    for entry in entries:
      value = self.value(entry.value)
      if value is not None:
        found.append(Slot(entry.role, entry.variable, entry.name, value))
    return tuple(found)

  def step(self, entry: StepEntry) -> TrainingStep:
    """Returns a training step."""
    return TrainingStep(
      entry.number,
      self.value(entry.loss),
      entry.learning_rate,
      entry.global_step,
      self.records(entry.gradients),
      self.records(entry.applied_gradients),
      self.records(entry.variables),
      self.slots(entry.slots),
    )


def observation(recording: Arrays, run: RunEntry, moved: bool, again: bool) -> Observation:
  """Returns what a run yielded; a regularization loss that did not repeat is left out."""
  graph = recording.manifest.graph(run.training)
  assert graph is not None, 'checked when the recording was opened'
  reader = _Reader(recording, moved, again)
  losses = [(names, reader.value(entry)) for names, entry in run.regularization_losses]
  return Observation(
    side='tf1',
    run=description(run),
    structure=graph.structure,
    outputs=reader.records(run.outputs),
    regularization_losses=tuple(
      RegularizationLoss(names, value) for names, value in losses if value is not None
    ),
    regularization_total=reader.value(run.regularization_total),
    initial_values=reader.records(run.initial_values),
    state_after=reader.records(run.state_after),
    gradients=reader.records(run.gradients),
    random_draws=random_draws(graph.random_draws, source_lines(graph.sources)),
  )


def losses(recording: Arrays, moved: bool, again: bool) -> LossObservation | None:
  """Returns the losses in the model; None where none were recorded, or they did not repeat."""
  entry = recording.manifest.losses
  if entry is None:
    return None
  reader = _Reader(recording, moved, again)
  found = entry.observation
  loss, total = reader.value(found.loss), reader.value(found.total_loss)
  if loss is None or total is None:
    return None
  regularization = reader.value(found.regularization_total)
  outputs = recording.nest(entry.output_nest)
  return LossObservation('tf1', entry.run, outputs, loss, total, regularization)


def steps(recording: Arrays, moved: bool, again: bool) -> TrainingRun | None:
  """Returns the training steps; None where none were recorded."""
  entry, losses_entry = recording.manifest.steps, recording.manifest.losses
  if entry is None or losses_entry is None:
    return None
  reader = _Reader(recording, moved, again)
  return TrainingRun(
    side='tf1',
    run=entry.run,
    optimizers=tuple(
      OptimizerRecord(found.name, found.settings, found.rule) for found in entry.optimizers
    ),
    values_before=reader.records(entry.values_before),
    slots_before=reader.slots(entry.slots_before),
    steps=tuple(reader.step(step) for step in entry.steps),
    updates_left_out=entry.updates_left_out,
    regularization_total=reader.value(entry.regularization_total),
    random_draws=random_draws(entry.random_draws, source_lines(losses_entry.graph.sources)),
  )
