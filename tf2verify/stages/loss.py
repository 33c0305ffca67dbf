"""loss: not built yet."""

from tf2verify.errors import NotApplicable
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class Loss(Stage):
  """Not built yet."""

  name = 'loss'
  needs = ('zero_randomness',)
  proves = (
    'the losses agree, in value and gradient, on the outputs of the model and on extreme ones'
  )
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Not built yet."""
    raise NotApplicable('not built yet')
