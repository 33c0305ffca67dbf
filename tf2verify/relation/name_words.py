"""The words that tell two names apart."""

from tf2verify.relation.roles import WORD


def telling(one: str, other: str) -> tuple[set[str], set[str]]:
  """Returns the words of each of two names that the other one lacks."""
  first, second = (set(WORD.findall(name.lower())) for name in (one, other))
  return first - second, second - first


def alike(ones: set[str], others: set[str]) -> bool:
  """Returns whether a word of each is the other one, or its beginning."""
  return any(a.startswith(b) or b.startswith(a) for a in ones for b in others)
