"""determinism: not built yet."""

from tf2verify.errors import NotApplicable
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class Determinism(Stage):
  """Not built yet."""

  name = 'determinism'
  needs = ('no_new_variables',)
  proves = 'each side, repeated in fresh state, gives the same bits'
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Not built yet."""
    raise NotApplicable('not built yet')
