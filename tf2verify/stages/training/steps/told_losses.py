"""Which loss the step of a port tells."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import TrainingRun

# Of the sum of the regularization losses: what rounding of the gradients may be, and less than what
# a port that leaves them out lacks, whatever else is different in its gradients.
_LEFT_OPEN = 0.1
_MOST_LEFT_OUT = 0.5
# By how many times penalties exceed what the differences of gradients, as if by chance, add up to.
_SURE = 20.0
# Of a sum: how far rounding moves it.
_ROUNDING = 1e-6


class Told(enum.Enum):
  """What a port's step returns, by the name that findings give it."""

  TOTAL = '(total)'  # the total loss of the case
  # What the train op of TF1 differentiates, where that is not the total loss of the case, such as
  # the sum of its parts without their weights.
  MINIMIZED = '(minimized)'
  # The total without the regularization losses, although the step differentiates these as well.
  UNREGULARIZED = '(without regularization losses)'


def told(tf1: TrainingRun, tf2: TrainingRun, names: Sequence[tuple[str, str]]) -> Told:
  """Returns what the port's first step tells.

  Args:
    tf1: the reference's run, with the arrays of the first step.
    tf2: the port's, likewise.
    names: pairs of tf1 and tf2 variable names.
  """
  if _tells_minimized(tf1, tf2):
    return Told.MINIMIZED
  return Told.UNREGULARIZED if _tells_unregularized(tf1, tf2, names) else Told.TOTAL


def as_told(tf1: TrainingRun, of: Told) -> TrainingRun:
  """Returns the reference's run with the loss that the port tells, None in steps without it."""
  if of is Told.TOTAL:
    return tf1
  # What the variables are penalized by after the first step is not recorded.
  losses = [step.minimized if of is Told.MINIMIZED else None for step in tf1.steps]
  if of is Told.UNREGULARIZED and losses:
    losses[0] = unregularized(tf1)
  steps = [
    dataclasses.replace(step, loss=loss) for step, loss in zip(tf1.steps, losses, strict=True)
  ]
  return dataclasses.replace(tf1, steps=tuple(steps))


def unregularized(tf1: TrainingRun) -> np.ndarray | None:
  """Returns the total loss of the first step without the regularization losses."""
  total, penalties = tf1.steps[0].loss, tf1.regularization_total
  if total is None or penalties is None or total.size != 1 or not np.any(penalties):
    return None
  found: np.ndarray = (total - np.reshape(penalties, total.shape)).astype(total.dtype)
  return found


def _tells_minimized(tf1: TrainingRun, tf2: TrainingRun) -> bool:
  """Returns whether the port's first loss is nearer to what TF1 minimizes than to the total."""
  if not tf1.steps or tf1.steps[0].minimized is None:
    return False
  minimized, total, loss = tf1.steps[0].minimized, tf1.steps[0].loss, tf2.steps[0].loss
  if loss is None or loss.shape != minimized.shape:
    return False
  if total is None or total.shape != loss.shape:
    return True
  return bool(np.abs(loss - minimized) < np.abs(loss - total))


def _tells_unregularized(
  tf1: TrainingRun, tf2: TrainingRun, names: Sequence[tuple[str, str]]
) -> bool:
  """Returns whether the port differentiates penalties that its step does not tell.

  Of L2 penalties the gradients times the variables add up to twice their sum, of L1 penalties to
  their sum: without them in the port that is what the two sides differ by.
  """
  expected = unregularized(tf1) if tf1.steps else None
  loss = tf2.steps[0].loss if tf2.steps else None
  if expected is None or loss is None or tf1.regularization_total is None or loss.size != 1:
    return False
  penalties = float(np.sum(np.abs(tf1.regularization_total)))
  allowed = _ROUNDING * (abs(float(loss.reshape(()))) + penalties)
  if abs(float(np.sum(loss) - np.sum(expected))) > allowed:
    return False
  before = {record.name: record.value for record in tf1.values_before}
  ones, others = ({r.name: r.value for r in run.steps[0].gradients} for run in (tf1, tf2))
  apart = size = square = 0.0
  for name, port in names:
    one, other, value = ones.get(name), others.get(port), before.get(name)
    if one is None and other is None:
      continue
    if one is None or other is None or value is None or not one.shape == other.shape == value.shape:
      return False
    if isinstance(value, SampledArray):
      return False  # a part of the variables tells a part of the penalties
    difference = other.astype(np.float64) - one
    apart += _along(value, difference)
    square += float(np.sum((value * difference) ** 2))
    size += _along(np.abs(value), np.abs(one))
  if not size:
    return False  # no gradient is known: nothing shows what the port differentiates
  # Elements round each in its own way: their sum is much less than the sum of all bounds.
  is_seen = _ROUNDING * size < _LEFT_OPEN * penalties or _SURE * square**0.5 < penalties
  return is_seen and apart > -_MOST_LEFT_OUT * penalties


def _along(value: Any, gradient: Any) -> float:
  return float(np.sum(value.astype(np.float64) * gradient))
