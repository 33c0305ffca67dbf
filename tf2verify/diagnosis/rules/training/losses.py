"""Losses that differ although the models do not."""

import math
from collections.abc import Mapping

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.diagnosis.patterns.numbers.arrays import constant_factor
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.observation import SourceLine
from tf2verify.records.wording import listed, number_text

_CLOSE = 1e-4
# What is left of a loss that is the same.
_ROUNDING = 3e-6
# Of whose rules an update is proportional to the gradient.
_PROPORTIONAL = frozenset({'sgd', 'momentum'})
# Of the greatest element: gradients that are the same, and what is left beside a multiple of the
# variable.
_SAME_GRADIENT = 1e-3
_OF_PENALTY = 1e-2


def loss_of_next_step(evidence: TrainingEvidence) -> Cause | None:
  """Names a loss that one side takes after the update."""
  tf1, tf2 = _losses(evidence)
  if len(tf1) < 2 or _close(tf1[0], tf2[0]):
    return None
  last = len(tf1) - 1
  if all(_close(tf1[n + 1], tf2[n]) for n in range(last)):
    text = (
      "the port's loss at each step is TF1's of the next step: the port computes it after the "
      'update; return the loss of the forward pass that was differentiated, before the update'
    )
  elif all(_close(tf1[n], tf2[n + 1]) for n in range(last)):
    text = (
      "TF1's loss at each step is the port's of the next step: TF1's loss is computed after the "
      'update, that of the port before the update'
    )
  else:
    return None
  return Cause(text, explains=(About.LOSS,))


def regularization_left_out(evidence: TrainingEvidence) -> Cause | None:
  """Names a total loss that is without the regularization losses."""
  tf1, tf2 = _losses(evidence)
  recorded = evidence.tf1.regularization_total
  total = 0.0 if recorded is None else float(recorded)
  if not tf1 or not total or _close(tf1[0], tf2[0]) or _differentiates_the_same(evidence):
    return None
  apart = tf1[0] - tf2[0]
  allowance = _allowance(tf1[0], tf2[0], total)
  if abs(apart - total) <= allowance and evidence.tf1.regularized_again is not None:
    text = (
      f'{added_again(evidence.tf1.regularized_again)}; the losses differ by {number_text(total)}, '
      'the sum of the regularization losses'
    )
  elif abs(apart - total) <= allowance:
    text = (
      f'the losses differ by {number_text(total)}, the sum of the regularization losses, which '
      "the port's step does not add: add layer.losses to the loss that is differentiated"
    )
  elif abs(apart + total) <= allowance:
    text = (
      f'the losses differ by {number_text(total)}, the sum of the regularization losses, which '
      "the port's step adds once more than TF1: either twice (Keras' train_step adds layer.losses "
      'to the loss that compile was given), or once where TF1 leaves REGULARIZATION_LOSSES out of '
      "what it minimizes; take them out of the port's step once"
    )
  else:
    return None
  return Cause(text, explains=(About.LOSS, About.GRADIENTS, About.UPDATE, About.SHADOWS))


def added_again(line: SourceLine) -> str:
  """Returns what to say of a train op that adds what the loss it is given contains."""
  return (
    f'make_tf1_train_op adds the regularization losses at {line.short} to a loss that contains '
    'them already, so that TF1 has them twice: it is given what tf1_total_loss returns; if the '
    'code of the model passes only the data loss there, declare '
    'tf1_total_loss(self, outputs, labels) and tf2_total_loss(self, layer, outputs, labels), and '
    'return tf1_loss and tf2_loss'
  )


def loss_factor(evidence: TrainingEvidence) -> Cause | None:
  """Names a loss that is a whole multiple, or part, of the other side's."""
  tf1, tf2 = _losses(evidence)
  if not tf1 or not tf1[0] or not tf2[0] or _differentiates_the_same(evidence):
    return None
  recorded = evidence.tf1.regularization_total
  totals = {0.0} if recorded is None else {0.0, float(recorded)}
  for total in sorted(totals):
    one, other = tf1[0] - total, tf2[0] - total
    ratio = other / one if one else 0.0
    times = max(ratio, 1 / ratio) if ratio > 0 else 0.0
    if round(times) >= 2 and math.isclose(times, round(times), rel_tol=_CLOSE):
      more, less = ('the port', 'TF1') if ratio > 1 else ('TF1', 'the port')
      apart = ', apart from the regularization losses,' if total else ''
      text = (
        f'the loss of {more}{apart} is {round(times)} times that of {less}: a sum over the batch '
        'on one side, a mean on the other, or a division by the number of replicas'
      )
      return Cause(text, explains=(About.LOSS, About.GRADIENTS, About.UPDATE, About.SHADOWS))
  return None


