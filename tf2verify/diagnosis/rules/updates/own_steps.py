"""Steps of an optimizer of the port's own, that are those of TF1 with one thing changed.

The settings of an optimizer that is none of a library are not known, what it applies is not either,
and its slots may be called anything. Its first step tells: TF1's rule computes it from another
start, or from gradients that are clipped differently.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.diagnosis.formulas.forms import Found, forms
from tf2verify.diagnosis.formulas.update_rules import MOMENTUM, ROLES
from tf2verify.diagnosis.patterns.numbers.arrays import constant_factor
from tf2verify.diagnosis.rules.updates.clipped_parts import own_parts
from tf2verify.diagnosis.rules.updates.clipping import clip_fix, clip_text, made_dense_text
from tf2verify.diagnosis.rules.updates.settings import found_form, stepped
from tf2verify.numerics.gradient_clips import (
  AFTER,
  BEFORE,
  EACH,
  JOINT,
  NONE,
  VALUES,
  Clip,
  clip_of,
)
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed, number_text

_Array = np.ndarray[Any, Any]

# What slots start at: a mean of squares in TF1's RMSProp at 1, an accumulator of Adagrad at 0.1.
_STARTS = (0.0, 1.0, 0.1)
_MOMENTUM_RULE = 'momentum'
# Fewer may agree by chance.
_LEAST_ELEMENTS = 4
_CLOSE = 0.02
_OF_VELOCITY = 'w -= v', 'w -= r·a'
_EXPLAINED = (About.UPDATE, About.SHADOWS)


def slot_starts(evidence: TrainingEvidence) -> Cause | None:
  """Names a slot that starts at another number, which makes the first step of the port."""
  pairs, found = _known(evidence)
  if found is None or not any(pair.tf1.slots for pair in pairs):
    return None
  for role in sorted(ROLES[found.form.rule]):
    start = _common_start(pairs, role)
    for other in _STARTS if start is not None else ():
      slots = [{**p.tf1.slots, role: np.full_like(p.tf1.slots[role], other)} for p in pairs]
      if other != start and _explains(pairs, found, slots, [p.tf1.gradient for p in pairs]):
        one, two = number_text(start or 0.0), number_text(other)
        return Cause(
          f'the first step of the port is that of TF1 with a {role} that starts at {two}; in TF1 '
          f'({found.record.name}) it starts at {one}: start it at {one} in the port',
          explains=_EXPLAINED,
          numbers=_numbers(pairs),
        )
  return None


def own_nesterov(evidence: TrainingEvidence) -> Cause | None:
  """Names momentum that is Nesterov's on one side alone, which makes the step of the port.

  The gradients that were applied may be in no record, as those that were accumulated or clipped:
  they are what the momentum has gained.
  """
  if len(evidence.tf1.optimizers) != 1 or evidence.tf2.optimizers:
    return None
  forms_of = forms(evidence.tf1.optimizers[0], evidence.steps[0].learning_rate)
  form = next((one for one in forms_of if one.rule == _MOMENTUM_RULE), None)
  if form is None or not any(pair.differs_clearly for pair in evidence.moves):
    return None
  pairs = [_with_gained(pair, form.setting('momentum')) for pair in evidence.moves]
  known = [pair for pair in pairs if pair is not None]
  found = found_form(evidence, known, 'tf1', 0, (False,))
  if len(known) < len(pairs) or found is None or found.form.rule != _MOMENTUM_RULE:
    return None
  is_nesterov = bool(found.form.setting('nesterov'))
  other = dataclasses.replace(found, form=found.form.replaced(nesterov=float(not is_nesterov)))
  gradients, slots = [p.tf1.gradient for p in known], [p.tf1.slots for p in known]
  if not _explains(known, other, slots, gradients):
    return None
  plain, nesterov = "the momentum itself, without Nesterov's", "Nesterov's momentum"
  one, two = (nesterov, plain) if is_nesterov else (plain, nesterov)
  moved = 'gradient + momentum * slot' if is_nesterov else 'slot'
  return Cause(
    f'the step of the port is that of TF1 with {two}; TF1 ({found.record.name}) steps by {one}: '
    f'with the slot as it is after the step, move variables by rate * ({moved}) in the port',
    explains=_EXPLAINED,
    numbers=_numbers(known),
  )


def own_velocity(evidence: TrainingEvidence) -> Cause | None:
  """Names momentum that holds each gradient times its own rate, which makes the port's step.

  Until the rate changes it is TF1's momentum times that rate.
  """
  if evidence.number < 2 or len(evidence.tf1.optimizers) != 1 or evidence.tf2.optimizers:
    return None
  rate = evidence.steps[0].learning_rate
  before = evidence.tf1.steps[evidence.number - 2].learning_rate
  forms_of = forms(evidence.tf1.optimizers[0], rate)
  form = next((one for one in forms_of if one.rule == _MOMENTUM_RULE), None)
  if form is None or not rate or not before:
    return None
  if math.isclose(rate, before, rel_tol=1e-6):
    return None  # both are the same
  factor = form.setting('momentum')
  pairs = [pair for pair in evidence.moves if pair.differs]
  known = [one for pair in pairs if (one := _with_gained(pair, factor)) is not None]
  if len(known) < len(pairs) or not any(pair.differs_clearly for pair in known):
    return None
  for pair in known:
    held = pair.tf1.slots.get(MOMENTUM)
    if held is None or pair.tf1.gradient is None:
      return None
    velocity = factor * before * held + rate * pair.tf1.gradient
    moved = factor * velocity + rate * pair.tf1.gradient if form.setting('nesterov') else velocity
    if not pair.explains(-moved, pair.tf2.update):
      return None
  steps = ('w -= r·g + m·v', 'w -= r·(g + m·a)') if form.setting('nesterov') else _OF_VELOCITY
  return Cause(
    "the momentum of the port's step holds each gradient times the learning rate of its own step "
    f'(v = m·v + r·g, {steps[0]}), that of TF1 ({evidence.tf1.optimizers[0].name}) the gradients '
    f'alone (a = m·a + g, {steps[1]}): the rate has changed from {number_text(before)} to '
    f'{number_text(rate)} before step {evidence.number}; accumulate the gradient as it is, and '
    'multiply by the rate where the variable is moved',
    explains=_EXPLAINED,
    numbers=_numbers(known),
  )


def _with_gained(pair: StepPair, factor: float) -> StepPair | None:
  """Returns a variable with what TF1's momentum has gained as its gradient; None without any."""
  before, after = (s.get(MOMENTUM) for s in (pair.tf1.slots, pair.tf1.slots_after))
  if after is None:
    return None
  gained = after - factor * (np.zeros_like(after) if before is None else before)
  return dataclasses.replace(pair, tf1=dataclasses.replace(pair.tf1, gradient=gained))


