"""Draws of initial values without the limit of time, which a busy machine reaches early."""

from unittest import mock

from tests.stages.first_failure import LadderTestCase
from tf2verify.sides.tf2.layers import redrawn
from tf2verify.stages.comparison.seeded import judged_starts


class WithoutHurryTestCase(LadderTestCase):
  """Draws as often as is wanted, however slow the machine is.

  Attributes:
    most_draws: of one initial value; None for as many as elsewhere.
  """

  most_draws: int | None = None

  def setUp(self):
    super().setUp()
    for module in (judged_starts, redrawn):
      self.enter_context(mock.patch.object(module, '_SECONDS', 1e6))
    if self.most_draws is not None:
      self.enter_context(mock.patch.object(judged_starts, '_MOST', self.most_draws))
