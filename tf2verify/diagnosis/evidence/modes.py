"""What an execution mode computes, next to eager mode."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class ModeEvidence:
  """What differs in one call of a mode."""

  # Whether a call in training mode yields what one in inference mode yields, embedded.
  computes_inference: bool
  is_loss_alone: bool  # whether the loss differs and no output does
  # Tries whether the loss of the same outputs, as constants, is that of eager mode.
  loss_of_constants_agrees: Callable[[], bool]
  factor: float | None  # that all tensors have which differ, on replicas; None without one


@dataclasses.dataclass(frozen=True)
class PythonState:
  """Eager mode computes something else at its next call."""

  generator: str  # of random numbers in Python that the port draws from; '' without one

  @property
  def source(self) -> str:
    """What it depends on, as text."""
    known = f'it draws from {self.generator}' if self.generator else ''
    return known or 'it depends on something in Python'
