"""Initial values that are drawn by different operations: are they drawn from one distribution?"""

import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.numerics.distributions import (
  at_ends,
  distribution_behind,
  relation,
  rounding_of,
  same_distribution,
  values_test,
)
from tf2verify.records.distribution import Family
from tf2verify.records.initial_value import JudgedStart, Start
from tf2verify.records.sampled import SampledArray
from tf2verify.sides.graphs.initial_draws import InitialDraw
from tf2verify.stages.stage import CaseUnderTest

# A test of values draws about this many elements of each side, in as many repetitions as
# are within these bounds, and within this time.
_ELEMENTS = 200_000
_FEWEST, _MOST = 16, 2048
_SECONDS = 1.5
# Values made of the same random numbers are compared in so many repetitions.
_COMPARED = 6
# How much a judgement counts, the gravest last.
_GRAVITY = (Start.SAME, Start.UNKNOWN, Start.NOT_DRAWN, Start.DIFFERENT)
# Beyond these, only every n-th element is looked at.
_LARGE = 500_000


def judged_start(
  case: CaseUnderTest,
  training: bool,
  names: tuple[str, str],
  values: tuple[np.ndarray | None, np.ndarray | None],
) -> JudgedStart:
  """Returns what is known of two initial values that differ, looked into once a case.

  Args:
    case: the case.
    training: the training mode whose graph has the variable.
    names: of the variable, in tf1 and in the port.
    values: that it starts with.
  """
  known = case.judged_starts.get(names[0])
  if known is None:
    known = judged_anew(case, training, names, values)
    case.judged_starts[names[0]] = known
  return known


def judged_anew(
  case: CaseUnderTest,
  training: bool,
  names: tuple[str, str],
  values: tuple[np.ndarray | None, np.ndarray | None],
) -> JudgedStart:
  """Returns the same of any variable of each side, whether or not they belong together."""
  one, other = values
  if one is None or other is None or one.dtype != other.dtype or not _may_be_drawn(one, other):
    return JudgedStart(Start.NOT_DRAWN)
  try:
    tf1 = case.tf1.initial_draw(names[0], training)
  except NotApplicable:
    tf1 = InitialDraw()  # a recorded graph that is not run here
  draws = [_in_shape(draw, one.shape) for draw in case.tf2.initial_draws(names[1])]
  if not tf1.op_types and not any(draw.op_types for draw in draws):
    return JudgedStart(Start.NOT_DRAWN)
  if are_near(one, other):
    return JudgedStart(Start.NOT_DRAWN)  # the same random numbers
  # Of several variables the one that differs most counts.
  found = [judged_draws(tf1, tf2, one, other) for tf2 in draws]
  judged = max(found, key=lambda judgement: _GRAVITY.index(judgement.start))
  if judged.start is Start.DIFFERENT:
    wrong = (known.tf2 for known in found if known.start is Start.DIFFERENT)
    judged = dataclasses.replace(judged, tf2='; '.join(dict.fromkeys(wrong)))
  # Any family will do: whether one is an affine function of the other.
  related = distribution_behind(Family.NORMAL, one, other) is not None
  if related and judged.start is Start.UNKNOWN:
    return JudgedStart(Start.NOT_DRAWN)
  return dataclasses.replace(judged, is_related=related)


def _in_shape(draw: InitialDraw, shape: tuple[int, ...]) -> InitialDraw:
  """Returns a draw whose values lie as in tf1: a pair may differ in axes of length 1."""
  repeat = draw.repeat
  if repeat is None:
    return draw

  def reshaped(times: int) -> list[np.ndarray]:
    size = math.prod(shape)
    return [value.reshape(shape) if value.size == size else value for value in repeat(times)]

  return dataclasses.replace(draw, repeat=reshaped)


def _may_be_drawn(one: np.ndarray, other: np.ndarray) -> bool:
  numbers = all(array.dtype.kind in 'fViub' for array in (one, other))
  return numbers and bool(one.size) and not any(_is_constant(array) for array in (one, other))


def _is_constant(array: np.ndarray) -> bool:
  """Returns whether an array holds one number, several times."""
  return array.size > 1 and bool((array == array.flat[0]).all())