def own_clipping(evidence: TrainingEvidence) -> Cause | None:
  """Names a clipping of another kind, which makes the first step of the port."""
  pairs, found = _known(evidence)
  step = evidence.steps[0]
  clip = None if evidence.sampled else clip_of(step.gradients, step.applied_gradients)
  is_own = not evidence.tf2.optimizers and evidence.number == 1
  parts = own_parts(evidence, clip) if clip is not None and is_own else ''
  if parts:
    return Cause(parts, explains=_EXPLAINED)
  raw = {record.name: record.value for record in step.gradients}
  if found is None or clip is None:
    return None
  gradients = [raw.get(pair.name) for pair in pairs]
  known = [value for value in raw.values() if value is not None]
  if any(value is None for value in gradients) or len(known) < len(raw):
    return None
  slots = [pair.tf1.slots for pair in pairs]
  if clip.kind == JOINT and any(record.slices is not None for record in step.gradients):
    dense = [_clipped(clip, value, known) for value in gradients if value is not None]
    if _explains(pairs, found, slots, dense):
      text = made_dense_text(step.gradients, clip)
      return Cause(text, explains=_EXPLAINED, numbers=_numbers(pairs))
  given = _Given(evidence, clip)
  for names in given.groups if clip.kind == EACH else ():
    if _explains(pairs, found, slots, [given.clipped(clip, p.name, names) for p in pairs]):
      text = given.group_text(names)
      return Cause(text, explains=_EXPLAINED, numbers=_numbers(pairs))
  for other in _other_clips(pairs, clip, gradients):
    if _explains(pairs, found, slots, [given.clipped(other, pair.name) for pair in pairs]):
      fix = clip_fix(clip) if clip.kind != NONE else 'clip as the code of TF1 does, if at all,'
      return Cause(
        f'the first step of the port is that of TF1 if it {clip_text(other)}; TF1 '
        f'{clip_text(clip)}: {fix} in the port',
        explains=_EXPLAINED,
        numbers=_numbers(pairs),
      )
  return None


class _Given:
  """The gradients of TF1, to be clipped in other ways.

  Attributes:
    groups: names of TF1's variables that the port holds in one, of each such variable.
  """

  def __init__(self, evidence: TrainingEvidence, clip: Clip) -> None:
    step, self._clip = evidence.steps[0], clip
    self._raw = {r.name: r.value for r in step.gradients if r.value is not None}
    applied = {r.name: r.value for r in step.applied_gradients if r.value is not None}
    # False where elements are set to 0 beside the clipping.
    self._left = {n: (applied[n] != 0) | (g == 0) for n, g in self._raw.items() if n in applied}
    own: dict[str, list[str]] = {}
    for tf1, tf2 in evidence.pairs:
      if tf1 in self._raw and tf2.endswith(f'[{tf1}]'):
        own.setdefault(tf2.removesuffix(f'[{tf1}]'), []).append(tf1)
    self.groups = [names for names in own.values() if len(names) > 1]

  def clipped(self, clip: Clip, name: str, together: Sequence[str] = ()) -> _Array:
    """Returns a gradient as it is after a clipping.

    Args:
      clip: the clipping.
      name: of the variable.
      together: names of variables, of all of which one norm is taken.
    """
    raw = self._raw
    if clip.clears == BEFORE:
      raw = {n: value * self._left.get(n, True) for n, value in raw.items()}
    others = [raw[n] for n in together] if name in together else raw.values()
    kind = JOINT if name in together else clip.kind
    found = _clipped(dataclasses.replace(clip, kind=kind), raw[name], others)
    return found * self._left.get(name, True) if clip.clears == AFTER else found

  def group_text(self, names: Sequence[str]) -> str:
    """Returns what to say of a port that clips some of TF1's variables together."""
    limit, whole = number_text(self._clip.limit), _norm(self._raw[name] for name in names)
    return (
      f'both sides scale each gradient by its own norm, to {limit}, but the port holds '
      f'{listed(names)} in one variable and takes the norm of all of it, {whole:.4g}: take that of '
      "the part of each of TF1's variables (axes of tf.clip_by_norm)"
    )


