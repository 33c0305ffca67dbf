"""Explicit padding became SAME, or the other way round."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence, Standing
from tf2verify.diagnosis.patterns.operations.windows import PADS, window_attribute
from tf2verify.records.diagnosis import Cause, GraphAspect

_OPERATIONS = (GraphAspect.MISSING, GraphAspect.EXTRA, GraphAspect.REPLACED)
_SAME = {
  'MaxPool': 'which ignores the border',
  'AvgPool': 'which averages over what is within the border',
}
_OF_CONVOLUTION = 'which pads as the size needs, 0 before and 1 after for stride 2 and an even size'


def fixed_padding(evidence: FailedStage) -> Cause | None:
  """Explicit padding before VALID on one side, SAME on the other.

  Looks for a Pad that is all that one side has more, before a window of other padding.
  """
  for found in evidence.sources:
    padding = window_attribute(found, 'padding', (Standing.JOINT, Standing.UNTRIED))
    pads = _pads(found)
    if padding is None or pads is None:
      continue
    in_tf1, text = pads
    if (padding.tf1, padding.tf2) != (('VALID', 'SAME') if in_tf1 else ('SAME', 'VALID')):
      continue
    if 'Conv' in padding.op_type and _moves_by_one(evidence, found):
      continue
    explicit, other = ('tf1', 'the port') if in_tf1 else ('the port', 'tf1')
    kind = padding.op_type
    remedy = (
      "pad in the port as tf1 does, and pass padding='valid'"
      if in_tf1
      else "remove tf.pad from the port, and pass padding='same'"
    )
    return Cause(
      f'{explicit} pads explicitly before a VALID {kind}, {other} runs it with SAME, '
      f'{_SAME.get(kind, _OF_CONVOLUTION)}: the same shape, different numbers: {remedy}',
      f'{padding.op}: padding {padding.tf1} (tf1), {padding.tf2} (tf2), {text} in {explicit}',
    )
  return None


def _moves_by_one(evidence: FailedStage, found: SourceEvidence) -> bool:
  """Returns whether a convolution is known to have stride 1.

  There SAME pads half of the window on either side, as an explicit padding does that keeps the
  size: the two spellings are the same function.
  """
  sides = (evidence.tf1_graph, found.source.tf1_op), (evidence.tf2_graph, found.source.tf2_op)
  strides = [
    op.attribute('strides')
    for graph, name in sides
    if graph is not None
    for op in graph.ops
    if op.name == name
  ]
  return any(found is not None and set(found) == {1} for found in strides)


def _pads(found: SourceEvidence) -> tuple[bool, str] | None:
  """Returns whether tf1 has the one Pad that one side lacks, and its text; None without one."""
  for difference in found.source.differences:
    if difference.aspect not in _OPERATIONS:
      continue
    ones, others = difference.tf1_value or (), difference.tf2_value or ()
    pads = [[kind for kind in kinds if kind in PADS] for kinds in (ones, others)]
    is_alone = len((*ones, *others)) == 1 or difference.aspect is GraphAspect.REPLACED
    if is_alone and sorted(map(len, pads)) == [0, 1]:
      return bool(pads[0]), difference.tf1 if pads[0] else difference.tf2
  return None
