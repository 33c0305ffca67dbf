"""Training steps of a reference, whichever it is."""

from collections.abc import Mapping
from typing import Protocol

from tf2verify.records.training import ClippingTrial, TrainingRun, TrainingStep


class ReferenceSteps(Protocol):
  """Training steps of the reference, one by one; a context manager that lets go of them."""

  def __enter__(self) -> 'ReferenceSteps': ...
  def __exit__(self, *_: object) -> None: ...

  def run(self) -> TrainingRun:
    """Returns what is known before the first step; first asked for before it is taken."""

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""

  def try_clipping(self, factors: Mapping[str, float] | None = None) -> ClippingTrial | None:
    """Puts far larger gradients into a step, after the last that is looked at.

    Args:
      factors: what the gradient of each variable is multiplied by, by the side's own names;
        None for one factor that brings their joint norm to about 1e6.

    Returns:
      What the updates would be given; None where they are given the gradients as they are.

    Raises:
      NotApplicable: that cannot be tried.
    """
