"""Clipping that the gradients of a few steps do not reach."""

from collections.abc import Callable

from tf2verify.errors import NotApplicable, Tf2VerifyError
from tf2verify.numerics.gradient_clips import NONE, Clip, clip_in_trial, greatest_sizes
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.training import ClippingTrial, TrainingStep
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.training import step_quantities as quantities
from tf2verify.stages.training.causes.cause import number_text
from tf2verify.stages.training.causes.clipping import clip_fix, clip_text

# Puts larger gradients into a step of one side; see `ReferenceSteps.try_clipping`.
Trial = Callable[[], ClippingTrial | None]
_UNKNOWN = 'it is no clipping by one norm or one limit'


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

  def judge(self, comparison: Comparison, tf1: Trial, tf2: Trial) -> list[str]:
    """Compares what both sides make of larger gradients; the steps have agreed so far.

    Returns:
      Notes on what was tried.
    """
    if not self._greatest:
      return []
    (one, why_not), (other, why_not_tf2) = _clip(tf1), _clip(tf2)
    seen = [
      f'{side} {_text(clip)}'
      for side, clip in (('TF1', one), ('the port', other))
      if clip is not None and clip.kind != NONE
    ]
    if one is not None and other is not None:
      if not one.is_like(other):
        comparison.add(self._difference(one, other))
        return []
      return [self._tried(one)] if seen and not self._reaches(one) else []
    unknown = [f'{side} ({why})' for side, why in (('tf1', why_not), ('tf2', why_not_tf2)) if why]
    if seen or _UNKNOWN in (why_not, why_not_tf2):
      comparison.blind_spots.append(
        f'clipping was not compared: {"; ".join(seen) + "; " if seen else ""}what becomes of '
        f'gradients larger than those of these steps is not known of {" and ".join(unknown)}'
      )
    return []

  def _reaches(self, clip: Clip) -> bool:
    return self._greatest[clip.kind] > clip.limit

  def _size(self, clip: Clip) -> str:
    names = {'joint': 'joint norm', 'each': 'norm of one', 'values': 'element'}
    return f'greatest {names[clip.kind]} {number_text(self._greatest[clip.kind])}'

  def _tried(self, clip: Clip) -> str:
    return (
      f'both sides clip: each {_text(clip)}; the gradients of these steps do not reach that '
      f'({self._size(clip)}), so it was tried with larger ones'
    )

  def _difference(self, one: Clip, other: Clip) -> Difference:
    known = one if one.kind != NONE else other
    hint = (
      f'with larger gradients TF1 {_text(one)}, and the port {_text(other)}; those of these steps '
      f'do not show it ({self._size(known)}), a longer training may: {clip_fix(one)}'
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


def clip_beyond(trial: Trial) -> Clip | None:
  """Returns how a side clips gradients that reach any limit; None where that is not known."""
  return _clip(trial)[0]


def _clip(trial: Trial) -> tuple[Clip | None, str]:
  """Returns a side's clipping, or why that is not known."""
  try:
    tried = trial()
  except NotApplicable as reason:
    return None, str(reason)
  except Tf2VerifyError as error:
    return None, f'with larger ones the step raises: {str(error).splitlines()[0]}'
  clip = Clip(NONE) if tried is None else clip_in_trial(tried)
  return clip, '' if clip is not None else _UNKNOWN


def _text(clip: Clip) -> str:
  return 'leaves the gradients as they are' if clip.kind == NONE else clip_text(clip)
