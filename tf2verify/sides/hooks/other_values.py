"""Other values for one input, as legal as those that it has."""

from collections.abc import Iterator

import numpy as np


def other_values(array: np.ndarray) -> Iterator[np.ndarray]:
  """Yields arrays that differ from this one and stay in its domain, the safest first.

  The same values at other places: whole rows, then along the other axes. Where that is no
  change, flags flip at every second element, an integer becomes one less (a length, an
  id), and a floating number three quarters of itself (a rate, a temperature). A constant
  string has no other value.
  """
  for axis, size in enumerate(array.shape):
    rolled = np.roll(array, 1, axis)
    if size > 1 and not np.array_equal(rolled, array):
      yield rolled
  if array.dtype.kind not in 'biuf':
    return
  values = [] if not array.size else np.unique(array).tolist()
  is_flag = set(values) <= {0, 1} and (array.ndim > 0 or array.dtype.kind != 'f')
  if not values or (len(values) > 1 and not is_flag):
    return
  changed = np.array(array)
  flat = changed.reshape(-1)
  every = slice(min(1, flat.size - 1), None, 2)
  if array.dtype.kind == 'b':
    flat[every] = ~flat[every]
  elif is_flag:
    flat[every] = 1 - flat[every]
  elif array.dtype.kind == 'f':
    flat[every] = flat[every] * 0.75 if values[0] else 0.25
  else:
    flat[every] -= np.sign(flat[every])
  yield changed
