"""Integers divided as floats."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause

# What the port rounds by, then: it does not leave the quotient as it is.
_ROUNDING = {'Round', 'Rint', 'Ceil', 'Floor'}
_INSTEAD = {'RealDiv': 'as floats', 'Div': 'as floats', 'TruncateDiv': 'towards zero'}


def integer_division(evidence: FailedStage) -> Cause | None:
  """`tf.div`, and `/` in Python 2, round the quotient of integers down.

  Looks for a rounded division on the tf1 side, where the port has another one.
  """
  for found in evidence.sources:
    tf1, tf2 = found.source.tf1_path, found.source.tf2_path
    other = next((op for op in tf2 if op in _INSTEAD and op not in tf1), None)
    if _ROUNDING & (set(tf2) - set(tf1)):
      continue
    if 'FloorDiv' in tf1 and 'FloorDiv' not in tf2 and other is not None:
      return Cause(
        f'tf1 rounds the quotient down (tf.div of integers, / of Python 2) and the port divides '
        f'{_INSTEAD[other]}: write // (tf.math.floordiv)',
        f'FloorDiv (tf1), {other} (tf2) on the way to {found.source.tf1_op}',
      )
  return None
