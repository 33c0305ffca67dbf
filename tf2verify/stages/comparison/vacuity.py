"""What a stage that passed did not see."""

from collections.abc import Iterable, Sequence

import numpy as np

from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.stages.stage import CaseUnderTest

_SHOWN = 3
# Fewer elements are at the extremes by chance.
_FEWEST = 16
_SATURATED = 0.9


class OutputWatch:
  """Sees which floating outputs are alike all over in every run of a stage.

  Values tell little of an output whose elements are all the same, or of which nine in
  ten are at its least or greatest value (a dead ReLU, a saturated softmax). An output
  that varies in one of the runs has been seen.

  Attributes:
    all_zero: whether every output of every run is floating, and zero everywhere.
  """

  def __init__(self) -> None:
    self._kinds: dict[str, set[str]] = {}
    self._runs: list[str] = []

  @property
  def all_zero(self) -> bool:
    """See the class."""
    return bool(self._kinds) and all(found == {'zero'} for found in self._kinds.values())

  def add(self, tf1: Observation) -> None:
    """Looks at a run of the reference; that the port agrees is known otherwise."""
    self._runs.append(tf1.run)
    for record in tf1.outputs:
      if record.value is not None:
        self._kinds.setdefault(record.name, set()).add(_kind(record.value))

  def notes(self) -> list[str]:
    """Returns one note per way of telling little."""
    notes = []
    for kind, text in _TEXTS.items():
      names = [name for name, found in self._kinds.items() if found == {kind}]
      if names:
        notes.append(_told(names, 'output', f'{text} [{"; ".join(self._runs)}]'))
    return notes


_TEXTS = {
  'zero': 'zero everywhere, which tells next to nothing of the model',
  'constant': 'the same number everywhere, which tells little of the model',
  'saturated': 'at the least or greatest value in nine of ten elements or more (saturated)',
}


def _kind(value: np.ndarray) -> str:
  """Returns a key of `_TEXTS`, or '' for an output that varies."""
  if not value.size or value.dtype.kind not in 'fcV':
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
  found = case.tf1.without_influence()
  notes = []
  if found.variables:
    text = 'without influence on any output, regularization loss or update op of tf1'
    notes.append(_told(found.variables, 'variable', text))
  if found.inputs:
    notes.append(_told(found.inputs, 'input', 'never read on the way to any output of tf1'))
  return notes


def gradient_notes(tf1: Iterable[TensorRecord]) -> list[str]:
  """Returns notes on gradients that are zero everywhere, given that the port agrees."""
  names = [r.name for r in tf1 if r.value is not None and r.value.size and not np.any(r.value)]
  return [_told(names, 'gradient', 'zero everywhere on both sides')] if names else []


def _told(names: Sequence[str], noun: str, text: str) -> str:
  """Returns `output x is zero`, or `5 outputs are zero: a, b, c, …`."""
  if len(names) == 1:
    return f'{noun} {names[0]} is {text}'
  shown = ', '.join(names[:_SHOWN]) + (', …' if len(names) > _SHOWN else '')
  return f'{len(names):,} {noun}s are {text}: {shown}'
