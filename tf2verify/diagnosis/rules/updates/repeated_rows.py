"""Squares of gradients of embedding lookups, in which a row occurs twice."""

import math
from collections.abc import Mapping

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.numerics.gradient_clips import norm, norm_of
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.observation import TensorRecord

# Of two sums of squares.
_CLOSE = 1e-3
# Sums that are nearer to each other than this tell nothing.
_APART = 0.01


def repeated_rows(evidence: TrainingEvidence) -> Cause | None:
  """Names a slot of squared gradients to which the port adds the square of each row by itself.

  TF1's Adam and Adagrad add the rows of one index up, and square the sum; the optimizers of Keras
  3 square the values of `IndexedSlices` as they are. In the first step what the slots of the two
  sides gain is then apart by what these norms are. It is as well if a clipping takes
  the norm of the rows in TF1, and of their sums in the port: what is applied then differs already.
  """
  if evidence.number != 1:
    return None
  own = dict(evidence.pairs)
  given = {record.name: record for record in evidence.steps[1].gradients}
  applied = [{r.name: r.value for r in step.applied_gradients} for step in evidence.steps]
  for pair in evidence.moves:
    gradient = given.get(own[pair.name])
    both = applied[0].get(pair.name), applied[1].get(own[pair.name])
    if gradient is not None and both[0] is not None and both[1] is not None:
      clipped = _clipped(pair.name, gradient, (both[0], both[1]))
      if clipped is not None:
        return clipped
    role = None if gradient is None else _role(pair, gradient)
    if role is not None and gradient is not None and gradient.slices is not None:
      text = (
        f'the gradient of {pair.name} is that of a lookup, with some rows more than once '
        f'({gradient.slices.rows} in all): TF1 adds up the rows of one index and squares the sum, '
        f'the optimizer of the port squares each row, so that its {role} is different: make the '
        'gradient dense before it is applied (tf.convert_to_tensor(gradient), which adds them up), '
        'in a train step of your own'
      )
      return Cause(text, explains=(About.UPDATE, About.SHADOWS), variables=(pair.name,))
  return None


def _clipped(
  name: str, gradient: TensorRecord, applied: tuple[np.ndarray, np.ndarray]
) -> Cause | None:
  """Names a clipping by the norm of rows in TF1, and by that of their sums in the port."""
  norms = _norms(gradient)
  one, other = (norm(value) for value in applied)
  if norms is None or not one or gradient.slices is None:
    return None
  if not math.isclose(other / one, norms[1] / norms[0], rel_tol=_CLOSE):
    return None
  return Cause(
    f'the gradient of {name} is that of a lookup, with some rows more than once '
    f'({gradient.slices.rows} in all): TF1 clips it by the norm of its rows as they are '
    '(tf.IndexedSlices), the port by the norm of the sums of rows with one index, which is another '
    'one: clip the gradient before it is made dense',
    explains=(About.UPDATE, About.GRADIENTS, About.SHADOWS),
    variables=(name,),
  )


def _norms(gradient: TensorRecord) -> tuple[float, float] | None:
  """Returns the norms of a gradient with rows of one index added up, and apart; None if alike."""
  if gradient.slices is None or gradient.value is None:
    return None
  joined, apart = norm(gradient.value), norm_of(gradient)
  if not joined or abs(apart**2 - joined**2) <= _APART * joined**2:
    return None
  return joined, apart


def _role(pair: StepPair, gradient: TensorRecord) -> str | None:
  """Returns the slot that gains squares, by the norms of one gradient in two ways."""
  norms = _norms(gradient)
  if norms is None:
    return None
  joined, apart = norms[0] ** 2, norms[1] ** 2
  for role in pair.tf1.slots_after.keys() & pair.tf2.slots_after.keys():
    one = _gain(pair.tf1.slots, pair.tf1.slots_after, role)
    other = _gain(pair.tf2.slots, pair.tf2.slots_after, role)
    if one > 0 and other > 0 and math.isclose(other / one, apart / joined, rel_tol=_CLOSE):
      return role
  return None


def _gain(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray], role: str) -> float:
  """Returns the sum of what a slot has more than before; that starts at 0 where it is made."""
  start = before.get(role)
  return float(np.sum(after[role], dtype=np.float64)) - (
    0.0 if start is None else float(np.sum(start, dtype=np.float64))
  )
