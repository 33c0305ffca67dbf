"""Training steps whose arrays are set aside, see `numerics.set_aside`."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from tf2verify.numerics.set_aside import set_aside
from tf2verify.records.training import Slot, TrainingRun, TrainingStep


def start_set_aside(run: TrainingRun) -> TrainingRun:
  """Returns a run with the values before its first step set aside."""
  kept = _set_aside(run.values_before, run.slots_before)
  return dataclasses.replace(run, values_before=kept[0], slots_before=kept[1])


def slots_set_aside(slots: Sequence[Slot]) -> tuple[Slot, ...]:
  """Returns slots with their values set aside."""
  return _set_aside(slots)[0]


def steps_set_aside(*steps: TrainingStep) -> tuple[TrainingStep, ...]:
  """Returns steps with variables and slots set aside; an array that they share stays shared."""
  kept = iter(_set_aside(*(part for step in steps for part in (step.variables, step.slots))))
  return tuple(dataclasses.replace(s, variables=next(kept), slots=next(kept)) for s in steps)


def _set_aside(*parts: Sequence[Any]) -> list[tuple[Any, ...]]:
  """Returns records, each with its value set aside."""
  values: Iterator[Any] = iter(set_aside([record.value for part in parts for record in part]))
  return [tuple(dataclasses.replace(r, value=next(values)) for r in part) for part in parts]
