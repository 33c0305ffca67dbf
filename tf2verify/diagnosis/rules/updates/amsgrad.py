"""Adam that divides by the greatest second moment so far."""

import numpy as np

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.training import TrainingStep
from tf2verify.records.wording import listed

_GREATEST, _MOMENT = 'greatest second moment', 'second moment'


def amsgrad(evidence: TrainingEvidence) -> Cause | None:
  """Names AMSGrad on one side, where a second moment has fallen below its greatest value."""
  one, other = (_fallen(step) for step in evidence.steps)
  if one is None and other:
    names = sorted(evidence.by_tf1(other))
    return _cause(
      'the port', 'TF1', names, 'pass amsgrad=False, since the Adam of TF1 has no AMSGrad'
    )
  if other is None and one:
    return _cause('TF1', 'the port', sorted(one), 'pass amsgrad=True')
  return None


def _cause(side: str, other: str, names: list[str], fix: str) -> Cause:
  return Cause(
    f'{side} is AMSGrad: it divides by the largest second moment so far, and the current one of '
    f'{listed(names)} is smaller; {other} divides by the current one: {fix}',
    explains=(About.UPDATE, About.SHADOWS),
    variables=tuple(names),
  )


def _fallen(step: TrainingStep) -> set[str] | None:
  """Returns the variables whose second moment has been greater; None without AMSGrad."""
  slots = {(slot.role, slot.variable): slot.value for slot in step.slots}
  kept = [variable for role, variable in slots if role == _GREATEST]
  if not kept:
    return None
  return {
    variable
    for variable in kept
    if (_MOMENT, variable) in slots
    and np.any(slots[_GREATEST, variable] > slots[_MOMENT, variable])
  }
