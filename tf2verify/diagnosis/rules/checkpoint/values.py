"""How a value came about that is not the one that a checkpoint holds."""

import itertools
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.checkpoint import RestoredValue
from tf2verify.numerics.restored_values import same
from tf2verify.records.diagnosis import Cause

_Array = np.ndarray[Any, Any]
# Axes and blocks beyond these have too many orders to try.
_MOST_AXES = 4
_BLOCKS = (4, 3, 2)


def partly_restored(evidence: RestoredValue) -> Cause | None:
  """Some elements are those of the checkpoint, the others those from before."""
  actual, expected = evidence.actual, evidence.expected
  if evidence.kept or actual.shape != expected.shape:
    return None
  untouched = int(np.sum(actual == evidence.before))
  if not untouched or untouched + int(np.sum(actual == expected)) != actual.size:
    return None
  return Cause(f'{untouched} of {actual.size} elements were not restored, the others were')


def another_key(evidence: RestoredValue) -> Cause | None:
  """The value is that of another key."""
  if evidence.kept or evidence.actual.shape != evidence.expected.shape:
    return None
  others = evidence.others.items()
  other = next((o for o, v in others if o != evidence.key and same(v, evidence.actual)), None)
  return None if other is None else Cause(_of_another_key(evidence.variable, evidence.key, other))


def _of_another_key(variable: str, key: str, other: str) -> str:
  if other == variable:
    return (
      f'the value equals `{other}`, but TF1 evaluates with the EMA shadow variable `{key}`: load '
      'the shadow '
      'variables (tf.train.ExponentialMovingAverage.variables_to_restore in TF1)'
    )
  if other.startswith(f'{variable}/'):
    return (
      f'the value equals the key `{other}` instead of `{key}`; if TF1 evaluates with the moving '
      'averages of its weights, declare evaluate_with_ema = True'
    )
  return f'the value equals the key `{other}` instead of `{key}`: two variables are swapped'


def reordered_value(evidence: RestoredValue) -> Cause | None:
  """The value holds the numbers of the key in another order."""
  if evidence.kept or evidence.actual.shape != evidence.expected.shape:
    return None
  text = _order(evidence.actual, evidence.expected)
  return Cause(text) if text else None


def _order(actual: _Array, expected: _Array) -> str:
  """Returns in which order an array holds the numbers of another; '' where it does not."""
  axes = range(expected.ndim)
  if 2 <= expected.ndim <= _MOST_AXES:
    for order in itertools.permutations(axes):
      if order != tuple(axes) and same(actual, np.transpose(expected, order)):
        return f'the value matches after a transpose: it is the key with its axes in order {order}'
  if not expected.size or not same(np.sort(actual, axis=None), np.sort(expected, axis=None)):
    return ''
  for axis in axes:
    for blocks in _BLOCKS:
      if expected.shape[axis] % blocks or expected.shape[axis] == 0:
        continue
      found = _block_order(actual, expected, axis, blocks)
      if found is not None:
        gates = ': the gates of a recurrent cell' if blocks > 2 else ''
        return (
          f'the value is the key with its {blocks} blocks along axis {axis} in order {found}{gates}'
        )
  return 'the value holds the numbers of the key in a different order'


def _block_order(
  actual: _Array, expected: _Array, axis: int, blocks: int
) -> tuple[int, ...] | None:
  parts = np.split(expected, blocks, axis)
  wanted = np.split(actual, blocks, axis)
  order = []
  for part in wanted:
    found = next((n for n, known in enumerate(parts) if same(part, known)), None)
    if found is None:
      return None
    order.append(found)
  return tuple(order) if sorted(order) == list(range(blocks)) else None
