"""Totals that differ although the losses agree: what is minimized besides them."""

from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.losses import Penalty, Term, TotalLossEvidence
from tf2verify.numerics.arrays import total
from tf2verify.records.diagnosis import Cause
from tf2verify.records.wording import listed

_SUMMED = {'the square': 'w²', 'the absolute value': '|w|'}
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
    f'the total of tf1 contains its loss ({float(np.sum(evidence.tf1.loss)):.6g}) once more than '
    'that of tf2: tf1_total_loss follows tf1_loss in one graph, so a second call of tf1_loss adds '
    'its loss to the collection LOSSES again; call only tf.compat.v1.losses.get_total_loss()'
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
  agreeing = (
    'the parts of the losses agree'
    if evidence.tf1.parts or evidence.tf2.parts
    else f'the losses agree; tf1 adds {added[0]:.6g} to its loss and the port {added[1]:.6g}'
  )
  text = f'{agreeing}: {"; ".join(texts)}'
  if any(_is_half(one.tf1, one.tf2) or _is_half(one.tf2, one.tf1) for one in found):
    text += _HALF
  return Cause(text)


def _is_half(one: Term, other: Term) -> bool:
  both_squares = one.of == other.of == 'the square'
  if not both_squares or one.factor is None or other.factor is None:
    return False
  return bool(np.isclose(2.0 * one.factor, other.factor, 1e-3))


def _kind(one: Penalty) -> str:
  """Returns a sentence with a place for the names of the variables that it holds for."""
  tf1, tf2 = one.tf1, one.tf2
  if not tf2.growth:
    return f'the port does not regularize {{}}{_by(", tf1 by ", tf1)}'
  if not tf1.growth:
    return f'only the port regularizes {{}}{_by(", by ", tf2)}'
  if tf1.of and tf2.of and tf1.of != tf2.of:
    return f'the port regularizes {{}} by {tf2.of} of its elements, tf1 by {tf1.of}'
  if not tf1.of or not tf2.of:
    return 'the port adds a different term for {} than tf1'
  return (
    f'the port regularizes {{}} {tf2.growth / tf1.growth:.4g} times as much as tf1'
    f'{_by(": by ", tf2)}{_by(", tf1 by ", tf1)}'
  )


def _by(words: str, term: Term) -> str:
  """Returns the factor of a term, where it is known, after some words."""
  if term.factor is None:
    return ''
  return f'{words}{term.factor:.4g}·sum({_SUMMED[term.of]})'


def _names(found: Sequence[Penalty]) -> str:
  texts = []
  for one in found:
    line = one.source
    place = '' if line is None else next((made.short for made in line.made), line.short)
    where = f' (created at {place})' if place else ''
    texts.append(f'{one.tf1_name}{where}')
  return listed(texts)


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
  # Parts are not added up as they are, and no penalty is below zero.
  if not agree or not min(added) > 0.0 or evidence.tf1.parts or evidence.tf2.parts:
    return None
  ratio = added[1] / added[0]
  text = (
    f'the losses agree, tf1 adds {added[0]:.6g} to its loss and tf2 {added[1]:.6g}, {ratio:.4g} '
    'times as much: the regularization has a different factor, or covers different variables'
  )
  # What is added is a difference of two sums in float32.
  rounding = 1e-6 * abs(total(evidence.tf1.total_loss)) / min(map(abs, added))
  if np.isclose(ratio, (0.5, 2.0), 1e-5 + 2 * rounding).any():
    text += _HALF
  return Cause(text)
