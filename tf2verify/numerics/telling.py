"""Whether two tensors that agree could have disagreed.

Two that a port of zeros, or of twice as much, would agree with as well tell nothing of
the port, and neither do integers, booleans or texts that are all the same.
"""

import enum
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf2verify.numerics.tolerance import EXACT, FLOATING_DTYPES, Tolerance, dtype_name
from tf2verify.reference.arrays import widened

_Array = np.ndarray[Any, Any]
_CHUNK = 2**16


class Blank(enum.Enum):
  """Why a tensor tells nothing."""

  EMPTY = 'empty'
  NAN = 'nan'
  NON_FINITE = 'non-finite'
  ZERO = 'zero'
  TOLERANCE = 'tolerance'
  SAME = 'same'
  DEGENERATE = 'degenerate'


def blank(tf1: _Array, tolerance: Tolerance, identical: bool) -> Blank | None:
  """Returns why a tensor that agrees tells nothing of the port; None where it tells something.

  A floating or complex one tells something if one of its finite elements x is not within
  its own allowance of 0: |x| > atol + rtol * |x|. For |0 - x| and |2x - x| are |x|, zeros
  and twice as much pass or fail together. Where the sides are the same bit by bit no
  allowance was needed, so that none counts.

  Args:
    tf1: the reference; the port agrees with it.
    tolerance: the allowance that the two were compared by.
    identical: whether they are the same bit by bit.
  """
  if not tf1.size:
    return Blank.EMPTY
  if dtype_name(tf1.dtype) not in FLOATING_DTYPES:
    flat = tf1.reshape(-1)
    return Blank.SAME if all(np.all(part == flat[0]) for part in _parts(flat)) else None
  allowed = EXACT if identical else tolerance
  finite, nan, any_value = True, False, False
  for part in _parts(tf1.reshape(-1)):
    sizes = np.abs(widened(part))
    known = np.isfinite(sizes)
    if np.any(known & ~_within(sizes, allowed)):
      return None
    finite = finite and bool(known.all())
    nan = nan or bool(np.isnan(sizes).any())
    any_value = any_value or bool(np.any(sizes[known]))
  if not finite:
    return Blank.NAN if nan else Blank.NON_FINITE
  return Blank.TOLERANCE if any_value else Blank.ZERO


def constant_of(value: _Array) -> str:
  """Returns the element of a tensor that is `SAME`, as text."""
  return str(value.reshape(-1)[0])


def within_allowance_of_zero(size: float, rtol: float, atol: float) -> bool:
  """Returns whether a finite number of this size is within its own allowance of zero."""
  return math.isfinite(size) and size <= atol + rtol * size


def _within(sizes: _Array, allowed: Tolerance) -> _Array:
  with np.errstate(all='ignore'):
    found: _Array = sizes <= allowed.atol + allowed.rtol * sizes
  return found


def _parts(flat: _Array) -> Iterator[_Array]:
  """Yields growing parts, since the first few elements settle most tensors."""
  start, size = 0, 64
  while start < flat.size:
    yield flat[start : start + size]
    start, size = start + size, min(16 * size, _CHUNK)
