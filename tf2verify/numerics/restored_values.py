"""Why a variable has not the value that a checkpoint holds for it: told from the values."""

import dataclasses
import hashlib
import itertools
from collections.abc import Mapping

import numpy as np

_Array = np.ndarray
# Axes and blocks beyond these have too many orders to try.
_MOST_AXES = 4
_BLOCKS = (4, 3, 2)
# A slot may be kept times a factor: Keras' momentum is -learning_rate times TF1's.
_PROPORTIONAL = 1e-4


@dataclasses.dataclass(frozen=True)
class Cause:
  """How a value differs from the expected one.

  Attributes:
    kept: whether the variable kept the value that it had before.
    said: one sentence; '' where nothing is known.
  """

  kept: bool
  said: str


def same(one: _Array, other: _Array) -> bool:
  """Returns whether two arrays are equal element by element; NaN equals NaN."""
  if one.shape != other.shape or one.dtype != other.dtype:
    return False
  if bool(np.array_equal(one, other)):
    return True
  return one.dtype.kind in 'fcV' and bool(((one == other) | (one != one) & (other != other)).all())


def sentinel(name: str, value: _Array) -> _Array:
  """Returns an array of the shape and dtype of another, different in every element.

  Floating elements are drawn from the hash of the name, and positive as those of a
  variance have to be.
  """
  if value.dtype.kind == 'b':
    return np.asarray(~value)
  if value.dtype.kind in 'iu':
    with np.errstate(over='ignore'):
      return np.asarray(value + np.ones((), value.dtype))
  if value.dtype.kind not in 'fcV':
    return np.full(value.shape, b'not restored', object)
  digest = hashlib.sha256(f'not restored:{name}'.encode()).digest()
  generator = np.random.RandomState(np.frombuffer(digest, dtype='<u4'))
  drawn: _Array = generator.uniform(0.5, 1.5, value.shape).astype(value.dtype)
  return np.where(drawn == value, drawn + drawn, drawn)


def cause(
  variable: str,
  actual: _Array,
  expected: _Array,
  before: _Array,
  key: str,
  others: Mapping[str, _Array],
) -> Cause:
  """Finds out how a value came about that is not the expected one.

  Args:
    variable: its tf1 name.
    actual: what the variable holds.
    expected: what the checkpoint holds for it.
    before: what it held before.
    key: where `expected` is read from.
    others: the values of all keys.
  """
  if same(actual, before):
    return Cause(kept=True, said='')
  if actual.shape != expected.shape:
    return Cause(False, '')
  untouched = int(np.sum(actual == before))
  if untouched and untouched + int(np.sum(actual == expected)) == actual.size:
    return Cause(False, f'{untouched} of {actual.size} elements were not restored, the others were')
  other = next((o for o, v in others.items() if o != key and same(v, actual)), None)
  if other is not None:
    return Cause(False, _of_another_key(variable, key, other))
  return Cause(False, reordered(actual, expected))


def _of_another_key(variable: str, key: str, other: str) -> str:
  if other == variable:
    return (
      f'the value equals `{other}`, but TF1 evaluates with the shadow `{key}`: load the shadows '
      '(tf.train.ExponentialMovingAverage.variables_to_restore in TF1)'
    )
  if other.startswith(f'{variable}/'):
    return (
      f'the value equals the key `{other}` instead of `{key}`; if TF1 evaluates with the moving '
      'averages of its weights, declare evaluate_with_ema = True'
    )
  return f'the value equals the key `{other}` instead of `{key}`: two variables are swapped'


def reordered(actual: _Array, expected: _Array) -> str:
  """Tells in which other order an array holds the numbers of another; '' where it does not."""
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
  return 'the value holds the numbers of the key in another order'


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


def proportional(one: _Array, other: _Array) -> bool:
  """Returns whether an array is another one times a factor other than zero.

  Zeros are proportional to zeros only; integers and text have to be equal.
  """
  if one.shape != other.shape:
    return False
  if one.dtype.kind not in 'fcV' or other.dtype.kind not in 'fcV':
    return same(one, other)
  left, right = one.astype(np.float64).ravel(), other.astype(np.float64).ravel()
  if not np.any(right):
    return not np.any(left)
  factor = float(left @ right) / float(right @ right)
  allowed = _PROPORTIONAL * abs(factor) * float(np.abs(right).max())
  return factor != 0.0 and bool(np.abs(left - factor * right).max() <= allowed)