def penalty_in_gradients(evidence: TrainingEvidence) -> Cause | None:
  """Names variables whose gradients differ by a multiple of the variable itself.

  That of k / 2 · sum(w²) is k · w, whoever adds it: in a loss, a train op, a custom step.
  """
  if evidence.sampled or regularization_left_out(evidence):
    return None
  ones, others = ({r.name: r.value for r in step.gradients} for step in evidence.steps)
  starts = {pair.name: pair.tf1.before for pair in evidence.moves}
  found: dict[str, list[str]] = {}
  factors: dict[str, float] = {}
  for tf1, tf2 in evidence.pairs:
    one, other, start = ones.get(tf1), others.get(tf2), starts.get(tf1)
    if one is None or other is None or start is None or not one.shape == other.shape == start.shape:
      continue
    apart = other.astype(np.float64) - one
    size = max(float(np.abs(value).max(initial=0.0)) for value in (one, other))
    most = float(np.abs(apart).max(initial=0.0))
    if most <= _SAME_GRADIENT * size:
      continue
    factor = float(np.sum(apart * start)) / max(float(np.sum(start * start)), np.finfo('f8').tiny)
    if float(np.abs(apart - factor * start).max()) > _OF_PENALTY * most:
      return None  # something else is different as well
    side = 'the port' if factor > 0 else 'tf1'
    text = f'{side} adds an extra {abs(factor):.3g} times the variable to the gradient of'
    found.setdefault(text, []).append(tf1)
    factors[tf1] = factor
  if not found:
    return None
  said = '; '.join(f'{text} {listed(names)}' for text, names in found.items())
  explains = (About.LOSS, About.GRADIENTS, About.UPDATE, About.SHADOWS)
  if evidence.tf1.regularized_again is not None and all(f < 0 for f in factors.values()):
    return Cause(f'{added_again(evidence.tf1.regularized_again)}; {said}', explains=explains)
  late = _adds_after_clipping(evidence, factors)
  if late:
    clips = 'tf1' if late == 'the port' else 'the port'
    return Cause(
      f'{late} adds the gradient of an L2 penalty (weight decay) to the gradients that it has '
      f'clipped, {clips} clips them with it: '
      f'{said.replace("adds an extra", "adds, before clipping,")}; let both sides clip the same '
      'gradients',
      explains=(About.GRADIENTS, About.UPDATE, About.SHADOWS),
    )
  return Cause(
    f'{said}: the gradient of an L2 penalty (weight decay), whose scale in scale · sum(w²) is half '
    'that factor; the other side has none in these gradients, a different scale, or adds it '
    'later, for example after clipping: let both sides differentiate the same penalties',
    explains=explains,
  )


def _adds_after_clipping(evidence: TrainingEvidence, factors: Mapping[str, float]) -> str:
  """Returns which side's update is given clipped gradients with the penalty added; '' for none.

  Without the penalty these are one share of the gradients, the same for all variables.

  Args:
    evidence: of the step.
    factors: by tf1 name, of the variable that the port's gradient has more than that of tf1.
  """
  signs = {factor > 0 for factor in factors.values()}
  if len(signs) != 1:
    return ''
  side, index = ('tf1', 0) if signs.pop() else ('the port', 1)
  step = evidence.steps[index]
  raw, applied = (
    {r.name: r.value for r in records} for records in (step.gradients, step.applied_gradients)
  )
  shares: list[float] = []
  names = {both[0]: both[index] for both in evidence.pairs}
  for pair in evidence.moves:
    before, after = raw.get(names[pair.name]), applied.get(names[pair.name])
    if before is None or after is None or before.shape != after.shape:
      continue
    if pair.name in factors and constant_factor(before, after, _OF_PENALTY) is not None:
      return ''  # clipped as it is, with nothing added
    given = after.astype(np.float64)
    if pair.name in factors:
      # Of others, elements whose gradient is rounding may be left out of the pair.
      given = given - abs(factors[pair.name]) * pair.tf1.before
    share = constant_factor(before, given, _OF_PENALTY)
    if share is None:
      return ''
    shares.append(share)
  if len(shares) < len(factors) or not 0.0 < max(shares) < 1.0 - _OF_PENALTY:
    return ''
  return side if max(shares) - min(shares) <= _OF_PENALTY * max(shares) else ''


