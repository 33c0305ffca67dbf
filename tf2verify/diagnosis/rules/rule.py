"""What a known mistake looks like."""

import dataclasses
from collections.abc import Callable
from typing import Generic, TypeVar

from tf2verify.records.diagnosis import Cause

E = TypeVar('E')


@dataclasses.dataclass(frozen=True)
class Sentence(Generic[E]):
  """Finds a cause that one condition shows, and one sentence says."""

  holds: Callable[[E], bool]
  text: str  # with `{0.field}` for a field of the evidence

  def __call__(self, evidence: E) -> Cause | None:
    """Returns the cause where the condition holds."""
    return Cause(self.text.format(evidence)) if self.holds(evidence) else None


@dataclasses.dataclass(frozen=True)
class Rule(Generic[E]):
  """Recognizes one known mistake.

  A rule never guesses: it looks for marks that this mistake leaves and no other, and
  says what it has seen.
  """

  name: str  # the mistake's, as reports and docs call it
  reads: type[E]  # the kind of evidence that shows it, a class of `diagnosis.evidence`
  # Returns the cause with what was seen; None where the marks are not there.
  find: Callable[[E], Cause | None]
  # Where the cause can be accepted, since it says what TF1 has to be run with to compute the port's
  # numbers: the last stage that shows it first. '' where it cannot be predicted.
  predicted_by: str = ''

  def explain(self, evidence: E) -> Cause | None:
    """Returns the cause under the rule's name; None where the marks are not there."""
    found = self.find(evidence)
    return None if found is None else dataclasses.replace(found, rule=self.name)
