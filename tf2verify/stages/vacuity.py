"""What a stage that passed did not see."""

from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.sides.influence import without_influence
from tf2verify.stages.stage import CaseUnderTest

_SHOWN = 3
# Fewer elements are at the extremes by chance.
_FEWEST = 16
_SATURATED = 0.9


def output_notes(observations: Sequence[Observation]) -> list[str]:
  """Returns notes on floating outputs that are alike all over in each of some runs.

  Values tell little of an output whose elements are all the same, or of which nine in
  ten are at its least or greatest value (a dead ReLU, a saturated softmax). An output
  that varies in one of the runs has been seen.

  Args:
    observations: of the reference; that the port agrees is known.
  """
  kinds: dict[str, list[str]] = {}
  for observation in observations:
    for record in observation.outputs:
      kinds.setdefault(record.name, []).append(_kind(record.value))
  runs = ', '.join(observation.run for observation in observations)
  notes = []
  for kind, text in _TEXTS.items():
    names = [name for name, found in kinds.items() if set(found) == {kind}]
    if names:
      notes.append(f'{_counted(names, "output")} {text} [{runs}]')
  return notes


_TEXTS = {
  'zero': 'zero everywhere, which tells next to nothing of the model',
  'constant': 'the same number everywhere, which tells little of the model',
  'saturated': 'at the least or greatest value in nine of ten elements or more (saturated)',
}


def _kind(value: np.ndarray | None) -> str:
  """Returns a key of `_TEXTS`, or '' for an output that varies."""
  if value is None or not value.size or value.dtype.kind not in 'fcV':
    return ''
  if not np.any(value):
    return 'zero'
  if value.size == 1 or np.isnan(value.reshape(-1)[:1]).any():
    return ''
  if np.all(value == value.reshape(-1)[0]):
    return 'constant'
  if value.size < _FEWEST or value.dtype.kind != 'f':
    return ''
  extreme = (value == np.min(value)) | (value == np.max(value))
  return 'saturated' if np.count_nonzero(extreme) >= _SATURATED * value.size else ''


def influence_notes(case: CaseUnderTest) -> list[str]:
  """Returns notes on variables and inputs that no compared number depends on."""
  graphs = [case.tf1.built(training) for training in case.declaration.training_modes]
  found = without_influence(graphs)
  notes = []
  if found.variables:
    notes.append(
      f'{_counted(found.variables, "variable")} without influence: no output, regularization loss '
      'or update op of tf1 depends on it'
    )
  if found.inputs:
    notes.append(f'{_counted(found.inputs, "input")} never read by an output of tf1')
  return notes


def gradient_notes(tf1: Iterable[TensorRecord]) -> list[str]:
  """Returns notes on gradients that are zero everywhere, given that the port agrees."""
  names = [r.name for r in tf1 if r.value is not None and r.value.size and not np.any(r.value)]
  if not names:
    return []
  return [f'{_counted(names, "gradient")} zero everywhere on both sides']


def _counted(names: Sequence[str], noun: str) -> str:
  """Returns `1 output (x) is`, `5 outputs (a, b, c, …) are`."""
  shown = ', '.join(names[:_SHOWN]) + (', …' if len(names) > _SHOWN else '')
  return f'{len(names):,} {noun}{"s are" if len(names) > 1 else " is"} ({shown})'
