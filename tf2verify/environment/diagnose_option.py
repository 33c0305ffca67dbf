"""How far causes are looked for: `--diagnose`, or TF2VERIFY_DIAGNOSE for any runner."""

import os

from tf2verify.errors import UsageError

VARIABLE = 'TF2VERIFY_DIAGNOSE'
ALL, FIRST = 'all', 'first'


def set_for_process(wanted: str) -> None:
  """Sets it for the cases of this process and of those that it starts; '' leaves it as it is."""
  if wanted:
    os.environ[VARIABLE] = wanted


def ends_with_the_first() -> bool:
  """Returns whether to end with the mistakes that the first search shows.

  Raises:
    UsageError: the variable has another value.
  """
  wanted = os.environ.get(VARIABLE, ALL)
  if wanted not in (ALL, FIRST):
    raise UsageError(f'{VARIABLE} is {wanted!r:.80}; it must be {ALL!r} or {FIRST!r}')
  return wanted == FIRST
