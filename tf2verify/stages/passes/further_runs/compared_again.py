"""Both sides, which agree, compared in another run, to see whether it tells them apart."""

import dataclasses
import functools
import math

import numpy as np

from tf2verify.errors import BuilderError, LayerError, UserCodeError
from tf2verify.records.observation import Observation
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import repeated, rerun_of
from tf2verify.stages.comparison.regularization_in_total import settle
from tf2verify.stages.comparison.zero_by_zero import leave_out
from tf2verify.stages.stage import CaseUnderTest

# Of the greatest element of an output: what is less may be a decision, such as an epsilon of
# 1.001e-5 for 1e-5, and no fault.
CLEAR = 0.01
_REFUSALS = (UserCodeError, BuilderError, LayerError)


def compared_at(case: CaseUnderTest, run: RunSpec) -> Comparison | None:
  """Returns both sides compared in a run of tf1; None where it does not tell them apart."""
  names = {tf2: tf1 for tf1, tf2 in case.alignment().pairs}
  try:
    run_tf1 = case.tf1.prepare_filled([run])
    (tf1,) = run_tf1()
    if not _is_finite(tf1):
      return None
    (tf2,) = case.tf2.observe_filled([dataclasses.replace(run, tf1_names=names)])
  except _REFUSALS:
    return None
  if tf1.structure != tf2.structure or any(draw.in_loop for draw in tf1.random_draws):
    return None
  trial = Comparison()
  trial.outputs(tf1, tf2, case.tolerance)
  trial.regularization(tf1, tf2, case.alignment().pairs, case.regularization_tolerance)
  inspect = functools.partial(case.tf1.inspectable, run)
  trial.excuse_rounding(tf1, rerun_of(repeated(run_tf1, run)), inspect=inspect)
  leave_out(trial, inspect, tf1.run)
  settle(case, trial)
  if any(difference.may_be_rounding for difference in trial.differences):
    return None
  return trial if apart(tf1, tf2) > CLEAR else None


def apart(tf1: Observation, tf2: Observation) -> float:
  """Returns by how much an output differs at most, of its greatest element.

  Where none is floating, infinity if any differs.

  Args:
    tf1: outputs of one run.
    tf2: those of another one, of either side.
  """
  pairs = [(one.value, two.value) for one, two in zip(tf1.outputs, tf2.outputs, strict=True)]
  known = [(x, y) for x, y in pairs if x is not None and y is not None]
  if all(x.dtype.kind in 'biu' for x, _ in known):
    return 0.0 if all(np.array_equal(x, y) for x, y in known) else math.inf
  return max(part_apart(x, y) for x, y in known)


def part_apart(one: np.ndarray, other: np.ndarray) -> float:
  """Returns by how much a floating output differs, of its greatest element; 0 for another one."""
  if one.shape != other.shape or one.dtype.kind != 'f' or not one.size:
    return 0.0
  greatest = float(np.max(np.abs(one)))
  found = float(np.max(np.abs(one.astype('float64') - other)))
  if not found:
    return 0.0
  return found / greatest if np.isfinite(found) and greatest else math.inf


def _is_finite(observed: Observation) -> bool:
  values = [record.value for record in observed.outputs if record.value is not None]
  return all(bool(np.isfinite(v).all()) for v in values if v.dtype.kind in 'fc')
