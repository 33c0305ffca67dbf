"""Moving averages of the biased variance, in a training step.

With a momentum near 1 and many values in a batch they agree within the tolerance of a single call:
what the step adds shows them.
"""

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.diagnosis.rules.variances import biased_variance_text
from tf2verify.records.accepted import WHERE_ONE_IS, Change, Changed
from tf2verify.records.diagnosis import About, Cause

_NAMED = 'var'
# Of the share of the batch's variance that is missing, 1/N: from two values to so many that float32
# hardly shows it.
_LARGEST, _SMALLEST = 0.5, 1e-5
_MOST_OF_BATCH = 0.9  # the weight of the batch, 1 - momentum
_LEAST_ELEMENTS = 3
# Of the difference, in the root of the mean square, beside rounding: what may be left of it.
_UNEXPLAINED = 0.05


def biased_variance_in_steps(evidence: TrainingEvidence) -> Cause | None:
  """Fused batch norm hands on N/(N-1) times the variance that it normalizes by.

  What the step adds to a moving variance is (1 - m)·(variance - average). With s for the average
  and u for what the port adds, TF1 adds (u + (1 - m)·s) / (N - 1) more: two factors, the same for
  all channels, that are fitted.
  """
  named = [pair for pair in evidence.states if pair.differs and _NAMED in pair.name.lower()]
  if not named or not all(map(_is_of_bias, named)):
    return None
  names = tuple(pair.name for pair in named)
  is_whole = {pair.name for pair in evidence.states if pair.differs_clearly} <= set(names)
  what = f'all {len(named)} moving variances come' if named[1:] else 'the moving variance comes'
  return Cause(
    biased_variance_text(True),
    f'what a step adds to {names[0]} is short of that of TF1 by one share of the variance of the '
    'batch, the same for all channels',
    explains=(About.UPDATE,),
    variables=names,
    change=Change(Changed.VARIANCE, places=names, words=(WHERE_ONE_IS,)),
    numbers=f'with it {what} out of the step as in tf1' if is_whole else '',
  )


def _is_of_bias(pair: StepPair) -> bool:
  added, start = pair.tf2.update.ravel(), pair.tf2.before.ravel()
  apart = pair.tf1.update.ravel() - added
  if apart.size < _LEAST_ELEMENTS or not np.any(apart):
    return False
  # Averages that start alike tell a constant part, whatever its factor is.
  known = np.stack([added, start], 1)
  (share, of_start), *_ = np.linalg.lstsq(known, apart, rcond=None)
  rounding = np.spacing(np.float32(np.abs(start).max())) if start.size else 0.0
  left = float(np.sqrt(np.mean((apart - known @ np.array([share, of_start])) ** 2)))
  is_explained = left <= rounding + _UNEXPLAINED * float(np.sqrt(np.mean(apart**2)))
  is_seen = bool(np.sqrt(np.mean(apart**2)) > 2 * rounding)
  is_share = _SMALLEST < share <= _LARGEST and 0 < of_start <= _MOST_OF_BATCH * share
  return is_explained and is_seen and is_share
