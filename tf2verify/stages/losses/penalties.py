"""How each variable counts in what both sides add to their losses: weight decay, mostly."""

import dataclasses
import time

import numpy as np

from tf2verify.diagnosis.evidence.losses import Penalty
from tf2verify.errors import Tf2VerifyError
from tf2verify.numerics.arrays import total
from tf2verify.records.training import LossObservation
from tf2verify.sides.fill import ScaledFill
from tf2verify.stages.losses.losses_in_model import InModel
from tf2verify.stages.stage import CaseUnderTest, by_name

# The greatest time that is spent on it, in seconds: two runs for each variable.
_SECONDS = 20.0
_TWICE, _FOUR_TIMES = 2.0, 4.0
# How many times as much a sum grows where a variable is four times as large as where it is twice.
_GROWTH = {5.0: 'the square', 3.0: 'the absolute value'}
# What is added is the difference of two sums in float32: of the loss, so much is its rounding.
_ROUNDING = 1e-6
_SAME = 1e-3


def penalties(case: CaseUnderTest, model: InModel) -> tuple[Penalty, ...]:
  """Returns the variables that count differently; none where that cannot be told.

  Each trained variable is doubled in turn, on both sides, and what the sides add to their losses
  changes by what they add for it: by three times a sum of squares, by once a norm.
  """
  if _added(model.tf1) is None or _added(model.tf2) is None:
    return ()
  ones, others = (by_name(side.inventory()) for side in (case.tf1, case.tf2))
  started, found = time.monotonic(), []
  for tf1_name, tf2_name in case.alignment().pairs:
    if tf1_name not in ones or not ones[tf1_name].trainable:
      continue
    if time.monotonic() - started > _SECONDS:
      return ()  # a part would look like all of it
    try:
      changes = _changes(case, model, tf1_name, _TWICE)
      if changes is None:
        return ()
      tf1, tf2, rounding = changes
      if abs(tf1 - tf2) <= rounding + _SAME * max(abs(tf1), abs(tf2)):
        continue
      more = _changes(case, model, tf1_name, _FOUR_TIMES)
    except Tf2VerifyError:
      return ()
    counts = [value if abs(value) > rounding else 0.0 for value in (tf1, tf2)]
    of = [_of(*pair) for pair in zip(counts, more or (0.0, 0.0), strict=False)]
    source = others[tf2_name].source if tf2_name in others else None
    found.append(Penalty(tf1_name, counts[0], counts[1], of[0], of[1], source))
  return tuple(found)


def _of(twice: float, four_times: float) -> str:
  """Returns what of a variable is added up; '' where that is something else."""
  growth = four_times / twice if twice else 0.0
  return next((what for known, what in _GROWTH.items() if np.isclose(growth, known, 0.02)), '')


def _changes(
  case: CaseUnderTest, model: InModel, variable: str, factor: float
) -> tuple[float, float, float] | None:
  """Returns by how much what tf1 and the port add changes, and what of that may be rounding."""
  fills = [ScaledFill(run.fill, variable, factor) for run in model.runs]
  runs = [dataclasses.replace(run, fill=fill) for run, fill in zip(model.runs, fills, strict=True)]
  observed = (
    case.tf1_training.observe_losses(runs[0], again=True),
    case.tf2_training.observe_losses(runs[1]),
  )
  changes, rounding = [], 0.0
  for before, after in zip((model.tf1, model.tf2), observed, strict=True):
    known, now = _added(before), _added(after)
    if known is None or now is None:
      return None
    changes.append(now - known)
    rounding += _ROUNDING * (total(np.abs(before.total_loss)) + total(np.abs(after.total_loss)))
  return changes[0], changes[1], rounding


def _added(found: LossObservation) -> float | None:
  added = total(found.total_loss) - total(found.loss)
  return added if np.isfinite(added) else None
