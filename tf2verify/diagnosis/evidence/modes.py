"""What an execution mode computes, beside eager mode."""

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class ModeEvidence:
  """What differs in one call of a mode.

  Attributes:
    computes_inference: whether a call in training mode yields what one in inference mode
      yields, embedded.
    is_loss_alone: whether the loss differs and no output does.
    loss_of_constants_agrees: tries whether the loss of the same outputs, as constants, is
      that of eager mode.
    factor: that all tensors have which differ, on replicas; None without one.
  """

  computes_inference: bool
  is_loss_alone: bool
  loss_of_constants_agrees: Callable[[], bool]
  factor: float | None


@dataclasses.dataclass(frozen=True)
class PythonState:
  """Eager mode computes something else at its next call.

  Attributes:
    generator: of random numbers in Python that the port draws from; '' without one.
  """

  generator: str
