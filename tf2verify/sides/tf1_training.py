"""The tf1 side in training: one graph with losses and train op, run in fresh sessions."""

from collections.abc import Callable
from typing import Any

from tf2verify.compare.moving import Mover
from tf2verify.records.training import LossObservation, TrainingRun
from tf2verify.sides import side

# Repeats the steps in a fresh session: moved, or as they were for None.
PreparedSteps = Callable[[Mover | None], TrainingRun]


class Tf1Training:
  """Builds the training graph once, in constant mode: model, losses, train op."""

  def __init__(
    self, declaration: side.Declaration, inputs: Any, labels: Any, progress: side.Progress
  ) -> None:
    self._declaration = declaration
    self._inputs = inputs
    self._labels = labels
    self._progress = progress

  def observe_losses(self, run: side.FilledRun) -> LossObservation:
    """Runs model and losses in a fresh session from given values."""
    raise NotImplementedError

  def prepare_steps(self, run: side.FilledRun, count: int) -> PreparedSteps:
    """Builds what training steps need and returns the run itself, as `prepare_filled` does."""
    raise NotImplementedError

  def save(self, run: side.FilledRun, count: int, prefix: str) -> str:
    """Takes training steps and saves every variable, with slots, as a name-based checkpoint.

    Returns:
      The prefix as `Saver.save` gives it.
    """
    raise NotImplementedError

  def close(self) -> None:
    """Lets go of the graph."""
