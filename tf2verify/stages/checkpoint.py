"""checkpoint: not built yet."""

from tf2verify.errors import NotApplicable
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class Checkpoint(Stage):
  """Not built yet."""

  name = 'checkpoint'
  needs = ('zero_randomness',)
  proves = 'a TF1 checkpoint loads into the port completely, and what the port saves restores it'
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Not built yet."""
    raise NotApplicable('not built yet')
