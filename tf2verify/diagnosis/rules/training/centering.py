"""RMSProp that is centered on one side: it divides by a variance, not by a mean of squares."""

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.rules.training.updates import update_rule
from tf2verify.records.diagnosis import About, Cause

_MEAN = 'mean gradient'


def centering(evidence: TrainingEvidence) -> Cause | None:
  """Names the side that alone keeps means of gradients.

  While gradients hardly change, the square of their mean is small beside the mean of squares, and
  the updates of both rules are the same but for little more than rounding.
  """
  tf1, tf2 = (any(slot.role == _MEAN for slot in step.slots) for step in evidence.steps)
  if tf1 == tf2 or not all(step.slots for step in evidence.steps):
    return None
  if update_rule(evidence) is not None:
    return None  # it says what makes the steps differ
  one, other = ('TF1', 'the port') if tf1 else ('the port', 'TF1')
  return Cause(
    f'{one} is centered (it keeps a mean of the gradients of each variable, and divides by the '
    f'root of mean of squares - mean²), {other} is not: pass centered={tf1} to the optimizer of '
    'the port',
    explains=(About.UPDATE, About.SHADOWS),
  )
