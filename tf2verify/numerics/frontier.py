"""For which tolerances two tensors agree, kept as a few points.

An element passes where |tf2 - tf1| <= atol + rtol * |tf1|. In the plane of
x = |tf1| and y = |tf2 - tf1| a tolerance is a line that rises, or is level, and all
points must lie on or under it. So what is left of a tensor is the upper convex hull
of its points, the origin included, from x = 0 to the greatest y: the frontier. It
decides for every tolerance, with rtol and atol of 0 or more, as all elements would.

An element is left out as well where it is above the hull by no more than `SLACK`,
relative: to look at each of those closely would cost more than the comparison.
So what is said of tolerances is right to 0.04 % of itself, and errs on the safe side.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tf2verify.records.difference import FrontierPoint

_Array = np.ndarray[Any, Any]

SLACK = 2.0**-12
_NEAR = 2.0**-20
# What a point stands for: the slack, and what roundings add to it.
_SAFE = 1 + 1.25 * SLACK
_SAFER = 1 + 1.5 * SLACK

_GREATEST = float(np.finfo(np.float64).max)
# Below it a float64 has not its full precision.
_LEAST = float(np.finfo(np.float64).tiny)
# Slopes of nearer values are told apart in exact arithmetic.
_SURE = 1e-14
# Up to here sorting is cheaper than looking for what can be left out.
_FEW = 256
_FEW_EDGES = 9


class FrontierBuilder:
  """The frontier of the elements seen so far. Its vertices are elements."""

  def __init__(self) -> None:
    self._vertices: list[FrontierPoint] = [(0.0, 0.0)]
    self._overflow: FrontierPoint | None = None

  @property
  def points(self) -> tuple[FrontierPoint, ...]:
    """The vertices by rising |tf1|, without the origin; empty where nothing differs."""
    if self._overflow is not None:
      return (self._overflow,)
    return tuple(vertex for vertex in self._vertices if vertex[1] > 0)

  @property
  def top(self) -> float:
    """The greatest difference."""
    return self._vertices[-1][1]

  def corners(self) -> tuple[_Array, _Array]:
    """Returns parts of the region under the frontier that are quick to test.

    Returns:
      slopes and tops: what is under y = slope * x and under y = top of one vertex is
      under the frontier, and stays so when elements are added.
    """
    x, y = np.array(self._vertices[1:] or self._vertices).T
    with np.errstate(all='ignore'):
      slopes = np.where(y > 0, np.minimum(y / x, _GREATEST), 0.0)
    return slopes, y

  def passes(self, rtol: float, atol: float) -> bool:
    """Returns whether all elements seen so far surely pass a tolerance."""
    return passes(self.points, rtol, atol)

  def covers(self, magnitude: _Array, difference: _Array) -> _Array:
    """Returns which points are under the frontier, or above it by next to nothing."""
    x, y = np.array(self._vertices).T
    covered: _Array = difference <= np.interp(magnitude, x, y * (1 + _NEAR))
    return covered

  def add(self, magnitude: _Array, difference: _Array) -> None:
    """Adds elements.

    Args:
      magnitude: |tf1|, float64, finite.
      difference: |tf2 - tf1|, float64; infinite where it overflows, which no
        tolerance passes.
    """
    if self._overflow is not None or not difference.size:
      return
    overflow = np.flatnonzero(~(difference <= _GREATEST))
    if overflow.size:
      self._overflow = (float(magnitude[overflow[0]]), math.inf)
      return
    magnitude, difference = self._uncovered(magnitude, difference)
    while difference.size > _FEW:
      before = difference.size
      self._insert(magnitude, difference, self._extremes(magnitude, difference))
      magnitude, difference = self._uncovered(magnitude, difference)
      if difference.size > before // 2:
        break
    if difference.size:
      self._insert(magnitude, difference, _record_highs(magnitude, difference))

  def _uncovered(self, magnitude: _Array, difference: _Array) -> tuple[_Array, _Array]:
    above = ~self.covers(magnitude, difference)
    return magnitude[above], difference[above]

  def _extremes(self, magnitude: _Array, difference: _Array) -> list[int]:
    """Returns positions of elements that many others are likely to be under."""
    steepest = np.argmax(difference / np.maximum(magnitude, _LEAST))
    positions = [int(np.argmax(difference)), int(steepest)]
    for left, right in itertools.pairwise(self._vertices[:_FEW_EDGES]):
      slope = (right[1] - left[1]) / (right[0] - left[0])
      positions.append(int(np.argmax(difference - slope * magnitude)))
    return positions

  def _insert(self, magnitude: _Array, difference: _Array, positions: Sequence[int]) -> None:
    new = zip(magnitude.take(positions).tolist(), difference.take(positions).tolist(), strict=True)
    self._vertices = _hull([*self._vertices, *new])


def _record_highs(magnitude: _Array, difference: _Array) -> list[int]:
  """Returns the positions of the elements above all elements of smaller or equal |tf1|."""
  order = np.lexsort((-difference, magnitude))
  highs = difference[order]
  before = np.maximum.accumulate(np.concatenate(([-1.0], highs[:-1])))
  positions: list[int] = order[highs > before].tolist()
  return positions


def _hull(points: Sequence[FrontierPoint]) -> list[FrontierPoint]:
  """Returns the upper convex hull up to the greatest y."""
  hull: list[FrontierPoint] = []
  for point in sorted(points, key=lambda point: (point[0], -point[1])):
    if hull and point[1] <= hull[-1][1]:
      continue
    while len(hull) > 1 and _is_under(hull[-2], hull[-1], point):
      hull.pop()
    hull.append(point)
  return hull


def _is_under(left: FrontierPoint, middle: FrontierPoint, right: FrontierPoint) -> bool:
  """Returns whether the middle point is on or under the chord; x and y rise strictly."""
  first = (middle[1] - left[1]) / (middle[0] - left[0])
  second = (right[1] - middle[1]) / (right[0] - middle[0])
  if max(first, second) < math.inf and abs(first - second) > _SURE * max(first, second, _LEAST):
    return first < second
  (x0, y0), (x1, y1), (x2, y2) = (tuple(map(Fraction, point)) for point in (left, middle, right))
  return (y1 - y0) * (x2 - x1) <= (y2 - y1) * (x1 - x0)


def greatest_absolute(points: Sequence[FrontierPoint]) -> float:
  """Returns the greatest |tf2 - tf1|; 0 without points."""
  return max((y for _, y in points), default=0.0)


def greatest_relative(points: Sequence[FrontierPoint]) -> float:
  """Returns the greatest |tf2 - tf1| / |tf1|, infinite where tf1 is 0; 0 without points."""
  return max((y / x if x else math.inf for x, y in points), default=0.0)


def greatest_share(points: Sequence[FrontierPoint], rtol: float, atol: float) -> float:
  """Returns the greatest |tf2 - tf1| / (atol + rtol * |tf1|), infinite where nothing is allowed."""
  return max((_over(y, atol + rtol * x) for x, y in points), default=0.0)


def _over(difference: float, allowed: float) -> float:
  return difference / allowed if allowed else math.inf


def passes(points: Sequence[FrontierPoint], rtol: float, atol: float) -> bool:
  """Returns whether a tensor with this frontier surely passes a tolerance."""
  return all(y * _SAFE <= min(atol + rtol * x, _GREATEST) for x, y in points)


def required_atol(points: Sequence[FrontierPoint], rtol: float) -> float:
  """Returns the least atol that a tensor surely passes with a given rtol.

  Infinite where nothing helps.
  """
  if passes(points, rtol, 0.0):
    return 0.0
  return max(y * _SAFER - min(rtol * x, _GREATEST) for x, y in points)


def required_rtol(points: Sequence[FrontierPoint], atol: float) -> float:
  """Returns the least rtol that a tensor surely passes with a given atol.

  Infinite where an element differs by more than atol and tf1 is 0.
  """
  if passes(points, 0.0, atol):
    return 0.0
  beyond = [(x, y * _SAFER - atol) for x, y in points]
  return max(y / x if x else math.inf for x, y in beyond if y > 0)
