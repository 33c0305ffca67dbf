"""How the values of two sides are related at one place, whatever operations compute them."""

import numpy as np

from tf2verify.diagnosis.patterns.numbers.arrays import (
  affine,
  constant_factor,
  differing,
  permutation,
)

# A relation that few elements show may be there by chance.
_LEAST_ELEMENTS = 4
# What a factor may be apart from 1, and is none.
_ONE = 1e-5
_LONGEST_SHIFTED = 1024


def value_text(tf1: np.ndarray, tf2: np.ndarray) -> str:
  """Returns in words by what simple rule the port's values follow from those of tf1.

  Another dtype of the same values, zeros of one side alone (a mask), a factor, an offset, a limit,
  slices in another order or one step off. A rule has to explain all elements.

  Args:
    tf1: the tf1 side's array, of any shape.
    tf2: the port's, computed from the same inputs, as tf1 holds it.

  Returns:
    '' where there is no such rule, the shapes differ, or the arrays are too small to tell.
  """
  if tf1.shape != tf2.shape:
    return ''
  if tf1.dtype != tf2.dtype and np.array_equal(tf1, tf2):
    return (
      f'the port yields {tf2.dtype} where tf1 yields {tf1.dtype}, with the same values: cast it'
    )
  if tf1.size < _LEAST_ELEMENTS:
    return ''
  if any(array.dtype.kind != 'f' or not np.isfinite(array).all() for array in (tf1, tf2)):
    return ''
  differs = differing(tf1, tf2)
  if not differs.any():
    return ''
  return (
    _limit_text(tf1, tf2, differs)  # before zeros: those of a ReLU are no mask
    or _zeros_text(tf1, tf2, differs)
    or _order_text(tf1, tf2)
    or _shift_text(tf1, tf2)
    or _affine_text(tf1, tf2)
  )


def _zeros_text(tf1: np.ndarray, tf2: np.ndarray, differs: np.ndarray) -> str:
  """Says that one side is 0 wherever the two differ, and not everywhere."""
  count = int(differs.sum())
  for side, zero in (('tf1', tf1), ('the port', tf2)):
    if zero[differs].any() or not zero.any():
      continue  # where all is 0, zeros tell nothing
    one = 'the port' if side == 'tf1' else 'tf1'
    where = _slices_text(differs)
    return (
      f'{side} has zeros where {one} keeps other values, as from a mask or padding: '
      f'{count:,} of {differs.size:,} elements{where}; all others agree'
    )
  return ''


def _slices_text(differs: np.ndarray) -> str:
  """Returns which slices along one axis are those that differ, as a whole; '' where none are."""
  for axis in range(differs.ndim):
    rows = np.moveaxis(differs, axis, 0).reshape(differs.shape[axis], -1)
    whole = rows.all(axis=1)
    if rows.shape[0] > 1 and bool((whole == rows.any(axis=1)).all()):
      numbers = np.flatnonzero(whole).tolist()
      more = ', …' if len(numbers) > 6 else ''
      return f' (axis {axis}: {", ".join(map(str, numbers[:6]))}{more})'
  return ''


def _order_text(tf1: np.ndarray, tf2: np.ndarray) -> str:
  for axis in range(tf1.ndim):
    order = permutation(tf1, tf2, axis)
    if order is None:
      continue
    if order == tuple(reversed(range(len(order)))):
      return f'the port has the values of tf1 in reverse order along axis {axis}'
    if {(place - n) % len(order) for n, place in enumerate(order)} == {order[0]}:
      return f'the port has the values of tf1 rolled by {order[0]} along axis {axis}'
    return f'the port has the values of tf1 in a different order along axis {axis}'
  return ''


def _shift_text(tf1: np.ndarray, tf2: np.ndarray) -> str:
  """Says that slices are one step later or earlier, with something else at the end."""
  for axis in range(tf1.ndim):
    if not 2 < tf1.shape[axis] <= _LONGEST_SHIFTED:
      continue
    one, other = np.moveaxis(tf1, axis, 0), np.moveaxis(tf2, axis, 0)
    if bool((one == one[:1]).all()):
      continue
    for when, later in (('later', (other[1:], one[:-1])), ('earlier', (other[:-1], one[1:]))):
      if not differing(*later).any():
        return f'the port has the values of tf1 one step {when} along axis {axis}'
  return ''


def _limit_text(tf1: np.ndarray, tf2: np.ndarray, differs: np.ndarray) -> str:
  """Says that one side is the other one, cut off at a number."""
  if differs.sum() < 2 or differs.all():
    return ''
  for side, cut, other in (('the port', tf2, tf1), ('tf1', tf1, tf2)):
    for most, end in (('most', cut.max()), ('least', cut.min())):
      limited = np.minimum(other, end) if most == 'most' else np.maximum(other, end)
      # One number for one other may be a factor as well.
      is_cut = bool((cut[differs] == end).all()) and np.ptp(other[differs]) > 0 < np.ptp(cut)
      if is_cut and not differing(limited, cut).any():
        one = 'tf1' if side == 'the port' else 'the port'
        return f'{side} has the values of {one}, clipped to at {most} {end:.6g}'
  return ''


def _affine_text(tf1: np.ndarray, tf2: np.ndarray) -> str:
  if (tf2 == tf2.flat[0]).all():
    return ''  # one number, whatever tf1 has, is no function of it
  factor = constant_factor(tf1, tf2)
  if factor is not None:  # 1 where huge values of a mask are what agrees
    if abs(factor - 1.0) < _ONE:
      return ''
    return f'the port has the values of tf1 times {factor:.6g}'
  known = affine(tf1, tf2)
  if known is None:
    return ''
  if abs(known.factor - 1.0) < _ONE:
    return f'the port has the values of tf1 plus {known.offset:.6g}'
  return f'the port has the values of tf1 times {known.factor:.6g} plus {known.offset:.6g}'
