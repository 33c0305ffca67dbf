"""What a known mistake looks like."""

import abc

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.records.diagnosis import Cause


class Rule(abc.ABC):
  """Recognizes one known mistake.

  A rule never guesses: it looks for marks that this mistake leaves and no other, and
  says what it has seen.

  Attributes:
    name: the mistake's, as reports and docs call it.
  """

  name: str

  @abc.abstractmethod
  def explain(self, evidence: Evidence) -> Cause | None:
    """Returns the cause with what was seen; None where the marks are not there."""

  def cause(self, text: str, evidence: str) -> Cause:
    """Returns a cause of this rule's name.

    Args:
      text: what is wrong and how to mend it, one sentence.
      evidence: what was seen.
    """
    return Cause(self.name, text, evidence)
