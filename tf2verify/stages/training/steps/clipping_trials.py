"""Clipping that the gradients of a few steps do not reach."""

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from tf2verify.diagnosis.rules.updates.clipping import clip_fix, clip_text
from tf2verify.errors import NotApplicable, Tf2VerifyError
from tf2verify.numerics.gradient_clips import (
  EACH,
  NONE,
  Clip,
  clip_in_trial,
  differs_in_trial,
  equalizing_factors,
  greatest_sizes,
  is_close,
  norm,
)
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import ClippingTrial, TrainingStep
from tf2verify.records.wording import number_text
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.quantities import Steps

# Puts larger gradients into a step of one side; see `ReferenceSteps.try_clipping`.
Trial = Callable[[], ClippingTrial | None]
# Of gradients, by the own names of both sides.
Factors = tuple[dict[str, float], dict[str, float]]
_UNKNOWN = 'it is not a clipping by one norm or one limit'
_INSIDE = (
  'TF1 {}, and the port does so in its update: a step at far larger gradients changes variables '
  'and slots alike'
)
_ALIKE = (
  'both sides change the gradients, but not by clipping to one norm or one limit; how they change '
  'larger ones was compared, and is the same'
)


class ClippingWatch:
  """Watches how large the gradients of the steps are, and tries larger ones in the end."""

  def __init__(self) -> None:
    self._greatest: dict[str, float] = {}

  def see(self, step: TrainingStep) -> None:
    """Looks at a step of the port: of the reference's a recording may hold samples only."""
    if not step.applied_gradients:
      return
    for kind, size in greatest_sizes(step.gradients).items():
      self._greatest[kind] = max(size, self._greatest.get(kind, 0.0))

  def judge(
    self,
    comparison: Comparison,
    tf1: Trial,
    tf2: Trial,
    pairs: Sequence[tuple[str, str]] | None,
    agree: Callable[[], bool],
  ) -> list[str]:
    """Compares what both sides make of larger gradients; the steps have agreed so far.

    Args:
      comparison: gets what differs, and what could not be compared.
      tf1: tries the reference.
      tf2: tries the port.
      pairs: variable names of tf1 and tf2; None where the large gradients are not the same.
      agree: takes a step at such gradients on both sides, and returns whether that does the same.

    Returns:
      Notes on what was tried.
    """
    if not self._greatest:
      return []
    ran, ran_tf2 = _tried(tf1), _tried(tf2)
    (one, why_not), (other, why_not_tf2) = _clip(ran), _clip(ran_tf2)
    seen = [
      f'{side} {_text(clip)}'
      for side, clip in (('TF1', one), ('the port', other))
      if clip is not None and clip.kind != NONE
    ]
    if one is not None and other is not None:
      if not one.is_like(other):
        # A step that adds up the gradients of several looks like clipping, to a limit that depends
        # on the steps before it, of which the two sides were not asked alike.
        with contextlib.suppress(NotApplicable):
          if _differs(ran, ran_tf2, pairs) is None:
            return [_ALIKE]
        if ran_tf2 is None and agree():
          return [_INSIDE.format(_text(one))]
        comparison.add(self._difference(one, other))
        return []
      with contextlib.suppress(NotApplicable):
        # What multiplies small gradients and large ones alike is looked at in the steps.
        if seen and (known := _differs(ran, ran_tf2, pairs, one)):
          comparison.add(known)
          return []
      return [self._noted(one)] if seen and not self._reaches(one) else []
    if not isinstance(ran, str) and not isinstance(ran_tf2, str):
      with contextlib.suppress(NotApplicable):
        known = _differs(ran, ran_tf2, pairs, one)
        if known is None or (ran_tf2 is None and agree()):
          return [_ALIKE]
        comparison.add(known)
        return []
    unknown = [f'{side} ({why})' for side, why in (('tf1', why_not), ('tf2', why_not_tf2)) if why]
    if seen or _UNKNOWN in (why_not, why_not_tf2):
      comparison.blind_spots.append(
        f'clipping was not compared: {"; ".join(seen) + "; " if seen else ""}how gradients '
        f'larger than those of these steps are changed is not known for {" and ".join(unknown)}'
      )
    return []

  def _reaches(self, clip: Clip) -> bool:
    return self._greatest[clip.kind] > clip.limit

  def _size(self, clip: Clip) -> str:
    names = {'joint': 'global norm', 'each': 'norm of one', 'values': 'element'}
    return f'largest {names[clip.kind]} {number_text(self._greatest[clip.kind])}'

  def _noted(self, clip: Clip) -> str:
    return (
      f'both sides clip: each {_text(clip)}; the gradients of these steps do not reach that '
      f'({self._size(clip)}), so it was tried with larger ones'
    )

  def _difference(self, one: Clip, other: Clip) -> Difference:
    known = one if one.kind != NONE else other
    hint = (
      f'with larger gradients TF1 {_text(one)}, and the port {_text(other)}; the gradients of '
      f'these steps do not show it ({self._size(known)}), a longer training may: {clip_fix(one)}'
    )
    return Difference(
      quantities.APPLIED,
      '(of all variables)',
      Aspect.CLIPPING,
      _text(one),
      _text(other),
      'larger gradients put into a step',
      hint=hint,
    )


