"""Training steps of a reference, whichever it is."""

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

  def try_clipping(self) -> ClippingTrial | None:
    """Puts far larger gradients into a step, after the last that is looked at.

    Returns:
      What the updates would be given; None where they are given the gradients as they are.

    Raises:
      NotApplicable: that cannot be tried.
    """
