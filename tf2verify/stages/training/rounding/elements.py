"""What rounding in the place of a gradient leads to in a training step."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf2verify.records.tensor_key import TensorKey
from tf2verify.stages.training.rounding.zero_gradients import ROUNDING_OF_ZERO, kind_of
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.quantities import QuantityPair

_Array = np.ndarray[Any, Any]


@dataclasses.dataclass(frozen=True, eq=False)
class RoundingElements:
  """Elements of one variable whose gradient is rounding in all steps so far."""

  where: _Array  # True for them; of the variable's shape
  tf1: float  # greatest |gradient| among them in tf1, in all its runs
  tf2: float  # in the port
  reach: Mapping[
    TensorKey, float
  ]  # greatest |element| of each quantity among them, in all runs of tf1

  def excused(self, pair: QuantityPair, sizes: Mapping[tuple[str, str], float]) -> _Array | None:
    """Returns where a quantity need not agree: where it is no more than rounding makes it.

    In proportion to the gradients of either side; a slot may hold a square. An element
    whose gradient is rounding moves no further than one whose gradient is none. Where the parts of
    a gradient cancel exactly in tf1, what the port may have is known from the other variables.

    Args:
      pair: of both sides.
      sizes: see `greatest_of_kinds`, of tf1 in the same step.
    """
    reach = self.reach.get(pair.key)
    if reach is None or pair.tf1 is None or pair.tf2 is None:
      return None
    if pair.tf1.shape != self.where.shape or pair.tf2.shape != self.where.shape:
      return None
    if not self.tf1:
      return self._within(pair.tf2, _bound_of_zero(pair, sizes))
    ratio = max(1.0, self.tf2 / self.tf1)
    bound = 2.0 * reach * (ratio**2 if pair.quantity == quantities.SLOT else ratio)
    if not self.where.all():
      bound = min(bound, 2.0 * max(reach, quantities.greatest(pair.tf1)))
    return self._within(pair.tf2, bound)

  def _within(self, value: _Array, bound: float) -> _Array | None:
    found: _Array = self.where & (np.abs(value.astype(np.float64)) <= bound)
    return found if found.any() else None


def _bound_of_zero(pair: QuantityPair, sizes: Mapping[tuple[str, str], float]) -> float:
  """Returns what rounding alone leads to where a gradient of tf1 is exactly zero."""
  size = sizes.get(kind_of(pair), 0.0)
  is_gradient = pair.quantity in (quantities.GRADIENT, quantities.APPLIED)
  return ROUNDING_OF_ZERO * size if is_gradient else size