def _other_clips(
  pairs: Sequence[StepPair],
  clip: Clip,
  gradients: Sequence[_Array | None],
) -> Iterator[Clip]:
  """Yields clippings of other kinds: with the limit of TF1, or with one that fits an update."""
  if clip.kind != NONE:
    yield Clip(NONE, clears=clip.clears)
    kinds = (kind for kind in (JOINT, EACH, VALUES) if kind != clip.kind)
    yield from (dataclasses.replace(clip, kind=kind) for kind in kinds)
    orders = (BEFORE, AFTER, '') if clip.clears else ()
    yield from (dataclasses.replace(clip, clears=one) for one in orders if one != clip.clears)
  for pair, gradient in zip(pairs, gradients, strict=True):
    factor = constant_factor(pair.tf1.update, pair.tf2.update, _CLOSE)
    # The first step of some rules is nearly proportional to the gradient.
    if factor is not None and gradient is not None and 0.0 < factor < 1.0 - _CLOSE:
      # One factor for all of them may be anything: a momentum that is applied once less, say.
      fitted = [Clip(EACH, float(f'{factor * _norm([gradient]):.{n}g}')) for n in (1, 2, 3)]
      yield from (one for one in fitted if _has_several_factors(one, gradients))
      return


def _has_several_factors(clip: Clip, gradients: Iterable[_Array | None]) -> bool:
  norms = [_norm([value]) for value in gradients if value is not None]
  factors = [min(1.0, clip.limit / norm) for norm in norms if norm]
  return bool(factors) and max(factors) - min(factors) > _CLOSE


def _known(evidence: TrainingEvidence) -> tuple[list[StepPair], Found | None]:
  """Returns the variables that TF1 steps by a known rule, and that rule; None for none.

  Or where the port's optimizer is known, so that other rules look at it.
  """
  pairs = [pair for pair in evidence.moves if pair.tf1.gradient is not None]
  if evidence.number > 1 or len(evidence.tf1.optimizers) != 1 or evidence.tf2.optimizers:
    return pairs, None
  if not any(pair.differs_clearly for pair in pairs):
    return pairs, None
  if not any(np.any(pair.tf2.update) for pair in pairs):
    return pairs, None  # at a rate of 0 no update tells what it was computed from
  return pairs, found_form(evidence, pairs, 'tf1', 0)


def _common_start(pairs: Sequence[StepPair], role: str) -> float | None:
  """Returns the number that a slot starts at for all variables; None where there are several."""
  values = [pair.tf1.slots[role] for pair in pairs if role in pair.tf1.slots]
  starts = {float(value.flat[0]) for value in values if value.size and np.ptp(value) == 0}
  return starts.pop() if len(starts) == 1 and len(values) == len(pairs) else None


def _explains(
  pairs: Sequence[StepPair],
  found: Found,
  slots: Sequence[Mapping[str, _Array]],
  gradients: Sequence[_Array | None],
) -> bool:
  """Returns whether TF1's rule computes the port's updates from slots and gradients."""
  for pair, own, gradient in zip(pairs, slots, gradients, strict=True):
    move = dataclasses.replace(pair.tf1, gradient=gradient)
    if not pair.explains(stepped(found.form, move, own, 1).update, pair.tf2.update):
      return False
  return True


def _clipped(clip: Clip, gradient: _Array, of_all: Iterable[_Array]) -> _Array:
  if clip.kind == VALUES:
    cut: _Array = np.clip(gradient, -clip.limit, clip.limit)
    return cut
  if clip.kind == NONE:
    return gradient
  norm = _norm([gradient] if clip.kind == EACH else of_all)
  scaled: _Array = gradient * np.asarray(
    min(1.0, clip.limit / norm) if norm else 1.0, gradient.dtype
  )
  return scaled


def _norm(values: Iterable[_Array]) -> float:
  return float(np.sqrt(sum(np.sum(np.square(value, dtype=np.float64)) for value in values)))


def _numbers(pairs: Sequence[StepPair]) -> str:
  elements = sum(pair.tf1.start.size for pair in pairs if pair.differs)
  if elements < _LEAST_ELEMENTS:
    return ''
  return f'with it TF1 computes the updates of the port, all {elements} elements that differ'
