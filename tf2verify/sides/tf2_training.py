"""The tf2 side in training: a fresh layer and a fresh optimizer for every run."""

from typing import Any

from tf2verify.records.training import LossObservation, TrainingRun
from tf2verify.sides import side
from tf2verify.sides.tf2_layer import Tf2Layer


class Tf2Training:
  """Takes the port's training steps."""

  def __init__(
    self, declaration: side.Declaration, layer: Tf2Layer, labels: Any, progress: side.Progress
  ) -> None:
    self._declaration = declaration
    self._layer = layer
    self._labels = labels
    self._progress = progress

  def observe_losses(self, run: side.FilledRun) -> LossObservation:
    """Runs a fresh layer and the losses from given values, eagerly."""
    raise NotImplementedError

  def observe_steps(self, run: side.FilledRun, count: int) -> TrainingRun:
    """Takes training steps with a fresh layer and a fresh optimizer, from given values."""
    raise NotImplementedError
