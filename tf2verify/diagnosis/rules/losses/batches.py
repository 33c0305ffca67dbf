"""Losses that differ by what the batch is, by a number, or from call to call."""

import numpy as np

from tf2verify.diagnosis.evidence.losses import ExtremeLosses, LossEvidence, RepeatedLoss
from tf2verify.records.diagnosis import Cause

# Of a ratio that is the same for several examples.
_SAME = 1e-3


def loss_zero_by_zero(evidence: LossEvidence) -> Cause | None:
  """One side is NaN where the other is 0, and both are the same elsewhere."""
  example, texts = '', set()
  for one, other in zip(evidence.tf1, evidence.tf2, strict=True):
    sums = float(np.sum(one.value)), float(np.sum(other.value))
    if all(map(np.isnan, sums)) or np.isclose(sums[0], sums[1], _SAME, 1e-6):
      continue
    if sums[0] == 0 and np.isnan(sums[1]):
      texts.add('tf2 is NaN where tf1 is 0: it divides 0 by 0: use tf.math.divide_no_nan')
    elif sums[1] == 0 and np.isnan(sums[0]):
      texts.add('tf1 is NaN where tf2 is 0: it divides 0 by 0, which the port fixes')
    else:
      return None
    example = example or one.example.name
  return Cause(f'{texts.pop()} ({example})') if len(texts) == 1 else None


def fixed_batch_size(evidence: LossEvidence) -> Cause | None:
  """The port divides by a number that is the batch size of the case only."""
  tf1, paths = evidence.tf1, evidence.paths
  size = tf1[0].example.outputs[paths[0]].shape[:1] if paths else ()
  shown = False
  for one, other in zip(tf1, evidence.tf2, strict=True):
    sums = float(np.sum(one.value)), float(np.sum(other.value))
    alone = one.example.outputs[paths[0]].shape[:1] if paths else ()
    expected = alone[0] / size[0] if alone and size else 1.0
    if np.isfinite(sums[0]) != np.isfinite(sums[1]):
      return None
    if all(np.isfinite(sums)):
      if not np.isclose(sums[1], expected * sums[0], _SAME, 1e-6):
        return None
      # Batches of the same size tell nothing.
      shown = shown or (expected != 1.0 and abs(sums[0]) > 1e-6)
  if not shown:
    return None
  return Cause(f'tf2_loss divides by a batch size of {size[0]}, whatever the batch is')


def constant_offset(evidence: LossEvidence) -> Cause | None:
  """The losses differ by one number on every example."""
  offsets = []
  for one, other in zip(evidence.tf1, evidence.tf2, strict=True):
    if one.value.shape != other.value.shape:
      return None
    offsets += (other.value.astype(np.float64) - one.value).reshape(-1).tolist()
  finite = [offset for offset in offsets if np.isfinite(offset)]
  if len(finite) < 2 or np.ptp(finite) > 1e-4 or abs(finite[0]) < 1e-3:
    return None
  offset = f'{finite[0]:+.6g}'
  return Cause(
    f'tf2 is tf1 {offset} on every example: one side adds a constant, or a term of an output that '
    'is the same in all examples'
  )


def loss_with_state(evidence: RepeatedLoss) -> Cause | None:
  """A list that is never cleared makes it grow; or else it keeps state."""
  sums = evidence.sums
  shown = ', '.join(f'{total:.6g}' for total in sums)
  steps = np.diff(sums)
  text = f'called {len(sums)} times on the same data, tf2_loss gives {shown}'
  if np.allclose(steps, steps[0], 1e-4) and steps[0]:
    return Cause(
      f'{text}: it grows by {steps[0]:.6g} at each call, like a list that every call appends to '
      'and nothing clears (a TF1 collection belongs to its graph); create the list in the step'
    )
  return Cause(f'{text}: it keeps state, or draws random numbers that no seed controls')


def loss_of_extremes(evidence: ExtremeLosses) -> Cause | None:
  """Only extreme outputs show it."""
  shown = '; '.join(evidence.different)
  if evidence.eager_only:
    return Cause(
      f'in eager mode tf2_loss computes something else than as a graph (tf.function), where it is '
      f'that of tf1; they differ on: {shown}; the cross entropies of Keras do so with what a '
      'sigmoid or a softmax yields: a graph lets them go back to its logits, and in eager mode '
      'they clip the probabilities; give them the logits, with from_logits=True'
    )
  if evidence.finite_only:
    return Cause(
      f'tf2_loss is not finite on {shown} (±100), where tf1_loss is, as for the logarithm of a '
      'probability that has underflowed to 0; compute the logarithm of the softmax or sigmoid '
      'from the logits, in one function (tf.nn.log_softmax, tf.math.log_sigmoid)'
    )
  return Cause(
    f'the losses differ only on: {shown}; the other examples do not reach what one side does '
    'differently: a bound, a clipping, an epsilon or a branch'
  )
