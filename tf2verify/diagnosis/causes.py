"""From evidence to causes: what every stage calls."""

from collections.abc import Iterator
from typing import Any

from tf2verify.diagnosis.rules import RULES
from tf2verify.records.diagnosis import Cause


def causes_of(evidence: Any) -> Iterator[Cause]:
  """Yields the causes that the rules for this kind of evidence find, the most specific first.

  Args:
    evidence: of a class of `diagnosis.evidence`.
  """
  for rule in RULES:
    if rule.reads is type(evidence):
      found = rule.explain(evidence)
      if found is not None:
        yield found


def first_cause(*evidence: Any) -> str:
  """Returns what the most specific cause says that evidence shows; '' where none is known.

  Args:
    *evidence: what the rules look at, the most telling first.
  """
  return next((cause.text for known in evidence for cause in causes_of(known)), '')


def texts_by_variable(*evidence: Any) -> dict[str, str]:
  """Returns what the most specific cause says of each variable that causes are about.

  Args:
    *evidence: as in `first_cause`.
  """
  found: dict[str, str] = {}
  for known in evidence:
    for cause in causes_of(known):
      for name in cause.variables:
        found.setdefault(name, cause.text)
  return found
