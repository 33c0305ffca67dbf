"""A mean over nothing."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.records.diagnosis import Cause
from tf2verify.records.op_graph import OpGraph

_DIVISIONS = ('RealDiv', 'Div')
# They make NaN of other finite numbers.
_OTHER_MAKERS = ('Log', 'Log1p', 'Sqrt', 'Rsqrt', 'Pow', 'Reciprocal', 'Inv', 'Xdivy', 'Acos')


def division_by_zero(evidence: FailedStage) -> Cause | None:
  """The port divides 0 by 0 where tf1 yields 0.

  Looks for outputs that are 0 in tf1 and NaN in tf2, which nothing but a division can make.
  """
  if evidence.tf2_graph is None:
    return None
  for failed in evidence.of_quantity('output'):
    if failed.tf1.shape != failed.tf2.shape or failed.tf2.dtype.kind != 'f':
      continue
    broken = np.isnan(failed.tf2)
    if not broken.any() or failed.tf1[broken].any():
      continue
    division = _only_division(evidence.tf2_graph, f'output {failed.name}')
    if division:
      return Cause(
        'the port divides 0 by 0 where tf1 yields 0 (an empty row in '
        'safe_embedding_lookup_sparse, a mean over no element): call tf.math.divide_no_nan',
        f'{int(broken.sum())} elements of output {failed.name} are 0 in tf1 and nan in tf2, and '
        f'only {division} can make a nan there',
      )
  return None


def _only_division(graph: OpGraph, target: str) -> str:
  """Returns the first division behind a target, if nothing else there makes NaN; else ''."""
  end = graph.targets().get(target)
  if end is None:
    return ''
  behind = [graph.ops[position] for position in sorted(graph.ancestors([end]))]
  if any(op.op_type in _OTHER_MAKERS or op.functions for op in behind):
    return ''
  return next((op.name for op in behind if op.op_type in _DIVISIONS), '')
