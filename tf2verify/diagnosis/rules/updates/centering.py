"""RMSProp that is centered on one side: it divides by a variance, not by a mean of squares."""

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.rules.updates.settings import found_form, stepped, update_rule
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
  if not _explains(evidence, 'tf1' if tf1 else 'tf2'):
    return None
  one, other = ('TF1', 'the port') if tf1 else ('the port', 'TF1')
  return Cause(
    f'{one} is centered (it keeps a mean of the gradients of each variable, and divides by the '
    f'root of mean of squares - mean²), {other} is not: pass centered={tf1} to the optimizer of '
    'the port',
    explains=(About.UPDATE, About.SHADOWS),
  )


def _explains(evidence: TrainingEvidence, side: str) -> bool:
  """Returns whether the step of the centered side, without that, is the other one's, if known."""
  pairs = [pair for pair in evidence.moves if pair.of(side).gradient is not None]
  found = found_form(evidence, pairs, side, 0)
  if found is None:
    return True
  form = found.form.replaced(centered=0.0)
  other = 'tf2' if side == 'tf1' else 'tf1'
  steps = [
    (pair, stepped(form, pair.of(side), pair.of(side).slots, evidence.number)) for pair in pairs
  ]
  return all(pair.explains(step.update, pair.of(other).update) for pair, step in steps)
