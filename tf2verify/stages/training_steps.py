"""training_steps: not built yet."""

from tf2verify.errors import NotApplicable
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class TrainingSteps(Stage):
  """Not built yet."""

  name = 'training_steps'
  needs = ('gradients', 'loss')
  proves = (
    'after each of several training steps, losses, variables and the state of the optimizers agree'
  )
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Not built yet."""
    raise NotApplicable('not built yet')
