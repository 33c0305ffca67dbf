"""Training steps of a reference, whichever it is."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tf2verify.records.training import ClippingTrial, TrainingRun, TrainingStep
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.side import Change, Factor


class ReferenceSteps(Protocol):
  """Training steps of the reference, one by one; a context manager that lets go of them."""

  def __enter__(self) -> 'ReferenceSteps': ...
  def __exit__(self, *_: object) -> None: ...

  def run(self) -> TrainingRun:
    """Returns what is known before the first step; first asked for before it is taken."""

  def take(self) -> TrainingStep:
    """Takes a step and reads everything after it."""

  def take_with(self, change: Change) -> TrainingStep:
    """Takes a step on another batch, and reads everything after it.

    Args:
      change: returns what each array of inputs and labels is in it.

    Raises:
      NotApplicable: the steps were recorded.
    """

  def take_scaled(self, factor: Factor, change: Change | None = None) -> TrainingStep:
    """Takes a step at all gradients, as differentiated, times a factor; reads everything after it.

    Args:
      factor: one for all, or one for each variable, by the side's own names.
      change: of the batch, as `take_with`; None for none.

    Raises:
      NotApplicable: the steps were recorded, or the gradients cannot be replaced.
    """

  def rates(self, counts: Sequence[int]) -> list[float]:
    """Returns the learning rates at counts of steps, which stay as they are.

    Raises:
      NotApplicable: the rate does not depend on a count, or that cannot be tried.
    """

  def further_rates(self, counts: Sequence[int]) -> list[list[float] | None]:
    """Returns the rates of all optimizers but the first; None for one that cannot be asked."""

  def take_at_rate(self, factor: float) -> TrainingStep:
    """Takes a step at the learning rate times a factor, and reads everything after it.

    Raises:
      NotApplicable: several optimizers have rates of their own, or that cannot be tried.
    """

  def try_clipping(
    self, factors: Mapping[str, float] | None = None, change: Change | None = None
  ) -> ClippingTrial | None:
    """Puts far larger gradients into a step, after the last that is looked at.

    Args:
      factors: what the gradient of each variable is multiplied by, by the side's own names;
        None for one factor that brings their global norm to about 1e6.
      change: of the batch, as `take_with`, which has taken a step on it; None for none.

    Returns:
      What the updates would be given; None where they are given the gradients as they are.

    Raises:
      NotApplicable: that cannot be tried.
    """


class PreparedSteps:
  """Training steps that are ready to be taken, in a fresh session each time."""

  def __init__(
    self,
    begin: Callable[[Perturber | None, bool], ReferenceSteps],
    count: int,
    here: Callable[[], ReferenceSteps] | None = None,
  ) -> None:
    """Takes what opens a session.

    Args:
      begin: opens it, before its first step.
      count: of steps.
      here: the same for steps by this TensorFlow, of a reference that is recorded.
    """
    self._begin = begin
    self._count = count
    self.here = here

  def __call__(self, perturber: Perturber | None) -> TrainingRun:
    """Takes all steps: from moved values, or as they are for None."""
    with self.begin(perturber) as steps:
      taken = tuple(steps.take() for _ in range(self._count))
      return dataclasses.replace(steps.run(), steps=taken)

  def begin(self, perturber: Perturber | None, again: bool = False) -> ReferenceSteps:
    """Returns a session before its first step, to be taken one by one.

    Args:
      perturber: moves inputs and values; None leaves them.
      again: whether the steps are to show if they repeat themselves.
    """
    return self._begin(perturber, again)
