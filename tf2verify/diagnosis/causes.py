"""From evidence to causes: what every stage calls."""

import warnings
from collections.abc import Collection, Iterator
from typing import Any

from tf2verify.diagnosis.rules import RULES
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.errors import RuleWarning, Tf2VerifyError
from tf2verify.records.diagnosis import Cause


def causes_of(evidence: Any, only: Collection[str] | None = None) -> Iterator[Cause]:
  """Yields the causes that the rules for this kind of evidence find, the most specific first.

  A rule that raises takes no verdict with it: it is left out, with a `RuleWarning`.

  Args:
    evidence: of a class of `diagnosis.evidence`.
    only: names of the rules that are asked; None for all.
  """
  for rule in RULES:
    if rule.reads is type(evidence) and (only is None or rule.name in only):
      found = _explained(rule, evidence)
      if found is not None:
        yield found


def _explained(rule: Rule[Any], evidence: Any) -> Cause | None:
  try:
    return rule.explain(evidence)
  except Tf2VerifyError:
    raise  # of a run that the rule has asked for: whoever gave it the run knows what to say
  except Exception as error:  # noqa: BLE001 - a fault of ours is no verdict on the port
    warnings.warn(
      f'tf2verify looked for the cause {rule.name!r}, and that raised {type(error).__name__}: '
      f'{error}; the verdict is valid, but this cause was not checked: please report it, with '
      'the case if you can',
      RuleWarning,
      stacklevel=2,
    )
    return None


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
