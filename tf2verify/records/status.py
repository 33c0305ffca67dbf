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
