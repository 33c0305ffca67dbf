"""Marks that mistakes leave in the numbers."""

import dataclasses

import numpy as np

from tf2verify.numerics.agreement import ROUNDING_EPSILONS

# Blocks beyond these are not looked for: the search is quadratic.
_LONGEST_PERMUTED = 4096
_ROUNDING = 1e-4
# Of a difference that a factor explains; and of the greatest number, that of rounding.
_SHARE_LEFT = 0.02
_NOISE = 2e-6


@dataclasses.dataclass(frozen=True)
class Affine:
  """`tf2 = factor * tf1 + offset`, for all elements."""

  factor: float  # of every element
  offset: float = 0.0  # added to every element; 0 where the factor alone explains it


def constant_factor(tf1: np.ndarray, tf2: np.ndarray, rtol: float = _ROUNDING) -> float | None:
  """Returns the factor between two arrays, tf2 over tf1; None where no single one explains them.

  Args:
    tf1: the tf1 side's array, floating, of any shape.
    tf2: the tf2 side's, of the same shape.
    rtol: how far an element may be from the product, relative to the greatest one.
  """
  one, other = _wide(tf1, tf2)
  if one is None or other is None or not one.any():
    return None
  factor = float((one * other).sum() / (one * one).sum())
  return factor if factor and _explained(one, other, factor * one, rtol) else None


def affine(tf1: np.ndarray, tf2: np.ndarray) -> Affine | None:
  """Returns by what scale and offset tf2 follows from tf1; None where it does not."""
  factor = constant_factor(tf1, tf2)
  if factor is not None:
    return Affine(factor)
  one, other = _wide(tf1, tf2)
  if one is None or other is None or one.size < 3 or np.ptp(one) == 0:
    return None
  factor, offset = (float(number) for number in np.polyfit(one.ravel(), other.ravel(), 1))
  explained = _explained(one, other, factor * one + offset, _ROUNDING)
  return Affine(factor, offset) if explained else None


def _explained(one: np.ndarray, other: np.ndarray, by: np.ndarray, rtol: float) -> bool:
  """Returns whether next to nothing of a difference is left, which may be a small one."""
  most = float(np.abs(other).max())
  least = max(_SHARE_LEFT * float(np.abs(other - one).max()), _NOISE * most)
  return bool((np.abs(other - by) <= min(rtol * most, least)).all())


def permutation(tf1: np.ndarray, tf2: np.ndarray, axis: int) -> tuple[int, ...] | None:
  """Returns for every slice of tf1 along an axis where it is in tf2.

  None where slices are not the same but for their order, where two are alike, or
  where the order is the same. Besides slices that are the same bit by bit, others may
  differ by rounding.
  """
  if tf1.shape != tf2.shape or not 1 < tf1.shape[axis] <= _LONGEST_PERMUTED:
    return None
  ones, others = (np.moveaxis(array, axis, 0).reshape(tf1.shape[axis], -1) for array in (tf1, tf2))
  places: dict[bytes, int] = {other.tobytes(): n for n, other in enumerate(others)}
  found = [places.get(one.tobytes(), -1) for one in ones]
  if -1 in found and max(found) >= 0:
    found = _with_rounded(ones, others, found)
  if sorted(found) != list(range(len(found))) or found == sorted(found):
    return None
  return tuple(found)


def _with_rounded(ones: np.ndarray, others: np.ndarray, found: list[int]) -> list[int]:
  """Returns places of slices, those that differ by rounding filled in where only one fits."""
  if any(array.dtype.kind != 'f' for array in (ones, others)):
    return found
  free = sorted(set(range(len(others))) - set(found))
  left = others[free]
  allowed = ROUNDING_EPSILONS * np.finfo(ones.dtype).eps * np.abs(ones).max(initial=0.0)
  filled = list(found)
  for n, place in enumerate(found):
    if place < 0:
      near = np.flatnonzero((np.abs(left - ones[n]) <= allowed).all(axis=1))
      filled[n] = free[int(near[0])] if len(near) == 1 else -1
  return filled


def differing(tf1: np.ndarray, tf2: np.ndarray) -> np.ndarray:
  """Returns which elements of two arrays of one shape differ by more than rounding."""
  if any(array.dtype.kind not in 'fV' for array in (tf1, tf2)):
    return np.asarray(tf1 != tf2)
  one, other = tf1.astype(np.float64), tf2.astype(np.float64)
  same = (one == other) | (np.isnan(one) & np.isnan(other))
  with np.errstate(invalid='ignore'):
    return np.asarray(~(same | (np.abs(other - one) <= 1e-6 + _ROUNDING * np.abs(one))))


def is_zero_where_different(tf1: np.ndarray, tf2: np.ndarray) -> bool:
  """Returns whether tf1 is exactly 0 in every element that differs."""
  return tf1.shape == tf2.shape and not bool(tf1[differing(tf1, tf2)].any())


def repeats_before(tf1: np.ndarray, tf2: np.ndarray) -> int | None:
  """Returns the axis along which tf2 repeats its slice before, wherever the two differ."""
  if tf1.shape != tf2.shape:
    return None
  differs = differing(tf1, tf2)
  for axis in range(tf1.ndim):
    moved, here = np.moveaxis(tf2, axis, 0), np.moveaxis(differs, axis, 0)
    if here.any() and not here[0].any() and bool((moved[1:] == moved[:-1])[here[1:]].all()):
      return axis
  return None


def ends(tf1: np.ndarray, axis: int) -> np.ndarray:
  """Returns for every row, the first axis but `axis`, up to where along `axis` it is not zero.

  Args:
    tf1: rank 2 or more.
    axis: 0 or 1; the other one is that of the rows.
  """
  used = np.moveaxis(tf1, axis, 1) != 0
  used = used.reshape(*used.shape[:2], -1).any(axis=2)
  steps = np.arange(1, used.shape[1] + 1)
  return np.asarray((used * steps).max(axis=1))


def _wide(tf1: np.ndarray, tf2: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
  """Returns both arrays in float64; None where they cannot be set against each other."""
  if tf1.shape != tf2.shape or not tf1.size:
    return None, None
  if any(array.dtype.kind not in 'fV' for array in (tf1, tf2)):  # V: bfloat16
    return None, None
  one, other = tf1.astype(np.float64), tf2.astype(np.float64)
  if not (np.isfinite(one).all() and np.isfinite(other).all()):
    return None, None
  return one, other
