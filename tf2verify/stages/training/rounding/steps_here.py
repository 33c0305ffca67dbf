"""Whose a difference from recorded training steps is: the port's, or TensorFlow's kernels'."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tf2verify.numerics.sampling import Views
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records.sampled import SampledArray
from tf2verify.records.tensor_key import Run
from tf2verify.reference.arrays import widened
from tf2verify.stages.training.steps.quantities import QuantityPair, greatest

_Array = np.ndarray[Any, Any]
# The allowance of a pair.
Allowed = Callable[[QuantityPair], ToleranceTable]


def said_of(pairs: Iterable[QuantityPair], here: Run, allowed: Allowed) -> str:
  """Returns a note on a step that differs; '' where nothing can be told.

  Args:
    pairs: what both sides tell of the step.
    here: the same of the recorded graph, run here.
    allowed: gives the allowance of a pair.
  """
  apart, as_recorded, as_port = 0.0, True, True
  for pair in pairs:
    if pair.tf1 is None or pair.tf2 is None:
      continue
    tolerance = allowed(pair)
    if _within(pair.tf1, pair.tf2, tolerance):
      continue
    ran = here.get(pair.key)
    if ran is None or ran.shape != pair.tf2.shape:
      return ''
    as_recorded = as_recorded and _within(pair.tf1, ran, tolerance)
    as_port = as_port and _within(ran, pair.tf2, tolerance)
    apart = max(apart, _apart(ran, pair.tf2))
  if as_recorded is as_port:
    return ''
  if as_recorded:
    return (
      'the recorded graph, run by the TensorFlow that is here, takes the recorded step: what '
      "differs is the port's"
    )
  return (
    'the recorded graph, run by the TensorFlow that is here, takes the step of the port (max '
    f'relative difference {apart:.0e}), and not the recorded one: what differs are the '
    'kernels of the two versions of TensorFlow, not the port'
  )


def _within(one: _Array, other: _Array, tolerance: ToleranceTable) -> bool:
  if isinstance(one, SampledArray):
    if one.full_shape != other.shape:
      return False
    views = Views(one, other)
    one, other = views.tf1, views.tf2
  if one.shape != other.shape or one.dtype.kind not in 'fciu':
    return bool(np.array_equal(one, other))
  allowed = tolerance.for_dtype(one.dtype)
  first, second = widened(one), widened(other)
  with np.errstate(all='ignore'):
    near = np.abs(second - first) <= allowed.atol + allowed.rtol * np.abs(first)
  return bool(np.all(near | (first == second) | (np.isnan(first) & np.isnan(second))))


def _apart(one: _Array, other: _Array) -> float:
  size = greatest(one)
  return greatest(other - one) / size if size else 0.0
