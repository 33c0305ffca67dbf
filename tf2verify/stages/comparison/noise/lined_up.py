"""The noise of a run in which all variables hold one number, so that roundings line up.

The sum of a thousand equal terms rounds the same way at every step: its error grows with
the number of terms, not with its root, and depends on the order that a kernel adds in.
Moves by one unit in the last place do not show that. So each side is run with its
values off by up to half a unit of the sum, and with the same offsets the other way: what the
offsets change is the opposite in the two, so that their mean is what the side gives
without the error, to the second order. How far the side is from that mean is its noise.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import Observation, TensorRecord
from tf2verify.reference.arrays import widened
from tf2verify.reference.perturbation import Perturber, fraction_bits
from tf2verify.sides.fill import DitheredFill
from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.noise.reruns import Again

# Runs a side at other values.
Run = Callable[[RunSpec], Observation]


@dataclasses.dataclass(frozen=True, eq=False)
class RunOfSide:
  """One side of a run at the constant fill."""

  run: RunSpec  # what was run
  found: Observation  # what that gave
  observe: Run  # runs the side again

  def mean(self, number: int) -> Observation:
    """Returns the mean of two runs whose values are off by the same, either way."""
    one, other = (
      self.observe(dataclasses.replace(self.run, fill=DitheredFill(number, sign)))
      for sign in (1, -1)
    )
    # A layer that adds losses in every call has other ones in the next: its noise is not known.
    if len(one.regularization_losses) != len(other.regularization_losses):
      raise NotApplicable('the number of regularization losses changes from run to run')
    total = one.regularization_total, other.regularization_total
    return dataclasses.replace(
      one,
      outputs=_means(one.outputs, other.outputs),
      regularization_losses=tuple(
        dataclasses.replace(loss, value=_mean(loss.value, same.value))
        for loss, same in zip(one.regularization_losses, other.regularization_losses, strict=True)
      ),
      regularization_total=_mean_or_none(*total),
    )


def with_dither(again: Again, tf1: RunOfSide, tf2: RunOfSide) -> Again:
  """Returns what measures the noise of both sides, in turns with moves of the last bit.

  The port's own noise counts for its outputs, as far as it is off from itself.

  Args:
    again: runs the reference with moved values, or as it was.
    tf1: the reference.
    tf2: the port.
  """

  def dithered(perturber: Perturber | None, gradients: frozenset[str]) -> Observation:
    if perturber is None or perturber.number % 3 == 0:
      return again(perturber, gradients)
    try:
      if perturber.number % 3 == 1:
        return tf1.mean(perturber.number)
      return _beside(tf1.found, tf2.found, tf2.mean(perturber.number))
    except NotApplicable:  # a recorded graph that is not run here
      return again(perturber, gradients)

  return dithered


def _beside(tf1: Observation, tf2: Observation, moved: Observation) -> Observation:
  """Returns the reference's outputs, as far off as the port's are from what they were."""
  records = tuple(
    TensorRecord(one.name, _off(one.value, port.value, now.value))
    for one, port, now in zip(tf1.outputs, tf2.outputs, moved.outputs, strict=True)
  )
  return dataclasses.replace(tf1, outputs=records)


def _off(
  one: np.ndarray | None, port: np.ndarray | None, now: np.ndarray | None
) -> np.ndarray | None:
  if one is None or port is None or now is None or fraction_bits(one.dtype) is None:
    return one
  if one.shape != port.shape or port.shape != now.shape:
    return one
  with np.errstate(all='ignore'):
    return np.asarray(widened(one) + (widened(now) - widened(port))).astype(one.dtype)


def _means(
  ones: Sequence[TensorRecord], others: Sequence[TensorRecord]
) -> tuple[TensorRecord, ...]:
  return tuple(
    TensorRecord(one.name, _mean_or_none(one.value, other.value))
    for one, other in zip(ones, others, strict=True)
  )


def _mean_or_none(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
  return None if one is None or other is None else _mean(one, other)


def _mean(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  if fraction_bits(one.dtype) is None or one.shape != other.shape:
    return one
  return np.asarray((widened(one) + widened(other)) / 2).astype(one.dtype)
