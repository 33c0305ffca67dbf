"""What a recurrent network makes of the padding of sequences."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, LoopEnd
from tf2verify.diagnosis.patterns.numbers.arrays import (
  differing,
  ends,
  is_zero_where_different,
  repeats_before,
)
from tf2verify.records import rounds
from tf2verify.records.diagnosis import Cause

_LOOPS = frozenset({'While', 'StatelessWhile'})


def forgotten_mask(evidence: FailedStage) -> Cause | None:
  """TF1 keeps the state of an example that has ended, the port goes on through the padding."""
  return next((_of_mask(one) for one in evidence.loop_ends if one.side == 'tf1'), None)


def needless_mask(evidence: FailedStage) -> Cause | None:
  """The port keeps the state of an example that has ended, TF1 goes on through the padding."""
  return next((_of_mask(one) for one in evidence.loop_ends if one.side != 'tf1'), None)


def _of_mask(one: LoopEnd) -> Cause:
  in_tf1 = one.side == 'tf1'
  side, other = ('tf1', 'the port') if in_tf1 else ('the port', 'tf1')
  given = ' and '.join(f'the input {name}' if name else 'the input' for name in one.inputs)
  where = '' if one.line is None else f', {one.line.short}'
  ends = (
    f'stops at the length of each example ({given}{where})'
    if one.of_lengths
    else f'leaves steps out, by {given}{where}'
  )
  mend = (
    'pass mask=tf.sequence_mask(lengths, steps) to the recurrent layer, with '
    'zero_output_for_mask=True where its output of every step is read, or put '
    'keras.layers.Masking before it where a value of its own marks the padding; in a loop of your '
    'own, keep the state of an example that has ended: tf.where(step < lengths, new, state)'
    if in_tf1
    else 'call the recurrent layer without a mask (Masking and Embedding(mask_zero=True) '
    'hand theirs on to it)'
  )
  early, rows = one.early
  return Cause(
    f'{side} {ends}, and {other} goes on to the last step: {mend}',
    f'{early} of {rows} examples {"ends" if early == 1 else "end"} before the last step',
    numbers=f'where {side} goes on to the last step too, it yields what {other} yields'
    if one.explains
    else '',
    inputs=one.inputs if in_tf1 else (),
  )


def sequence_end(evidence: FailedStage) -> Cause | None:
  """`dynamic_rnn` yields zeros there, a masked Keras layer repeats its last output.

  Looks for outputs that are zero in tf1, from some step of a row on, wherever they differ.
  """
  if not _has_loops(evidence) or evidence.loop_ends:
    return None
  for failed in evidence.of_quantity('output'):
    axis = _time_axis(failed.tf1, failed.tf2)
    if axis is None:
      continue
    count = int(differing(failed.tf1, failed.tf2).sum())
    seen = (
      f'output {failed.name} is 0 in tf1 wherever it differs: {count} elements at the ends of '
      f'rows along axis {axis}'
    )
    if repeats_before(failed.tf1, failed.tf2) == axis:
      return Cause(
        'the port repeats the last output past the end of a sequence, where '
        'dynamic_rnn(sequence_length=) yields zeros: pass zero_output_for_mask=True to '
        'keras.layers.RNN (or LSTM, GRU)',
        f'{seen}; tf2 repeats the previous step there',
      )
    return Cause(
      'the port continues past the end of a sequence, where dynamic_rnn(sequence_length=) '
      'yields zeros: pass mask=tf.sequence_mask(lengths, steps) to the recurrent layer, and '
      'zero_output_for_mask=True',
      seen,
    )
  return None


def _has_loops(evidence: FailedStage) -> bool:
  """Returns whether tf1 has a loop, or rounds in its place."""
  ops = () if evidence.tf1_graph is None else evidence.tf1_graph.ops
  is_in_rounds = any(rounds.numbers_of(op.name) for op in ops)
  return is_in_rounds or not evidence.tf1_op_types.isdisjoint(_LOOPS)


def _time_axis(tf1: np.ndarray, tf2: np.ndarray) -> int | None:
  """Returns the axis along which rows end in zeros wherever the two arrays differ."""
  if tf1.ndim < 3 or tf1.shape != tf2.shape or not is_zero_where_different(tf1, tf2):
    return None
  for axis in (1, 0):
    lengths = ends(tf1, axis)
    steps = np.arange(tf1.shape[axis])
    behind = steps[:, None] >= lengths if axis == 0 else steps >= lengths[:, None]
    differs = differing(tf1, tf2).reshape(*tf1.shape[:2], -1).any(axis=2)
    # Rows of all lengths but 0, some to the end: they tell lengths from zeros of another origin.
    told = lengths.min() > 0 and (lengths == tf1.shape[axis]).any()
    if told and differs.any() and not (differs & ~behind).any():
      return axis
  return None


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
      'the port reverses the padding with the sequence: tf1 reverses each sequence within its '
      'length '
      '(ReverseSequence), so pass mask=tf.sequence_mask(lengths, steps) to '
      'keras.layers.Bidirectional, or call tf.reverse_sequence',
      f'ReverseSequence (tf1), {whole} (tf2); {int(differs.sum())} of {differs.size} rows of '
      f'output {failed.name} differ, only rows that end early in tf1',
    )
  return None
