"""What a report has to say of a mistake."""

import dataclasses

import tf2verify

Status = tf2verify.Status


@dataclasses.dataclass(frozen=True)
class Mistake:
  """The first verdict that is not PASSED.

  Attributes:
    stage: the stage that finds it.
    status: its status.
    side: of an error; '' where the stage itself found it.
    text: what the report says, in this order.
  """

  stage: str
  status: tf2verify.Status
  side: str
  text: tuple[str, ...]
