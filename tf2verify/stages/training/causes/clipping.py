"""Gradients that are clipped otherwise."""

from tf2verify.compare.gradient_clips import EACH, JOINT, NONE, VALUES, Clip, clip_of
from tf2verify.stages.training.causes.cause import About, Cause, number_text
from tf2verify.stages.training.causes.evidence import Evidence

_WORDS = {
  NONE: 'leaves the gradients of this step as they are',
  JOINT: 'scales all gradients by their joint norm, to {}',
  EACH: 'scales each gradient by its own norm, to {}',
  VALUES: 'cuts each element off at {}',
}
_SPARSE = (
  '; if a gradient is sparse and has repeated rows, tf.clip_by_global_norm takes its norm before '
  "they are added up: pass the limit that stands in TF1's code then"
)
_FIXES = {
  NONE: 'leave clipnorm, global_clipnorm and clipvalue out',
  JOINT: 'pass global_clipnorm={0} (or apply tf.clip_by_global_norm)',
  EACH: 'pass clipnorm={0} (or apply tf.clip_by_norm)',
  VALUES: 'pass clipvalue={0} (or apply tf.clip_by_value)',
}


def clip_text(clip: Clip) -> str:
  """Returns what a side does: `scales all gradients by their joint norm, to 5`."""
  return _WORDS[clip.kind].format(number_text(clip.limit))


def clip_fix(tf1: Clip) -> str:
  """Returns how the port comes to clip as TF1 does."""
  fix = _FIXES[tf1.kind].format(number_text(tf1.limit))
  if tf1.kind == JOINT and not tf1.is_round:
    fix += _SPARSE
  return fix


def clipping(evidence: Evidence) -> Cause | None:
  """Names clips of other kinds or limits, each verified on the gradients of its side."""
  if evidence.sampled:
    return None  # a norm is of all elements
  tf1, tf2 = (clip_of(step.gradients, step.applied_gradients) for step in evidence.steps)
  if tf1 is None or tf2 is None or tf1.is_like(tf2):
    return None
  return Cause(
    f'TF1 {clip_text(tf1)}; the port {clip_text(tf2)}: {clip_fix(tf1)}',
    frozenset({About.GRADIENTS, About.UPDATE, About.SHADOWS}),
  )
