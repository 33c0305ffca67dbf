"""How many units in the last place two floating tensors are apart, as a histogram."""

from typing import Any

import numpy as np

from tf2verify.reference.perturbation import fraction_bits

_Array = np.ndarray[Any, Any]

# Elements looked at, so that a large tensor costs no more than a fraction of a millisecond.
SAMPLE = 2**14
_COMPONENTS = {'complex64': np.float32, 'complex128': np.float64}
_UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def ulp_histogram(tf1: _Array, tf2: _Array) -> tuple[int, ...]:
  """Counts elements by their distance in units in the last place.

  The distance counts the numbers of the dtype between the two, so that it goes through
  zero, where -0 is 0.

  Args:
    tf1: float16, bfloat16, float32, float64 or complex.
    tf2: of the same shape and dtype.

  Returns:
    At 0 the number of equal elements, at n that of elements from 2**(n - 1) to 2**n - 1
    units apart; no zeros at the end. Of every k-th element of a tensor of more than
    `SAMPLE`, and only of those finite on both sides; complex parts count alone. Empty
    for another dtype.
  """
  if fraction_bits(tf1.dtype) is None:
    return ()
  step = max(1, -(-tf1.size // SAMPLE))
  ones, others = (np.ascontiguousarray(np.asarray(side).reshape(-1)[::step]) for side in (tf1, tf2))
  component = _COMPONENTS.get(ones.dtype.name)
  if component is not None:
    ones, others = ones.view(component), others.view(component)
  finite = np.isfinite(ones) & np.isfinite(others)
  first, second = _ranks(ones[finite]), _ranks(others[finite])
  distance = np.maximum(first, second) - np.minimum(first, second)
  # The exponent of 2**n - 1 is n: 0 for 0, 1 for 1, 2 for 2 and 3.
  exponents = np.frexp(distance.astype(np.float64))[1]
  return tuple(int(count) for count in np.bincount(exponents)) if exponents.size else ()


def _ranks(values: _Array) -> _Array:
  """Returns the place of each number among all of its dtype, those without a sign in the middle."""
  native = values.astype(values.dtype.newbyteorder('='))
  unsigned = _UNSIGNED[native.dtype.itemsize]
  bits = native.view(unsigned).astype(np.uint64)
  middle = np.uint64(1) << np.uint64(8 * native.dtype.itemsize - 1)
  size = bits & (middle - np.uint64(1))
  ranks: _Array = np.where(bits & middle != 0, middle - size, middle + size)
  return ranks
