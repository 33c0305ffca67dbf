"""Training steps read back from a recording."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tf2verify.errors import NotApplicable
from tf2verify.records.training import ClippingTrial, TrainingRun, TrainingStep
from tf2verify.sides.side import Change, Factor


class RecordedSteps:
  """Recorded training steps, one by one."""

  def __init__(
    self,
    recorded: TrainingRun,
    try_clipping: Callable[[Mapping[str, float] | None], ClippingTrial | None],
  ) -> None:
    """Takes what was recorded.

    Args:
      recorded: the steps.
      try_clipping: as `ReferenceSteps.try_clipping`.
    """
    self._recorded = recorded
    self._number = 0
    self._try_clipping = try_clipping

  def __enter__(self) -> 'RecordedSteps':
    return self

  def __exit__(self, *_: object) -> None:
    pass

  def run(self) -> TrainingRun:
    """Returns what is known before the first step."""
    return dataclasses.replace(self._recorded, steps=())

  def take(self) -> TrainingStep:
    """Returns the next step."""
    self._number += 1
    return self._recorded.steps[self._number - 1]

  def take_with(self, change: Change) -> TrainingStep:
    """Raises `NotApplicable`: no step was recorded on another batch."""
    raise NotApplicable('the steps of the reference were recorded')

  def take_scaled(self, factor: Factor, change: Change | None = None) -> TrainingStep:
    """Raises `NotApplicable`: no step was recorded at other gradients."""
    raise NotApplicable('the steps of the reference were recorded')

  def rates(self, counts: Sequence[int]) -> list[float]:
    """Raises `NotApplicable`: only the rates of the steps were recorded."""
    raise NotApplicable('the steps of the reference were recorded')

  def further_rates(self, counts: Sequence[int]) -> list[list[float] | None]:
    """Returns that none is known but that of the first optimizer."""
    del counts
    return [None for _ in self.run().optimizers[1:]]

  def take_at_rate(self, factor: float) -> TrainingStep:
    """Raises `NotApplicable`: no step was recorded at another rate."""
    raise NotApplicable('the steps of the reference were recorded')

  def try_clipping(
    self, factors: Mapping[str, float] | None = None, change: Change | None = None
  ) -> ClippingTrial | None:
    """Puts far larger gradients into the recorded train op; see `ReferenceSteps`."""
    if change is not None:
      raise NotApplicable('the steps of the reference were recorded')
    return self._try_clipping(factors)
