"""A backward direction that starts in the padding."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns import differing, ends
from tf2verify.records.diagnosis import Cause


def reversed_padding(evidence: FailedStage) -> Cause | None:
  """TF1 reverses each sequence within its length, the port the whole row.

  Looks for `ReverseSequence` in tf1 only, and outputs that differ in short rows only.
  """
  if 'ReverseSequence' not in evidence.tf1_op_types - evidence.tf2_op_types:
    return None
  for failed in evidence.of_quantity('output'):
    if failed.tf1.shape != failed.tf2.shape or failed.tf1.ndim < 3:
      continue
    differs = differing(failed.tf1, failed.tf2).reshape(failed.tf1.shape[0], -1).any(axis=1)
    short = ends(failed.tf1, 1) < failed.tf1.shape[1]
    if short.all() or not differs.any() or bool((differs & ~short).any()):
      continue
    whole = 'ReverseV2' if 'ReverseV2' in evidence.tf2_op_types else 'no reversal'
    return Cause(
      'the port reverses the padding in: tf1 reverses each sequence within its length '
      '(ReverseSequence), so pass mask=tf.sequence_mask(lengths, steps) to '
      'keras.layers.Bidirectional, or call tf.reverse_sequence',
      f'ReverseSequence (tf1), {whole} (tf2); {int(differs.sum())} of {differs.size} rows of '
      f'output {failed.name} differ, only such as end early in tf1',
    )
  return None
