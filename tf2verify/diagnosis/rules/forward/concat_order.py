"""Tensors concatenated in another order."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.arrays import permutation
from tf2verify.records.diagnosis import Cause


def concat_order(evidence: FailedStage) -> Cause | None:
  """`input_layer` sorts its columns by name; a concatenation keeps the order of its list.

  Looks for a concatenation whose slices are the same, in another order.
  """
  for found in evidence.sources:
    if 'ConcatV2' not in (found.source.tf1_type, found.source.tf2_type):
      continue
    for axis in range(found.tf1.ndim):
      places = permutation(found.tf1, found.tf2, axis)
      if places is None:
        continue
      shown = ', '.join(map(str, places[:8])) + (', …' if len(places) > 8 else '')
      return Cause(
        'the order of the inputs of a concatenation differs: pass them in the order of tf1 '
        '(feature columns: tf.compat.v1.feature_column.input_layer concatenates them sorted by '
        'name, not as they are listed)',
        f'the same slices along axis {axis} of {found.source.tf1_op}: those of tf1 are number '
        f'[{shown}] of tf2',
      )
  return None
