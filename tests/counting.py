"""How much a function does, counted instead of timed: the same on every machine."""

import sys
from collections.abc import Callable


def calls_of(function: Callable[[], object]) -> int:
  """Returns how many functions, builtin ones included, are called while it runs."""
  calls = 0

  def count(_frame, event, _arg):
    nonlocal calls
    calls += event in ('call', 'c_call')

  profile = sys.getprofile()
  sys.setprofile(count)
  try:
    function()
  finally:
    sys.setprofile(profile)
  return calls
