"""Batch norm in the wrong mode."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.records.diagnosis import Cause


class BatchNormMode(Rule):
  """One side normalizes by the batch's own statistics, the other by the moving averages."""

  name = 'batch_norm_mode'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a fused batch norm whose `is_training` differs."""
    for _, difference in evidence.graph_differences():
      if difference.what == 'is_training' and difference.op_type.startswith('FusedBatchNorm'):
        if difference.tf1_value:
          text = (
            'batch norm normalizes by its moving averages in the port and by the batch in tf1: '
            'either the layer is called without training=True, or it has trainable=False, which '
            'in Keras (not in tf.layers) also switches it to inference'
          )
        else:
          text = (
            'batch norm normalizes by the batch in the port and by its moving averages in tf1: '
            'pass training=False to the layer, or look for a reference that never passes its '
            'training mode on (tf.layers: training=False by default)'
          )
        seen = f'is_training {difference.tf1} (tf1), {difference.tf2} (tf2)'
        return self.cause(text, f'{difference.op}: {seen}')
    return None
