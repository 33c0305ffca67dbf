"""Two formulas of gelu."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause

# Greatest difference between the two, at |x| = 2.3.
_GREATEST = 4.74e-4


def gelu_formula(evidence: FailedStage) -> Cause | None:
  """By tanh, as in BERT and GPT-2, or exactly, by erf.

  Looks for tanh against erf, as near to each other as the two formulas are.
  """
  for found in evidence.sources:
    ways = [set(path) for path in (found.source.tf1_path, found.source.tf2_path)]
    by_tanh = ['Tanh' in way for way in ways]
    by_erf = [bool(way & {'Erf', 'Erfc'}) for way in ways]
    if by_tanh == [by_erf[1], by_erf[0]] and sum(by_tanh) == 1:
      if found.source.absolute > 1.01 * _GREATEST:
        continue
      tf1, tf2 = ('tanh', 'erf') if by_tanh[0] else ('erf', 'tanh')
      return Cause(
        f'gelu is computed by {tf1} in tf1 and by {tf2} in the port: pass '
        f'approximate={by_tanh[0]} to tf.nn.gelu (approximate=True is the formula by tanh of '
        "BERT and GPT-2, Keras' 'gelu' is the one by erf)",
        f'{tf1} against {tf2}, and a difference of {found.source.absolute:.2g}: the two '
        f'formulas differ by {_GREATEST:.2g} at most',
      )
  return None