def are_near(one: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether two arrays are apart by a thousandth at most, as if drawn by one op."""
  if one.shape != other.shape:
    return False
  wide, its = one.astype(np.float64), other.astype(np.float64)
  return bool(np.abs(its - wide).max() <= 1e-3 * np.abs(wide).max())


def judged_draws(
  tf1: InitialDraw, tf2: InitialDraw, tf1_value: np.ndarray, tf2_value: np.ndarray
) -> JudgedStart:
  """Returns what two ways to draw an initial value have in common.

  Args:
    tf1: how tf1 draws it.
    tf2: how the port does.
    tf1_value: what tf1 started with.
    tf2_value: what the port did.
  """
  texts = draw_text(tf1), draw_text(tf2)
  if tf1.distribution is not None and tf2.distribution is not None:
    same = same_distribution(tf1.distribution, tf2.distribution, rounding_of(tf1_value.dtype))
    return JudgedStart(Start.SAME if same else Start.DIFFERENT, *texts)
  if tf1.is_known_by_draws and tf2.is_known_by_draws and tf1.draws == tf2.draws:
    judged = _of_same_numbers(tf1, tf2, texts)
    if judged is not None:
      return judged
  return _by_values(tf1, tf2, tf1_value, tf2_value, texts)


def draw_text(draw: InitialDraw) -> str:
  """Returns how a value is drawn, in the terms of initializers."""
  whose = f'{draw.of}: ' if draw.of else ''
  if draw.distribution is not None:
    return f'{whose}{draw.distribution}'
  if not draw.op_types:
    return f'{whose}no random op'
  kinds = list(dict.fromkeys(draw.op_types))
  return f'{whose}computed from {", ".join(kinds)}'


def _of_same_numbers(
  tf1: InitialDraw, tf2: InitialDraw, texts: tuple[str, str]
) -> JudgedStart | None:
  """Returns what both sides make of the same random numbers; None where that tells nothing."""
  assert tf1.repeat is not None and tf2.repeat is not None
  ones, others = tf1.repeat(_COMPARED), tf2.repeat(_COMPARED)
  found = relation(ones, others, rounding_of(ones[0].dtype))
  if found is None:
    return None
  if not found:
    return JudgedStart(Start.SAME, *texts)
  return JudgedStart(Start.DIFFERENT, texts[0], f'{texts[1]}: {found}')


def _by_values(
  tf1: InitialDraw,
  tf2: InitialDraw,
  tf1_value: np.ndarray,
  tf2_value: np.ndarray,
  texts: tuple[str, str],
) -> JudgedStart:
  ones, others = _drawn(tf1, tf1_value), _drawn(tf2, tf2_value)
  if {array.shape for array in ones} != {array.shape for array in others}:
    ones, others = ([np.concatenate([a.ravel() for a in side])] for side in (ones, others))
  found = values_test(ones, others)
  for draw, values in ((tf1, others), (tf2, ones)):
    if draw.distribution is not None:
      found = at_ends(found, draw.distribution, values)
  if found.difference:
    other = f'{texts[1]}: {found.difference}'
    return JudgedStart(Start.DIFFERENT, texts[0], other, found.elements, found.resolution)
  if found.is_telling:
    return JudgedStart(Start.SAME, *texts, found.elements, found.resolution)
  # A table and a draw are two things, as long as nothing shows the contrary.
  is_table = not (tf1.op_types and tf2.op_types)
  start = Start.NOT_DRAWN if is_table else Start.UNKNOWN
  return JudgedStart(start, *texts, found.elements, found.resolution)


def _drawn(draw: InitialDraw, value: np.ndarray) -> list[np.ndarray]:
  """Returns the initial value of some repetitions, or the one that is known."""
  if draw.repeat is None or value.size > _ELEMENTS or isinstance(value, SampledArray):
    return [_thinned(value)]
  times = min(_MOST, max(_FEWEST, _ELEMENTS // value.size))
  return _within_time(draw.repeat, times) or [_thinned(value)]


def _within_time(repeat: Callable[[int], list[np.ndarray]], times: int) -> list[np.ndarray]:
  start = time.perf_counter()
  found = repeat(2)
  seconds = time.perf_counter() - start
  if len(found) == 2 and (found[0] == found[1]).all():
    return found[:1]  # its seed is a constant
  affordable = int(2 * _SECONDS / max(seconds, 1e-6))
  return repeat(max(2, min(times, affordable))) if times > 2 else found


def _thinned(value: np.ndarray) -> np.ndarray:
  if isinstance(value, SampledArray):
    return np.asarray(value[: value.samples])
  if value.size <= _LARGE:
    return value
  return value.reshape(-1)[:: -(-value.size // _LARGE)]
