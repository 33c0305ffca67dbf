"""How a stage, or a case, ended."""

import enum


class Status(enum.Enum):
  """How a stage, or a case, ended; the order is that of severity."""

  PASSED = 'PASSED'
  NOT_APPLICABLE = 'NOT_APPLICABLE'
  INCONCLUSIVE = 'INCONCLUSIVE'
  BLOCKED = 'BLOCKED'
  FAILED = 'FAILED'
  ERROR = 'ERROR'

  @property
  def is_failure(self) -> bool:
    """Whether it needs a look: FAILED, ERROR or INCONCLUSIVE. What one causes is BLOCKED."""
    return self in (Status.FAILED, Status.ERROR, Status.INCONCLUSIVE)