def factors_of(
  steps: Steps, evened: Callable[[Mapping[str, float]], dict[str, float]] = dict
) -> Factors | None:
  """Returns by what the gradients of the last step become large; see `equalizing_factors`.

  Args:
    steps: of both sides.
    evened: makes one of the factors of what lies in the same variables of the port.
  """
  one, other = steps.tf1.steps[-1].gradients, steps.tf2.steps[-1].gradients
  names = dict(steps.names)
  known = equalizing_factors(one, other, list(names.items()))
  if known is None:
    return None
  own = evened(known[1])
  return {name: own.get(names.get(name, name), factor) for name, factor in known[0].items()}, own


def have_same_zeros(one: Factors | None, other: Factors | None) -> bool:
  """Returns whether the same gradients are zero, or rounding, where two factors were found."""
  if one is None or other is None:
    return False
  return all(bool(one[0].get(name)) == bool(factor) for name, factor in other[0].items())


def without_some(trial: ClippingTrial | None, variables: Collection[str]) -> ClippingTrial | None:
  """Returns a trial without what the updates of some variables were given."""
  if trial is None or not variables:
    return trial
  applied, large = (
    tuple(record for record in records if record.name not in variables)
    for records in (trial.applied, trial.large_applied)
  )
  return dataclasses.replace(trial, applied=applied, large_applied=large)


def clip_beyond(trial: Trial) -> Clip | None:
  """Returns how a side clips gradients that reach any limit; None where that is not known."""
  return _clip(_tried(trial))[0]


def _tried(trial: Trial) -> ClippingTrial | str | None:
  """Returns a side's trial, or why there is none."""
  try:
    return trial()
  except NotApplicable as reason:
    return str(reason)
  except Tf2VerifyError as error:
    return f'with larger ones the step raises: {str(error).splitlines()[0]}'


def _clip(tried: ClippingTrial | str | None) -> tuple[Clip | None, str]:
  """Returns a side's clipping, or why that is not known."""
  if isinstance(tried, str):
    return None, tried
  clip = Clip(NONE) if tried is None else clip_in_trial(tried)
  return clip, '' if clip is not None else _UNKNOWN


def _differs(
  tf1: ClippingTrial | str | None,
  tf2: ClippingTrial | str | None,
  pairs: Sequence[tuple[str, str]] | None,
  clip: Clip | None = None,
) -> Difference | None:
  """Compares what both sides make of the same large gradients, whatever that is.

  Args:
    tf1: what TF1 makes of them.
    tf2: what the port makes of them.
    pairs: variable names of tf1 and tf2.
    clip: how both sides clip; None where that is not known.

  Raises:
    NotApplicable: it is not known.
  """
  if pairs is None or isinstance(tf1, str) or isinstance(tf2, str):
    raise NotApplicable('not both sides were tried with the same gradients')
  found = differs_in_trial(tf1, tf2, pairs)
  if found is None:
    return None
  name, one, other = found
  hint = (
    f'the sides change the same larger gradients differently, most for {name}: TF1 multiplies it '
    f'by {number_text(one)}, and the port by {number_text(other)}; the gradients of these steps do '
    'not show it, a longer training may'
  )
  large = {record.name: record for record in (tf1.large if tf1 else ())}
  is_each = clip is not None and clip.kind == EACH
  # A norm of one gradient does not depend on the rows of another one.
  sparse = [n for n, record in large.items() if _repeats(record) and (n == name or not is_each)]
  if sparse:
    hint += (
      f'; the gradients of {", ".join(sparse)} are IndexedSlices with repeated rows: '
      'tf.clip_by_global_norm and tf.clip_by_norm take the norm of the rows as they are, but for '
      'a dense gradient the norm after repeated rows are added up; make them dense before '
      'clipping where TF1 does, and only there'
    )
  elif is_each:
    hint += (
      '; TF1 takes the norm of this gradient alone, and the port does not, as where its variables '
      "hold other parts than those of TF1: clip the part of each of TF1's variables by its own norm"
    )
  return Difference(
    quantities.APPLIED,
    name,
    Aspect.CLIPPING,
    f'{number_text(one)} times the gradient',
    f'{number_text(other)} times the gradient',
    'larger gradients put into a step',
    hint=hint,
  )


def _repeats(gradient: TensorRecord) -> bool:
  """Returns whether a gradient is of rows that are added up, and so has two norms."""
  if gradient.slices is None or gradient.value is None:
    return False
  return not is_close(gradient.slices.norm, norm(gradient.value))


def _text(clip: Clip) -> str:
  return 'leaves the gradients unchanged' if clip.kind == NONE else clip_text(clip)
