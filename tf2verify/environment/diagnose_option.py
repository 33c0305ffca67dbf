"""How far causes are looked for: `--diagnose`, or TF2VERIFY_DIAGNOSE for any runner."""

import os

from tf2verify.errors import UsageError

VARIABLE = 'TF2VERIFY_DIAGNOSE'
# Beyond a failed stage as well; all mistakes that it shows; those that its first search shows.
ALL, STAGE, FIRST = 'all', 'stage', 'first'
CHOICES = (ALL, STAGE, FIRST)


def set_for_process(wanted: str) -> None:
  """Sets it for the cases of this process and of those that it starts; '' leaves it as it is."""
  if wanted:
    os.environ[VARIABLE] = wanted


def ends_with_the_first() -> bool:
  """Returns whether to end with the mistakes that the first search shows.

  Raises:
    UsageError: the variable has another value.
  """
  return _wanted() == FIRST


def goes_beyond_failures() -> bool:
  """Returns whether stages that are blocked are looked into for further mistakes.

  Raises:
    UsageError: the variable has another value.
  """
  return _wanted() == ALL


def _wanted() -> str:
  wanted = os.environ.get(VARIABLE, ALL)
  if wanted not in CHOICES:
    known = ', '.join(map(repr, CHOICES[:-1]))
    raise UsageError(f'{VARIABLE} is {wanted!r:.80}; it must be {known} or {CHOICES[-1]!r}')
  return wanted
