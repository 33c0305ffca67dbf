"""The moving variance follows the biased variance of the batch."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, StateEvidence
from tf2verify.diagnosis.states import batch_factor
from tf2verify.records.diagnosis import Cause

# Of a batch with more values, float32 does not show N / (N - 1).
_MOST = 20000


def biased_variance(evidence: FailedStage) -> Cause | None:
  """Fused batch norm hands on N/(N-1) times the variance that it normalizes by.

  Looks for a state that follows N/(N-1) times what the other side's does.
  """
  if any(d.quantity != 'state after the call' for d in evidence.differences):
    return None  # the outputs would be the same
  for state in evidence.states:
    number = _values(state)
    if number is None:
      continue
    tf1_is_unbiased = number > 0
    unbiased, biased = ('tf1', 'the port') if tf1_is_unbiased else ('the port', 'tf1')
    remedy = (
      'the batch norm of the port has to run the same kernel (a reshape to rank 4 around it does)'
      if tf1_is_unbiased
      else 'the batch norm of the port has to average the variance as it is (fused=False)'
    )
    share = f'{abs(number)}/{abs(number) - 1}'
    return Cause(
      f'the moving variance follows the unbiased variance in {unbiased} (as fused batch norm '
      f'does, also slim on rank 2) and the biased one, (N-1)/N of it, in {biased}: {remedy}',
      f'{state.name}: what is averaged in {unbiased} is {share} times that in {biased}, for '
      'every element',
    )
  return None


def _values(state: StateEvidence) -> int | None:
  """Returns N of N/(N-1), negative where the port has it; None where no whole number fits."""
  tf1, tf2 = state.momenta
  if tf1 is None or tf2 is None:
    return None
  factor = batch_factor(state, tf1, tf2)
  if factor is None or factor <= 0 or abs(factor - 1) < 1 / _MOST:
    return None
  apart = abs(1 - min(factor, 1 / factor))  # 1 / N
  number = round(1 / apart)
  if number < 2 or abs(apart * number - 1) > 0.02:
    return None
  return number if factor < 1 else -number
