"""Variables that the weight decay of one side leaves out."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed, number_text

_EXPLAINS = (About.UPDATE,)
# How close the decay of two variables is, relative; of what it is, what rounding may leave.
_CLOSE = 0.02


def decayed_variables(evidence: TrainingEvidence) -> Cause | None:
  """Names variables that one side alone decays, where it moves all others as the other side does.

  What it adds to them is the same small part of their values for all: biases, and the scales of
  norms, which decoupled decay (AdamW) usually leaves out.
  """
  apart = [pair for pair in evidence.moves if pair.differs_clearly]
  alike = [p for p in evidence.moves if not (p.differs_clearly or p.tf1.rests or p.tf2.rests)]
  parts = [_part(pair) for pair in apart]
  if not apart or not alike or not any(pair.tf1.start.size > 1 for pair in apart):
    return None
  known = [part for part in parts if part is not None]
  if len(known) < len(parts) or np.ptp(known) > _CLOSE * abs(known[0]):
    return None
  names = [pair.name for pair in apart]
  return _cause(names, float(np.mean(known)))


def _cause(names: Sequence[str], part: float) -> Cause:
  them = 'it' if len(names) == 1 else 'them'
  amount = f'in this step by {number_text(float(f"{abs(part):.2g}"))} of the value'
  if part > 0:
    text = (
      f'{listed(list(names))}: the port decays {them}, {amount}, and TF1 does not: leave {them} '
      'out of the weight decay (exclude_from_weight_decay of a Keras optimizer, before its first '
      'step)'
    )
  else:
    text = (
      f'{listed(list(names))}: TF1 decays {them}, {amount}, and the port does not: do not leave '
      f'{them} out of the weight decay'
    )
  return Cause(
    text,
    'what differs is the same part of the value for each element, and other variables agree',
    explains=_EXPLAINS,
    variables=tuple(names),
  )


def _part(pair: StepPair) -> float | None:
  """Returns by which part of its value only the port moves a variable towards 0; None for none."""
  start, other = pair.tf2.before, pair.tf1.before
  if start.shape != other.shape or not np.allclose(start, other, rtol=1e-6, atol=0.0):
    return None
  added = pair.tf2.update - pair.tf1.update
  size = float(np.sum(start * start))
  if not size:
    return None
  part = -float(np.sum(added * start)) / size
  allowed = pair.allowance + _CLOSE * abs(part) * np.abs(start)
  is_small = 0.0 < abs(part) < 1.0
  return part if is_small and bool(np.all(np.abs(added + part * start) <= allowed)) else None
