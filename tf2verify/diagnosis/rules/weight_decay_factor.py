"""The factor 2 of L2 regularization."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.patterns import constant_factor
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause


class WeightDecayFactor(Rule):
  """`slim.l2_regularizer(s)` is half of `keras.regularizers.L2(s)`."""

  name = 'weight_decay_factor'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for L2 losses that are all twice, or half, those of tf1."""
    failed = [t for t in evidence.of_quantity('regularization loss') if t.name != '(total)']
    lost = any(d.array is None for d in evidence.differences)
    if not failed or lost or 'L2Loss' not in evidence.tf1_op_types | evidence.tf2_op_types:
      return None
    factors = {constant_factor(tensor.tf1, tensor.tf2) for tensor in failed}
    for factor, fix in ((2.0, 'L2(s / 2)'), (0.5, 'L2(2 * s)')):
      if all(found is not None and abs(found - factor) < 1e-5 for found in factors):
        names = ', '.join(sorted({tensor.name for tensor in failed})[:3])
        return self.cause(
          f'every weight decay that differs is {factor} times that of tf1: '
          'keras.regularizers.L2(s) is s · sum(w²), slim.l2_regularizer(s) and s · tf.nn.l2_loss '
          f'are half of it: pass {fix}, or look for a variable that is regularized twice on one '
          'side',
          f'tf2 / tf1 = {factor} for {names}',
        )
    return None
