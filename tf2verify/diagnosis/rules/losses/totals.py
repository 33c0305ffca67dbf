"""Totals that differ although the losses agree: what is minimized beside them."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.losses import Penalty, TotalLossEvidence
from tf2verify.numerics.arrays import total
from tf2verify.records.diagnosis import Cause

_SHOWN = 3
_HALF = (
  '; tf.keras.regularizers.L2(x) is x·sum(w²), and tf.nn.l2_loss half of sum(w²): 2 times '
  'the factor is the same'
)


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
  loss = total(evidence.tf1.loss)
  if not np.any(evidence.tf1.loss) or not np.isclose(evidence.gap, loss, 1e-4):
    return None
  return Cause(
    f'the total of tf1 holds its loss ({float(np.sum(evidence.tf1.loss)):.6g}) one more time than '
    'that '
    'of tf2: tf1_total_loss follows tf1_loss in one graph, so that a second call of tf1_loss '
    'adds its loss to the collection LOSSES again; call only '
    'tf.compat.v1.losses.get_total_loss()'
  )


def regularization_of_variables(evidence: TotalLossEvidence) -> Cause | None:
  """Some variables count differently in what both sides add to losses that agree."""
  added, agree = _added(evidence)
  if not agree or not any(added):
    return None
  found = evidence.penalties()
  if not found:
    return None
  groups: dict[str, list[Penalty]] = {}
  for one in found:
    groups.setdefault(_kind(one), []).append(one)
  texts = [kind.format(_names(group)) for kind, group in groups.items()]
  text = (
    f'the losses agree; tf1 adds {added[0]:.6g} to its loss and the port {added[1]:.6g}: '
    f'{"; ".join(texts)}'
  )
  if any(one.tf1 and np.isclose(one.tf2 / one.tf1, (2.0, 0.5), 1e-3).any() for one in found):
    text += _HALF
  return Cause(text)


def _kind(one: Penalty) -> str:
  if not one.tf2:
    return 'the port does not regularize {}'
  if not one.tf1:
    return 'only the port regularizes {}'
  if one.of_tf1 and one.of_tf2 and one.of_tf1 != one.of_tf2:
    return f'the port regularizes {{}} by {one.of_tf2} of its elements, tf1 by {one.of_tf1}'
  return f'the port regularizes {{}} {one.tf2 / one.tf1:.4g} times as much as tf1'


def _names(found: Sequence[Penalty]) -> str:
  texts = []
  for one in found[:_SHOWN]:
    line = one.source
    place = '' if line is None else next((made.short for made in line.made), line.short)
    where = f' (created at {place})' if place else ''
    texts.append(f'{one.tf1_name}{where}')
  more = f' and {len(found) - _SHOWN} more' if len(found) > _SHOWN else ''
  return ', '.join(texts) + more


def _added(evidence: TotalLossEvidence) -> tuple[tuple[float, float], bool]:
  """Returns what both sides add to their losses, and whether the losses agree."""
  one, other = (total(found.loss) for found in (evidence.tf1, evidence.tf2))
  totals = (total(found.total_loss) for found in (evidence.tf1, evidence.tf2))
  added = tuple(total - loss for total, loss in zip(totals, (one, other), strict=True))
  agree = bool(np.isfinite(added).all() and np.isclose(one, other, 1e-5))
  return (added[0], added[1]), agree


def regularization_factor(evidence: TotalLossEvidence) -> Cause | None:
  """Both sides add something to losses that agree, and not the same."""
  added, agree = _added(evidence)
  if not agree or not all(added):
    return None
  ratio = added[1] / added[0]
  text = (
    f'the losses agree, tf1 adds {added[0]:.6g} to its loss and tf2 {added[1]:.6g}, {ratio:.4g} '
    'times as much: the regularization has a different factor, or covers different variables'
  )
  if np.isclose(ratio, 2.0, 1e-3) or np.isclose(ratio, 0.5, 1e-3):
    text += _HALF
  return Cause(text)
