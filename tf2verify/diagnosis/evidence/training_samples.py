"""Two training runs, cut down to the elements that a recording has of large variables."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tf2verify.records.observation import TensorRecord
from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import Slot, TrainingRun, TrainingStep
from tf2verify.reference.sampling import sample_positions

_Array = np.ndarray[Any, Any]
# Cuts an array of a variable down, by the name of the variable.
_Cut = Callable[[str, _Array], _Array]


def at_samples(
  tf1: TrainingRun, tf2: TrainingRun, pairs: Sequence[tuple[str, str]]
) -> tuple[TrainingRun, TrainingRun, frozenset[str]]:
  """Returns both runs with samples in place of the arrays of large variables.

  An update rule holds for every element, so also for some of them.

  Returns:
    The runs, as they are where tf1's has whole arrays alone; and the tf1 names of the
    variables that were cut down.
  """
  found = {
    record.name: sample_positions(record.value.full_size, record.value.samples)
    for record in _records(tf1)
    if isinstance(record.value, SampledArray)
  }
  if not found:
    return tf1, tf2, frozenset()
  sizes = {r.name: r.value.full_size for r in _records(tf1) if isinstance(r.value, SampledArray)}
  paired = frozenset(tf1_name for tf1_name, _ in pairs if tf1_name in found)
  port = {tf2_name: tf1_name for tf1_name, tf2_name in pairs if tf1_name in paired}

  def of_port(name: str, value: _Array) -> _Array:
    tf1_name = port.get(name, '')
    return value.reshape(-1)[found[tf1_name]] if sizes.get(tf1_name) == value.size else value

  return _cut(tf1, lambda _, value: _samples(value)), _cut(tf2, of_port), paired


def _samples(value: _Array) -> _Array:
  if not isinstance(value, SampledArray):
    return value
  return np.asarray(value)[: min(value.samples, value.full_size)]


def _records(run: TrainingRun) -> Iterable[TensorRecord]:
  yield from run.values_before
  for step in run.steps:
    yield from step.variables


def _cut(run: TrainingRun, cut: _Cut) -> TrainingRun:
  return dataclasses.replace(
    run,
    values_before=_tensors(run.values_before, cut),
    slots_before=_slots(run.slots_before, cut),
    steps=tuple(_step(step, cut) for step in run.steps),
  )


def _step(step: TrainingStep, cut: _Cut) -> TrainingStep:
  return dataclasses.replace(
    step,
    gradients=_tensors(step.gradients, cut),
    applied_gradients=_tensors(step.applied_gradients, cut),
    variables=_tensors(step.variables, cut),
    slots=_slots(step.slots, cut),
  )


def _tensors(records: Iterable[TensorRecord], cut: _Cut) -> tuple[TensorRecord, ...]:
  return tuple(
    known if known.value is None else TensorRecord(known.name, cut(known.name, known.value))
    for known in records
  )


def _slots(slots: Iterable[Slot], cut: _Cut) -> tuple[Slot, ...]:
  return tuple(dataclasses.replace(slot, value=cut(slot.variable, slot.value)) for slot in slots)
