"""Learning rates of which one side's has a bound."""

import itertools
from collections.abc import Sequence

import numpy as np

from tf2verify.records.wording import number_text

_SIDES = ('TF1', 'the port')
# Of a rate: float32 rounds by less.
_CLOSE = 1e-6
# A rate that is another one at fewer counts has come to an end of its own, as a schedule of
# boundaries does.
_LEAST_CHANGES = 3


def bound_text(is_least: bool, bound: float, of_tf1: bool, other: float, where: str) -> str:
  """Returns what to say of a bound.

  Args:
    is_least: whether the rate is never less than it.
    bound: the rate.
    of_tf1: whether it is TF1's that is bounded.
    other: the rate of the other side.
    where: at which count or step that is.
  """
  words, call = ('less', 'tf.maximum') if is_least else ('more', 'tf.minimum')
  number = number_text(bound)
  remedy = (
    f"bound the port's schedule by {number} too ({call}, keras.ops.{call[3:]})"
    if of_tf1
    else f'take the bound ({call}, or the end value of a schedule) from that of the port'
  )
  one, two = _SIDES if of_tf1 else _SIDES[::-1]
  return (
    f'the learning rate of {one} is never {words} than {number}, that of {two} is '
    f'{number_text(other)} at {where}, and the same before: {remedy}'
  )


def later_bound(tf1: Sequence[float], tf2: Sequence[float], apart: int, count: int) -> str:
  """Returns that one schedule stays at a bound beyond which the other one goes on.

  Args:
    tf1: its rates at counts of steps, in order.
    tf2: the port's.
    apart: the first of them that differs.
    count: the count of steps at which they begin to differ; it lies between two of these.
  """
  for bounded, free in ((tf1, tf2), (tf2, tf1)) if apart else ():
    rest, bound = free[apart:], bounded[apart]
    is_least = rest[0] < bound
    changes = sum(a != b for a, b in itertools.pairwise(rest))
    # One that never changes is a number in place of a schedule.
    is_schedule = len(set(bounded[: apart + 1])) > 1
    if (
      is_schedule
      and changes >= _LEAST_CHANGES
      and np.allclose(bounded[apart:], bound, rtol=_CLOSE, atol=0.0)
      and all((rate < bound) == is_least and rate != bound for rate in rest)
      and all((rate >= bound) == is_least or rate == bound for rate in bounded[:apart])
    ):
      return bound_text(is_least, bound, bounded is tf1, rest[0], f'step count {count:,}')
  return ''
