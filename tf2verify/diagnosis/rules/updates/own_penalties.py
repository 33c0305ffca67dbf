"""Penalties whose gradients a step of the port's own adds after it has clipped the others."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.patterns.numbers.arrays import constant_factor
from tf2verify.numerics.gradient_clips import JOINT, clip_of
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed

_Array = np.ndarray[Any, Any]
# The first step of these is a number times the gradient.
_PROPORTIONAL = frozenset(('sgd', 'momentum'))
_CLOSE = 1e-3
# Fewer elements may be a multiple of the variable by chance.
_LEAST_ELEMENTS = 4


def own_penalty(evidence: TrainingEvidence) -> Cause | None:
  """Names a penalty that TF1 clips with the rest of the loss, and the port adds afterwards.

  What the port applies is in no record. But of a first step that is proportional to it, the update
  of all variables is one share of the gradient, and of some also a multiple of the variable.
  """
  rules = {optimizer.rule for optimizer in evidence.tf1.optimizers}
  step = evidence.steps[0]
  if evidence.number > 1 or evidence.tf2.optimizers or evidence.sampled or len(rules) != 1:
    return None
  clip = clip_of(step.gradients, step.applied_gradients)
  if not rules <= _PROPORTIONAL or clip is None or clip.kind != JOINT:
    return None
  raw = {record.name: record.value for record in step.gradients}
  factors = _penalties(evidence, raw)
  if not factors:
    return None
  of: dict[str, list[str]] = {}
  for name, factor in factors.items():
    of.setdefault(f'{factor:.3g}', []).append(name)
  said = ', '.join(f'{factor} times the variable of {listed(n)}' for factor, n in of.items())
  return Cause(
    'the port adds the gradient of an L2 penalty (weight decay) to the gradients that it has '
    f'clipped, tf1 clips them with it: the first step of the port is that of TF1 with the penalty '
    f'({said}) added after clipping; differentiate the loss with the penalty, and clip that',
    explains=(About.UPDATE, About.SHADOWS),
  )


def _penalties(
  evidence: TrainingEvidence, raw: Mapping[str, _Array | None]
) -> dict[str, float] | None:
  """Returns by how much of a variable its gradient has more before the clipping; None if unknown.

  Args:
    evidence: of a first step.
    raw: gradients of TF1 before the clipping.
  """
  moved: dict[str, tuple[_Array, _Array, _Array]] = {}
  scales: list[float] = []
  for pair in evidence.moves:
    given, gradient = pair.tf1.gradient, raw.get(pair.name)
    scale = None if given is None else constant_factor(given, pair.tf1.update, _CLOSE)
    if scale is None or gradient is None:
      return None
    scales.append(scale)
    moved[pair.name] = gradient, pair.tf2.update / scale, pair.tf1.before
  if not scales or max(scales) - min(scales) > _CLOSE * abs(scales[0]):
    return None
  shares = {n: constant_factor(g, given, _CLOSE) for n, (g, given, _) in moved.items()}
  known = [share for share in shares.values() if share is not None]
  rest = [name for name, share in shares.items() if share is None]
  if not known or not rest or max(known) - min(known) > 2 * _CLOSE * max(known):
    return None
  share = float(np.median(known))
  factors = {}
  for name in rest:
    gradient, given, variable = moved[name]
    more = constant_factor(variable, given - share * gradient, _CLOSE)
    if more is None or variable.size < _LEAST_ELEMENTS or not 0.0 < share < 1.0:
      return None
    factors[name] = more / (1.0 - share)
  return factors
