"""An activation lost or added."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause, GraphAspect

ACTIVATIONS = (
  'Relu',
  'Relu6',
  'Elu',
  'Selu',
  'LeakyRelu',
  'Sigmoid',
  'Tanh',
  'Softplus',
  'Softmax',
)


class Activation(Rule):
  """One side applies an activation that the other does not."""

  name = 'activation'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for an activation that is all that one side has more."""
    for found, difference in evidence.graph_differences():
      if difference.aspect is GraphAspect.MISSING:
        ops, side, other = difference.tf1_value, 'tf1', 'the port'
      elif difference.aspect is GraphAspect.EXTRA:
        ops, side, other = difference.tf2_value, 'the port', 'tf1'
      else:
        continue
      if len(ops) != 1 or ops[0] not in ACTIVATIONS:
        continue
      kind = ops[0].lower()
      before = found.source.tf1_op
      return self.cause(
        f'{side} applies {kind} and {other} does not: slim.conv2d and slim.fully_connected apply '
        'relu unless they get activation_fn=None, Keras and tf.layers apply none unless they get '
        f'activation={kind!r}',
        f'{ops[0]} in {side} only, on the way to {before}',
      )
    return None
