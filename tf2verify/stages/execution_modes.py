"""execution_modes: not built yet."""

from tf2verify.errors import NotApplicable
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage


class ExecutionModes(Stage):
  """Not built yet."""

  name = 'execution_modes'
  needs = ('zero_randomness',)
  proves = 'the port computes the same eagerly, in a tf.function, compiled, embedded and replicated'
  diagnosed = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Not built yet."""
    raise NotApplicable('not built yet')
