"""Activation and normalization in the wrong order."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.rules.forward.activation import ACTIVATIONS, moved_activations
from tf2verify.records.diagnosis import Cause, GraphAspect


def activation_order(evidence: FailedStage) -> Cause | None:
  """The activation stands before the batch norm on one side, behind it on the other.

  Looks for a batch norm that reads an activation on one side only.
  """
  for before, behind in moved_activations(evidence):
    of_port = before.aspect is GraphAspect.EXTRA
    sides = ('the port', 'tf1') if of_port else ('tf1', 'the port')
    return _cause_of(
      before.op_type,
      of_port,
      f'{before.op} before the batch norm ({sides[0]}), {behind.op} behind it ({sides[1]})',
    )
  for _, difference in evidence.graph_differences():
    wiring = difference.aspect is GraphAspect.WIRING
    if not (wiring and difference.op_type.startswith('FusedBatchNorm')):
      continue
    before_it = [value in ACTIVATIONS for value in (difference.tf1_value, difference.tf2_value)]
    seen = f'{difference.op} reads {difference.tf1} (tf1), {difference.tf2} (tf2)'
    if before_it == [False, True]:
      return _cause_of(str(difference.tf2_value), True, seen)
    if before_it == [True, False]:
      return _cause_of(str(difference.tf1_value), False, seen)
  return None


def _cause_of(op_type: str, before_in_port: bool, seen: str) -> Cause:
  kind = op_type.lower()
  if before_in_port:
    return Cause(
      f'the port applies {kind} before the batch norm, tf1 behind it (slim: convolution, '
      'normalizer, activation): take the activation out of the convolution and apply it after '
      'the batch norm',
      seen,
    )
  return Cause(
    f'tf1 applies {kind} before the batch norm, the port behind it: give the activation to the '
    'convolution',
    seen,
  )
