"""Totals that differ although the losses agree: what is minimized beside them."""

import numpy as np

from tf2verify.diagnosis.evidence.losses import TotalLossEvidence
from tf2verify.records.diagnosis import Cause


def regularization_in_total(evidence: TotalLossEvidence) -> Cause | None:
  """One side alone adds its regularization losses to what it minimizes."""
  terms = np.asarray(evidence.tf1.total_loss).size
  for sign, with_it, without, found in (
    (1.0, 'tf1', 'tf2', evidence.tf1.regularization_total),
    (-1.0, 'tf2', 'tf1', evidence.tf2.regularization_total),
  ):
    if found is None or not np.any(found):
      continue
    if np.isclose(evidence.gap, sign * float(found) * terms, 1e-3, 1e-6):
      text = (
        f'the losses agree, and the totals differ by exactly the sum of the regularization losses '
        f'({float(found):.6g}): {with_it} adds them to what it minimizes, {without} does not'
      )
      text += (
        ' (a custom loop has to add layer.losses)'
        if without == 'tf2'
        else ' (where the reference really trains without them, leave them out of the port)'
      )
      return Cause(text)
  return None


def loss_added_twice(evidence: TotalLossEvidence) -> Cause | None:
  """The total of tf1 holds the loss of a second call."""
  loss = _sum(evidence.tf1.loss)
  if not np.any(evidence.tf1.loss) or not np.isclose(evidence.gap, loss, 1e-4):
    return None
  return Cause(
    f'the total of tf1 holds its loss ({float(np.sum(evidence.tf1.loss)):.6g}) once more than that '
    'of tf2: tf1_total_loss follows tf1_loss in one graph, so that a second call of tf1_loss '
    'adds its loss to the collection LOSSES again; call tf.compat.v1.losses.get_total_loss() '
    'alone'
  )


def regularization_factor(evidence: TotalLossEvidence) -> Cause | None:
  """Both sides add something to losses that agree, and not the same."""
  sides = evidence.tf1, evidence.tf2
  added = [_sum(found.total_loss) - _sum(found.loss) for found in sides]
  one, other = (_sum(found.loss) for found in sides)
  if not all(np.isfinite(added)) or not all(added) or not np.isclose(one, other, 1e-5):
    return None
  ratio = added[1] / added[0]
  text = (
    f'the losses agree, tf1 adds {added[0]:.6g} to its loss and tf2 {added[1]:.6g}, {ratio:.4g} '
    'times as much: the regularization has a different factor, or covers different variables'
  )
  if np.isclose(ratio, 2.0, 1e-3) or np.isclose(ratio, 0.5, 1e-3):
    text += (
      '; tf.keras.regularizers.L2(x) is x·sum(w²), and tf.nn.l2_loss half of sum(w²): 2 times '
      'the factor is the same'
    )
  return Cause(text)


def _sum(value: np.ndarray) -> float:
  return float(np.sum(value, dtype=np.float64))
