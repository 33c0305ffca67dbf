"""Gradients that are zeros on one side, and none at all on the other.

Of variables that a loop reads and no output depends on, or that only a branch reads which eager
mode does not take. And of those that the loss does not depend on: `tf.UnconnectedGradients.ZERO`.
"""

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np

from tf2verify.sides.side import RunSpec
from tf2verify.stages.comparison.eager_branches import zero_in_a_graph
from tf2verify.stages.comparison.unread_variables import unread
from tf2verify.stages.stage import CaseUnderTest
from tf2verify.stages.training.rounding.zero_gradients import with_rounding_of_zeros
from tf2verify.stages.training.steps.quantities import APPLIED, GRADIENT, UPDATE, QuantityPair


class UnreadGradients:
  """Leaves out gradients that one side has zeros for, and the other one none."""

  def __init__(self, case: CaseUnderTest, run: RunSpec) -> None:
    """Prepares.

    Args:
      case: both sides.
      run: the run of tf1.
    """
    forward = dataclasses.replace(run, gradients=False)
    self._inspect = (
      functools.partial(case.tf1.inspectable, forward),
      functools.partial(case.inspectable_port, forward),
    )
    self._differentiated = functools.partial(
      case.inspectable_port, dataclasses.replace(run, gradients=True)
    )
    self._known: dict[tuple[int, str], bool] = {}

  def left(self, pairs: Iterable[QuantityPair]) -> list[QuantityPair]:
    """Returns the pairs without these; where TF1's gradient is zero, rounding is allowed for."""
    listed = list(pairs)
    doubtful = {(side, p.variable) for p in listed if (side := _side_of_zeros(p)) is not None}
    for side in {side for side, _ in doubtful}:
      names = [name for of, name in doubtful if of == side and (side, name) not in self._known]
      found = unread(self._inspect[side], names) if names else set[str]()
      if side == 0:
        found |= zero_in_a_graph(self._differentiated, set(names) - found)
      self._known |= {(side, name): name in found for name in names}
    unmoved = {p.variable for p in listed if p.quantity == UPDATE and _is_zero(p)}
    left = [
      p for p in listed if not (self._is_unread(p) or (p.variable in unmoved and _only_port(p)))
    ]
    return with_rounding_of_zeros(left)

  def _is_unread(self, pair: QuantityPair) -> bool:
    side = _side_of_zeros(pair)
    return side is not None and self._known[side, pair.variable]


def _is_zero(pair: QuantityPair) -> bool:
  return not any(value is None or np.any(value) for value in (pair.tf1, pair.tf2))


def _only_port(pair: QuantityPair) -> bool:
  """Returns whether the port has zeros where TF1 has no gradient, as `ZERO` makes it.

  That moves a variable by weight decay, which its update shows, and by nothing else: as long as it
  is zero, so are the slots.
  """
  return _side_of_zeros(pair) == 1


def _side_of_zeros(pair: QuantityPair) -> int | None:
  """Returns which side has zeros where the other one has nothing; None for any other pair."""
  if pair.quantity not in (GRADIENT, APPLIED) or (pair.tf1 is None) == (pair.tf2 is None):
    return None
  side = 0 if pair.tf2 is None else 1
  value = (pair.tf1, pair.tf2)[side]
  return side if value is not None and not np.any(value) else None
