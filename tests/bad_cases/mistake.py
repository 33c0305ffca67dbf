"""What a report has to say of a mistake."""

import dataclasses

import tf2verify

_Status = tf2verify.Status


@dataclasses.dataclass(frozen=True)
class Mistake:
  """The first verdict that is not PASSED.

  Attributes:
    stage: the stage that finds it.
    status: its status.
    side: of an error; '' where the stage itself found it.
    text: parts of what the report says, in order.
  """

  stage: str
  status: tf2verify.Status
  side: str
  text: tuple[str, ...]


def error(stage: str, side: str, *text: str) -> Mistake:
  """Returns a mistake that keeps the stage from running."""
  return Mistake(stage, _Status.ERROR, side, text)


def failed(stage: str, *text: str) -> Mistake:
  """Returns a mistake that the stage's own check finds."""
  return Mistake(stage, _Status.FAILED, '', text)


def not_applicable(stage: str, *text: str) -> Mistake:
  """Returns a mistake that leaves the stage nothing to look at."""
  return Mistake(stage, _Status.NOT_APPLICABLE, '', text)
