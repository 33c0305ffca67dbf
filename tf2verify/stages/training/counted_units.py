"""Counts of steps in other units: TF1 counts frames, and the port the steps that take them."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.rules.updates.later_rates import COUNTS, are_same
from tf2verify.errors import NotApplicable
from tf2verify.stages.training.steps.both_sides import BothSides
from tf2verify.stages.training.steps.quantities import GLOBAL_STEP, QuantityPair


class CountedUnits:
  """Leaves out counts that differ by a factor which the port's schedule takes into account.

  Attributes:
    told: what to say of them, at most one text.
  """

  def __init__(self, both: BothSides) -> None:
    self._both = both
    self.told: list[str] = []

  def left(self, pairs: Sequence[QuantityPair]) -> list[QuantityPair]:
    """Returns the pairs of a step without such counts.

    Or that no learning rate reads. What else reads them, as an average of weights or a weight of a
    term, differs by itself.
    """
    count = next((pair for pair in pairs if pair.quantity == GLOBAL_STEP), None)
    if count is None or count.tf1 is None or count.tf2 is None:
      return list(pairs)
    if np.array_equal(count.tf1, count.tf2) or not self._are_meant():
      return list(pairs)
    return [pair for pair in pairs if pair is not count]

  def _are_meant(self) -> bool:
    paces = self._both.paces.both
    if paces is None:
      return False
    if self._both.has_constant_rates:
      if any(len(set(rates)) > 1 for rates in self._both.rates_of_port()):
        return False
      self.told = [
        f'TF1 counts {paces[0]:,} a step, and the port {paces[1]:,}: the learning rates of '
        'TF1 are constant, so that nothing that was compared reads the count; convert it where a '
        'checkpoint is restored'
      ]
      return True
    try:
      ones, others = self._both.rates(COUNTS)
    except NotApplicable:
      return False
    if len(set(ones)) < 2 or not all(are_same(ones, others)):
      return False
    self.told = [
      f'TF1 counts {paces[0]:,} a step, and the port {paces[1]:,}: the learning rates agree at as '
      'many steps, so that the count has another unit; convert it where a checkpoint is restored'
    ]
    return True
