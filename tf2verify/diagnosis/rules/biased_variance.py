"""The moving variance follows the biased variance of the batch."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause


class BiasedVariance(Rule):
  """Fused batch norm hands on N/(N-1) times the variance that it normalizes by."""

  name = 'biased_variance'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a variance from fused batch norm on one side, from moments on the other."""
    states = [d for d in evidence.differences if d.quantity == 'state after the call']
    if not states or len(states) != len(evidence.differences):
      return None  # the outputs would be the same
    for found in evidence.sources:
      tf1, tf2 = found.source.tf1_path, found.source.tf2_path
      fused = [any(op.startswith('FusedBatchNorm') for op in path) for path in (tf1, tf2)]
      spelt = ['SquaredDifference' in path for path in (tf1, tf2)]
      if fused == [True, False] and spelt == [False, True]:
        unbiased, biased = 'tf1', 'the port'
      elif fused == [False, True] and spelt == [True, False]:
        unbiased, biased = 'the port', 'tf1'
      else:
        continue
      return self.cause(
        f'the moving variance follows the unbiased variance in {unbiased} (fused batch norm, also '
        f'slim on rank 2) and the biased one, (N-1)/N of it, in {biased}: the batch norm of the '
        'port has to run the same kernel (a reshape to rank 4 around it does)',
        f'{states[0].subject} alone differs; tf1 computes it by {_shown(tf1)}, tf2 by '
        f'{_shown(tf2)}',
      )
    return None


def _shown(path: tuple[str, ...]) -> str:
  return next((op for op in path if op.startswith('FusedBatchNorm')), 'SquaredDifference, Mean')
