"""Gradients that one side scales up, by a scaled loss, and down again before they are applied."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.reference.perturbation import fraction_bits

_Array = np.ndarray[Any, Any]
Gradients = Mapping[str, _Array | None]

# What is divided out again is one number for all elements, up to the rounding of each.
_UNITS = 16.0
# Who scales takes a power of 2, or a whole number; clipping by a norm never does.
_MOST = 1024


def loss_scale(
  tf1: tuple[Gradients, Gradients],
  tf2: tuple[Gradients, Gradients],
  names: Sequence[tuple[str, str]],
) -> float:
  """Returns how many times as large tf1 computes its gradients, to divide them again.

  Args:
    tf1: gradients of a step as differentiated, and as applied, by variable.
    tf2: those of the port.
    names: pairs of tf1 and tf2 names.

  Returns:
    1 unless on both sides every gradient is applied a fixed number of times, and these
    numbers are the same multiple for all variables.
  """
  scales = set()
  for one, other in names:
    known = [raw.get(name) for (raw, _), name in ((tf1, one), (tf2, other))]
    if all(value is not None and value.any() for value in known):
      factors = [_factor(raw, applied, name) for (raw, applied), name in ((tf1, one), (tf2, other))]
      if factors[0] is None or factors[1] is None:
        return 1.0
      scales.add(factors[1] / factors[0])
  merged = list(_merged(scales))
  return merged[0] if len(merged) == 1 else 1.0


def _merged(scales: set[float]) -> Iterator[float]:
  """Yields one of all numbers that are the same up to rounding."""
  last = None
  for scale in sorted(scales):
    if last is None or not math.isclose(scale, last, rel_tol=1e-9):
      yield scale
    last = scale


def _factor(raw: Gradients, applied: Gradients, name: str) -> float | None:
  """Returns how many times a gradient is applied; None where that is not a number of `_whole`."""
  before, after = raw.get(name), applied.get(name)
  if before is None or after is None or before.shape != after.shape:
    return None
  if np.may_share_memory(before, after):  # given to the update as it is
    return 1.0
  bits = fraction_bits(before.dtype)
  if bits is None or not (np.isfinite(before).all() and np.isfinite(after).all()):
    return None
  wide = np.promote_types(before.dtype, np.float32) if before.dtype.itemsize > 2 else np.float32
  one, other = (value.astype(wide, copy=False).ravel() for value in (before, after))
  at = int(np.abs(one).argmax())
  factor = _whole(float(other[at] / one[at]), 2.0**-bits)
  if factor is None:
    return None
  allowed = _UNITS * 2.0**-bits * np.abs(factor * one)
  return factor if bool((np.abs(other - factor * one) <= allowed).all()) else None


def _whole(factor: float, unit: float) -> float | None:
  """Returns the power of 2, whole number or 1 over one that a factor is, up to rounding."""
  if not math.isfinite(factor) or factor == 0:
    return None
  power = 2.0 ** round(math.log2(abs(factor)))
  if math.isclose(factor, power, rel_tol=_UNITS * unit):
    return power
  wanted = factor if abs(factor) > 1 else 1 / factor
  whole = float(round(wanted))
  if 0 < abs(whole) <= _MOST and math.isclose(wanted, whole, rel_tol=_UNITS * unit):
    return whole if abs(factor) > 1 else 1 / whole
  return None
