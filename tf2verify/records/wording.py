"""Numbers and names as causes and errors write them."""

from collections.abc import Sequence

# How many variables are named of those that one cause holds for.
_NAMED = 4


def number_text(value: float) -> str:
  """Returns a number as reports write it: `0.1`, `1e-08`."""
  return f'{value:.6g}'


def listed(names: Sequence[str], most: int = 3) -> str:
  """Returns the first names, and how many more there are."""
  more = f' and {len(names) - most} more' if len(names) > most else ''
  return ', '.join(names[:most]) + more


def names_text(names: Sequence[str]) -> str:
  """Returns some names, and how many more there are: two at least."""
  more = len(names) - _NAMED
  shown = names if more < 2 else names[:_NAMED]
  return ', '.join(shown) + (f' and {more} more' if more >= 2 else '')
