"""The words that tell two names apart, and what names have in common."""

import itertools
import re
from collections.abc import Iterable, Sequence

from tf2verify.relation.names.roles import WORD

_VOWELS = frozenset('aeiou')
_PIECE = re.compile(r'[a-z]+|\d+')
_LEAST = 3  # letters of an abbreviation
_MEANINGS = {
  **dict.fromkeys(('lo', 'low', 'lower'), 'min'),
  **dict.fromkeys(('hi', 'high', 'upper'), 'max'),
}


def telling(one: str, other: str) -> tuple[set[str], set[str]]:
  """Returns the words of each of two names that the other one lacks."""
  first, second = ({meaning(word) for word in WORD.findall(name.lower())} for name in (one, other))
  return first - second, second - first


def meaning(word: str) -> str:
  """Returns the usual word for what a word means: `min` for `lower`."""
  return _MEANINGS.get(word, word)


def same_names(ones: Sequence[str], others: Sequence[str]) -> dict[int, int]:
  """Returns which of other names each of some names is, word by word, by their positions.

  Numbers count as words. Scopes and underscores do not count, nor what all names of a side begin
  with, but for the last word of it: `net/cross_0/w` is `cross_0_w`, beside `cross_1_w` on both
  sides. Nothing unless that holds for all of them, and each has as many words: of `dense` and
  `dense_1` a library has counted the second one.
  """
  sides = []
  for names in (ones, others):
    pieces = [tuple(map(meaning, _PIECE.findall(name.lower()))) for name in names]
    start = max(len(beginning(pieces)) - 1, 0)
    sides.append({own[start:]: number for number, own in enumerate(pieces)})
  lengths = {len(own) for side in sides for own in side}
  is_clear = sides[0].keys() == sides[1].keys() and len(sides[0]) == len(ones) == len(others)
  if not is_clear or len(lengths) > 1:
    return {}
  return {number: sides[1][own] for own, number in sides[0].items()}


def alike(ones: set[str], others: set[str]) -> bool:
  """Returns whether a word of each is the other one, its beginning or its abbreviation."""
  return any(_belong(a, b) or _belong(b, a) for a in ones for b in others)


def beginning(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
  """Returns the letters, or the parts, that all of some names begin with."""
  shared = itertools.takewhile(lambda known: len(set(known)) == 1, zip(*names, strict=False))
  return tuple(first for first, *_ in shared)


def _belong(short: str, word: str) -> bool:
  return word.startswith(short) or _abbreviates(short, word)


def _abbreviates(short: str, word: str) -> bool:
  """Returns whether consonants of a word are left, as in `src` for `source`."""
  if len(short) < _LEAST or short[0] != word[0] or not _VOWELS.isdisjoint(short[1:]):
    return False
  left = iter(word)
  return all(letter in left for letter in short)
