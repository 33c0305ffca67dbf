"""Tensors concatenated in another order."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.arrays import permutation
from tf2verify.records.diagnosis import Cause, Source

_SHOWN = 8
# In names and lines of TF1's feature columns.
_COLUMNS = ('input_layer', 'feature_column')
# By which slices of several parts come to alternate.
_INTERLEAVING = ('Pack', 'Reshape', 'Transpose')


def concat_order(evidence: FailedStage) -> Cause | None:
  """`input_layer` sorts its columns by name; a concatenation keeps the order of its list.

  Looks for a concatenation whose slices are the same, in another order. Those of a stack on the
  last axis, flattened, alternate.
  """
  for found in evidence.sources:
    source = found.source
    if 'ConcatV2' not in (source.tf1_type, source.tf2_type):
      continue
    for axis in range(found.tf1.ndim):
      places = permutation(found.tf1, found.tf2, axis)
      if places is None:
        continue
      return Cause(
        _interleaved(source, places, axis) or _exchanged(source),
        f'the same slices along axis {axis} of {source.tf1_op}: those of tf1 are number '
        f'[{_in_runs(places)}] of tf2',
      )
  return None


def _exchanged(source: Source) -> str:
  text = 'the order of the inputs of a concatenation differs: pass them in the order of tf1'
  code = '' if source.tf1_source is None else source.tf1_source.code
  if not any(word in part for word in _COLUMNS for part in (source.tf1_op, code)):
    return text
  return (
    f'{text} (feature columns: tf.compat.v1.feature_column.input_layer concatenates them sorted by '
    'name, not as they are listed)'
  )


def _in_runs(places: Sequence[int]) -> str:
  """Returns numbers as runs of those that follow each other: `0 to 9, 15 to 19, 10 to 14`."""
  runs: list[list[int]] = []
  for place in places:
    if runs and place == runs[-1][-1] + 1:
      runs[-1].append(place)
    else:
      runs.append([place])
  shown = [f'{run[0]} to {run[-1]}' if len(run) > 2 else ', '.join(map(str, run)) for run in runs]
  return ', '.join(shown[:_SHOWN]) + (', …' if len(shown) > _SHOWN else '')


def _interleaved(source: Source, places: Sequence[int], axis: int) -> str:
  """Returns that one side has slices of several parts in turn; '' where it has not."""
  sides = source.tf1_path, source.tf2_path
  whose = [any(op_type in _INTERLEAVING for op_type in path) for path in sides]
  if whose[0] == whose[1]:
    return ''
  for parts in range(2, len(places) // 2 + 1):
    rest, left = divmod(len(places), parts)
    if left:
      continue
    turns = np.arange(len(places)).reshape(-1, parts if whose[1] else rest)
    if np.array_equal(turns.T.ravel(), places):
      break
  else:
    return ''
  if whose[0]:
    return (
      f'tf1 interleaves the slices of {parts} parts along axis {axis}, as by a stack on the last '
      'axis that is flattened, and the port concatenates the parts: stack them in the port, too'
    )
  return (
    f'the port interleaves the slices of {parts} parts along axis {axis}, as by a stack on the '
    'last axis that is flattened, and tf1 concatenates the parts: concatenate them in the port, '
    'or stack them on a new axis before the one that they are joined along'
  )