def returned_loss(evidence: TrainingEvidence) -> Cause | None:
  """Names a loss that is returned, and not what is differentiated."""
  tf1, tf2 = _losses(evidence)
  if any(rule(evidence) for rule in (loss_of_next_step, regularization_left_out, loss_factor)):
    return None  # they say more
  # A small penalty beside a large loss is found as well, and named here.
  if not tf1 or math.isclose(tf1[0], tf2[0], rel_tol=_ROUNDING) or not _trains_alike(evidence):
    return None
  apart = tf2[0] - tf1[0]
  are_known = all(pair.has_same_gradient for pair in evidence.moves)
  agree = 'gradients and updates agree' if are_known else 'updates agree'
  seen = (
    f'{agree}, so the port trains as TF1 does; only the loss that its step '
    f'returns is {number_text(abs(apart))} {"greater" if apart > 0 else "less"} than that of tf1'
  )
  total = float(evidence.tf1.regularization_total or 0.0)
  if total and abs(apart + total) <= _allowance(tf1[0], tf2[0], total):
    return Cause(
      f'{seen}, by the sum of the regularization losses: return the loss that is differentiated, '
      'with these, and not only the data loss; or declare tf1_total_loss without them',
      explains=(About.LOSS,),
    )
  return Cause(
    f'{seen}: it differs from the loss that is differentiated, on one of the sides, for example if '
    'a penalty is '
    'added within make_tf1_train_op; return the loss that tf1_total_loss (or tf1_loss) returns, or '
    'declare tf1_total_loss with the penalty',
    explains=(About.LOSS,),
  )


def _trains_alike(evidence: TrainingEvidence) -> bool:
  """Returns whether both sides step by the same gradients, as far as these are known."""
  return bool(evidence.moves) and not any(
    pair.differs or not (pair.has_same_gradient or _tell_all(evidence, pair))
    for pair in evidence.moves
  )


def _tell_all(evidence: TrainingEvidence, pair: StepPair) -> bool:
  """Returns whether updates that agree show that both sides step by the same gradient.

  Known of a side that clips or applies its gradients itself are those of the loss that it returns.
  Gradient descent hides nothing of what is applied, another optimizer a factor.
  """
  one, other = pair.tf1.gradient, pair.tf2.gradient
  rules = {optimizer.rule for optimizer in evidence.tf1.optimizers}
  if one is None or other is None or (rules and rules <= _PROPORTIONAL):
    return True
  return one.shape == other.shape and constant_factor(one, other, _CLOSE) is None


def _differentiates_the_same(evidence: TrainingEvidence) -> bool:
  """Returns whether the gradients are known to be the same; Adam hides a factor in updates."""
  known = any(pair.tf1.gradient is not None for pair in evidence.moves)
  same = all(pair.has_same_gradient for pair in evidence.moves)
  return known and same and _trains_alike(evidence)


def _allowance(one: float, other: float, part: float) -> float:
  """Returns how far a difference of two losses may be from a part of them."""
  return 4e-7 * (abs(one) + abs(other)) + _CLOSE * abs(part)


def _losses(evidence: TrainingEvidence) -> tuple[list[float], list[float]]:
  """Returns the scalar losses of the steps; empty where a side does not tell them."""
  found: tuple[list[float], list[float]] = [], []
  for one, other in zip(evidence.tf1.steps, evidence.tf2.steps, strict=False):
    if one.loss is None or other.loss is None or one.loss.size != 1 or other.loss.size != 1:
      return [], []
    found[0].append(float(one.loss.reshape(())))
    found[1].append(float(other.loss.reshape(())))
  return found


def _close(one: float, other: float) -> bool:
  return math.isclose(one, other, rel_tol=_CLOSE)
