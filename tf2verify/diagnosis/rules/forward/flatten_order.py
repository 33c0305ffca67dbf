"""Elements flattened in another order."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence
from tf2verify.records.diagnosis import Cause, GraphAspect

# Of images: channels to the end, or before height and width.
_OF_CHANNELS = ('[0, 2, 3, 1]', '[0, 3, 1, 2]')


def flatten_order(evidence: FailedStage) -> Cause | None:
  """A transpose before a reshape on one side only, as of channels first to channels last.

  Looks for a transpose that is all that differs before a reshape of the same elements.
  """
  for found, difference in evidence.graph_differences():
    if difference.aspect is GraphAspect.MISSING:
      ops, text, side, other = difference.tf1_value, difference.tf1, 'tf1', 'the port'
    elif difference.aspect is GraphAspect.EXTRA:
      ops, text, side, other = difference.tf2_value, difference.tf2, 'the port', 'tf1'
    else:
      continue
    if ops != ('Transpose',) or not _same_elements(found):
      continue
    formats = (
      ' (channels first, as TF1 on a GPU, against channels last)'
      if any(one in text for one in _OF_CHANNELS)
      else ''
    )
    return Cause(
      f'{side} transposes before it flattens and {other} does not, so the rows of the next '
      f'kernel belong to different elements{formats}: '
      'transpose in the port as tf1 does, or permute the rows of that kernel when it is copied',
      f'{text} in {side} only; the same elements in a different order at {found.source.tf1_op}',
    )
  return None


def _same_elements(found: SourceEvidence) -> bool:
  """Returns whether both sides hold the same elements, in some order."""
  if found.source.tf1_type != 'Reshape' or not found.is_comparable:
    return False
  return bool(np.array_equal(np.sort(found.tf1, axis=None), np.sort(found.tf2, axis=None)))
