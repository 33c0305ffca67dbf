"""Whether a cause names the numbers that differ at a place."""

import math
import re
from collections.abc import Sequence

from tf2verify.records.diagnosis import Cause, Source

_NUMBER = re.compile(r'\d+(?:\.\d+)?(?:e[+-]?\d+)?')
_RATIO = re.compile(rf'({_NUMBER.pattern}) times as much as tf1')
# A smaller number and the rest to 1 are no shares: what is left of 1 without 1e-6 is 1.
_LEAST_SHARE = 1e-3


def says(cause: Cause, source: Source) -> bool:
  """Returns whether a cause names the numbers of both sides of all that differs at a place.

  Or what they are short of 1: a share of smoothing and the rest. Or how many times as large the
  port's are: a factor of a penalty is half of what a regularizer is given, or twice that.
  """
  told = f'{cause.text} {cause.evidence}'
  said = {float(n) for n in _NUMBER.findall(told)}
  sides = [(_numbers(d.tf1), _numbers(d.tf2)) for d in source.differences]
  ratios = [float(n) for n in _RATIO.findall(told)]
  if sides and any(all(_is_ratio(n, *both) for both in sides) for n in ratios):
    return True
  differ = {n for both in sides for one in both for n in one}
  shares = {n for n in differ if n == 0.0 or n > _LEAST_SHARE}
  rests = {n for n in shares for one in said if math.isclose(1.0 - n, one, rel_tol=1e-5)}
  return bool(differ) and differ <= said | rests


def _numbers(text: str) -> list[float]:
  return [float(n) for n in _NUMBER.findall(text)]


def _is_ratio(ratio: float, tf1: Sequence[float], tf2: Sequence[float]) -> bool:
  """Returns whether each side has one number, the port's so many times that of TF1."""
  return len(tf1) == len(tf2) == 1 and math.isclose(tf2[0], ratio * tf1[0], rel_tol=1e-3)
