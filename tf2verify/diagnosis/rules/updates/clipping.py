"""Gradients that are clipped differently."""

import math
from collections.abc import Sequence

import numpy as np

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.rules.updates.clipped_parts import left_out_of_norm, other_parts
from tf2verify.numerics.gradient_clips import (
  AFTER,
  BEFORE,
  EACH,
  JOINT,
  NONE,
  VALUES,
  Clip,
  clip_of,
  is_close,
  norm,
  norm_of,
)
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import TrainingStep
from tf2verify.records.wording import listed, number_text

# Of the norm: two that are nearer are one, but for rounding; and of how far two norms are apart.
_LEAST_APART = 3e-6
_TELLS = 0.1
# Of a gradient's norm: what is applied of it differs.
_APART = 1e-3
_WORDS = {
  NONE: 'leaves the gradients of this step unchanged',
  JOINT: 'scales all gradients by their global norm, to {}',
  EACH: 'scales each gradient by its own norm, to {}',
  VALUES: 'clips each element at {}',
}
# Where elements are set to 0 beside the clipping.
_CLEARING = {
  '': '{}',
  BEFORE: 'sets elements of gradients to 0, and then {}',
  AFTER: '{}, and then sets elements of them to 0',
}
_WHEN = {
  '': '',
  BEFORE: ' after elements are set to 0',
  AFTER: ' before elements are set to 0',
}
_SPARSE = (
  '; if a gradient is sparse and has repeated rows, tf.clip_by_global_norm takes its norm before '
  "they are added up: then pass the limit that is in TF1's code"
)
_FIXES = {
  NONE: 'remove clipnorm, global_clipnorm and clipvalue',
  JOINT: 'pass global_clipnorm={0} (or apply tf.clip_by_global_norm)',
  EACH: 'pass clipnorm={0} (or apply tf.clip_by_norm)',
  VALUES: 'pass clipvalue={0} (or apply tf.clip_by_value)',
}


def _limit_text(clip: Clip) -> str:
  """Returns a limit as it was written, where norms of gradients give it but for their rounding."""
  return number_text(float(f'{clip.limit:.2g}') if clip.is_round else clip.limit)


def clip_text(clip: Clip) -> str:
  """Returns what a side does: `scales all gradients by their global norm, to 5`."""
  return _CLEARING[clip.clears].format(_WORDS[clip.kind].format(_limit_text(clip)))


def clip_fix(tf1: Clip) -> str:
  """Returns how the port comes to clip as TF1 does."""
  fix = _FIXES[tf1.kind].format(_limit_text(tf1)) + _WHEN[tf1.clears]
  if tf1.kind == JOINT and not tf1.is_round:
    fix += _SPARSE
  return fix


def clipping(evidence: TrainingEvidence) -> Cause | None:
  """Names clips of other kinds or limits, each verified on the gradients of its side."""
  if evidence.sampled:
    return None  # a norm is of all elements
  tf1, tf2 = (clip_of(step.gradients, step.applied_gradients) for step in evidence.steps)
  if tf1 is None or tf2 is None:
    text = left_out_of_norm(evidence, tf1, tf2) or _of_those_that_differ(evidence)
  elif tf1.is_like(tf2):
    text = _other_rows(evidence, tf1) or _made_dense(evidence, tf1) or other_parts(evidence, tf1)
    text = text or _more_in_norm(evidence, tf1, tf2)
  elif tf1.scales_like(tf2) and tf1.clears and tf2.clears:
    text = f'TF1 {clip_text(tf1)}; the port {clip_text(tf2)}: clip{_WHEN[tf1.clears]}'
  elif not (text := _more_in_norm(evidence, tf1, tf2)):
    text = f'TF1 {clip_text(tf1)}; the port {_text_of_port(evidence, tf2)}: {clip_fix(tf1)}'
  explains = (About.GRADIENTS, About.UPDATE, About.SHADOWS)
  return Cause(text, explains=explains) if text else None


def _of_those_that_differ(evidence: TrainingEvidence) -> str:
  """Returns how the gradients that differ are clipped, where others are clipped in another way.

  Each of two optimizers, say, has a clipping of its own. Only limits that somebody may have
  written tell that it is one.
  """
  ones, others = ({r.name: r.value for r in s.applied_gradients} for s in evidence.steps)
  both = [(tf1, tf2, ones.get(tf1), others.get(tf2)) for tf1, tf2 in evidence.pairs]
  names = [
    (tf1, tf2)
    for tf1, tf2, one, other in both
    if one is not None and other is not None and one.shape == other.shape
    if norm(np.subtract(one, other, dtype=np.float64)) > _APART * norm(one)
  ]
  clips = [
    clip_of([record for record in step.gradients if record.name in known], step.applied_gradients)
    for step, known in zip(evidence.steps, map(set, zip(*names, strict=True)), strict=False)
  ]
  found = [clip for clip in clips if clip is not None and (clip.kind == NONE or clip.is_round)]
  if len(found) < len(evidence.steps) or found[0].is_like(found[1]):
    return ''
  tf1, tf2 = found
  shown = listed([name for name, _ in names])
  is_part = len(names) < len(evidence.steps[0].gradients)
  fix = _of_a_group(tf1) if is_part and tf1.kind == JOINT else clip_fix(tf1)
  return f'of {shown}, TF1 {clip_text(tf1)}; the port {clip_text(tf2)}: {fix}'


def _of_a_group(tf1: Clip) -> str:
  """Returns how the port comes to clip some gradients by the norm that these alone have."""
  return (
    'apply tf.clip_by_global_norm to the gradients of these alone, with clip_norm='
    f'{_limit_text(tf1)}{_WHEN[tf1.clears]} (global_clipnorm is of all that an optimizer updates)'
  )


def _text_of_port(evidence: TrainingEvidence, clip: Clip) -> str:
  """Returns what the port does, told apart from a clipping that this step does not reach."""
  if clip.kind != NONE:
    return clip_text(clip)
  beyond = evidence.clip_beyond()
  if beyond is None:
    return f'{clip_text(clip)} (it clips none, or by a limit that they do not reach)'
  if beyond.kind == NONE:
    return 'leaves gradients unchanged, also larger ones'
  return f'{clip_text(beyond)}, which those of this step do not reach'


def _more_in_norm(evidence: TrainingEvidence, tf1: Clip, tf2: Clip) -> str:
  """Returns that one side takes the global norm of more gradients than those that it applies.

  Both clip to one limit, which somebody has written: what is scaled by less than that is scaled by
  another norm.
  """
  if tf1.kind != JOINT or tf2.kind != JOINT or tf1.clears or tf2.clears:
    return ''
  limit = max(tf1.limit, tf2.limit)
  number = 1 if tf2.limit < tf1.limit else 0
  known, other = (tf1, tf2)[1 - number], (tf1, tf2)[number]
  if not known.is_round or (other.is_round and not is_close(other.limit, limit)):
    return ''  # another limit
  step = evidence.steps[number]
  applied = {record.name for record in step.applied_gradients}
  own = math.hypot(*(norm_of(r) for r in step.gradients if r.name in applied))
  taken = limit / _joint_factor(step)
  if not own or not math.isfinite(taken) or taken / own - 1.0 < _LEAST_APART:
    return ''
  others = [r.name for r in step.gradients if r.name not in applied]
  named = listed(others) if is_close(taken, math.hypot(*map(norm_of, step.gradients))) else ''
  rest = math.sqrt(taken**2 - own**2)
  return (
    f'both sides scale all gradients by a global norm, to {number_text(float(f"{limit:.2g}"))}, '
    f'but that of {("TF1", "the port")[number]} is of more, {taken:.6g}, than of the gradients '
    f'that it applies, {own:.6g}: there is {f"that of {named}" if named else "one"} besides, of '
    f'norm {rest:.3g}{"" if named else ", as of a variable that is not trained"}; give both sides '
    'the same gradients to tf.clip_by_global_norm'
  )


def _other_rows(evidence: TrainingEvidence, clip: Clip) -> str:
  """Returns that two norms are of other rows, where that makes one limit scale otherwise."""
  ones, others = ({r.name: r for r in step.gradients} for step in evidence.steps)
  apart = [
    (tf1, ones[tf1], others[tf2])
    for tf1, tf2 in evidence.pairs
    if tf1 in ones and tf2 in others and _differs_in_rows(ones[tf1], others[tf2])
  ]
  one, other = (sum(norm_of(r) ** 2 for r in records.values()) for records in (ones, others))
  made = one + sum(norm_of(port) ** 2 - norm_of(tf1) ** 2 for _, tf1, port in apart)
  if clip.kind != JOINT or not apart or not is_close(made, other):
    return ''
  # The step may add the rows up before it clips: then it takes another norm than that of them.
  factors = [_joint_factor(step) for step in evidence.steps]
  if not one or not other or not _tells(factors[1] / factors[0], math.sqrt(one / other)):
    return ''
  name, tf1, port = max(apart, key=lambda found: abs(norm_of(found[1]) - norm_of(found[2])))
  return (
    f'both sides scale all gradients by their global norm, to {number_text(clip.limit)}, but that '
    f'of {name} is {number_text(norm_of(tf1))} in TF1 ({_rows(tf1)}) and '
    f'{number_text(norm_of(port))} in the port ({_rows(port)}): tf.clip_by_global_norm takes the '
    'norm of IndexedSlices before repeated rows are added up; look the rows up as TF1 does '
    '(tf.nn.embedding_lookup_sparse looks each one up once), or add up what is repeated before '
    'clipping'
  )


def _made_dense(evidence: TrainingEvidence, clip: Clip) -> str:
  """Returns that one side adds up repeated rows before it clips, where that is what differs.

  The factors of both sides are then as far apart as the two norms, which may be very little.
  """
  of_rows, dense = _both_norms(evidence.steps[0].gradients)
  found = _scaled_by(evidence)
  if clip.kind != JOINT or not dense or found is None:
    return ''
  is_port = abs(found - of_rows / dense) < abs(found - dense / of_rows)
  if not _tells(found, of_rows / dense if is_port else dense / of_rows):
    return ''
  return made_dense_text(evidence.steps[0].gradients, clip, is_port)


def _tells(found: float, expected: float) -> bool:
  """Returns whether a number is one that two norms lead to, and not 1, to which equal ones do."""
  apart = abs(expected - 1.0)
  return apart >= _LEAST_APART and abs(found - expected) <= _TELLS * apart


def _joint_factor(step: TrainingStep) -> float:
  """Returns the number by which a step scales its gradients; `nan` without any."""
  applied = {r.name: r.value for r in step.applied_gradients if r.value is not None}
  known = [(r.value, applied[r.name]) for r in step.gradients if r.name in applied]
  size = math.hypot(*(norm(raw) for raw, _ in known if raw is not None))
  return math.hypot(*(norm(value) for raw, value in known if raw is not None)) / (size or math.nan)


def made_dense_text(gradients: Sequence[TensorRecord], clip: Clip, is_port: bool = True) -> str:
  """Returns the sentence that one side adds up repeated rows before it clips.

  Args:
    gradients: of TF1.
    clip: of both sides.
    is_port: whether it is the port.
  """
  of_rows, dense = _both_norms(gradients)
  known = [record for record in gradients if record.value is not None]
  table = max(known, key=lambda record: abs(norm_of(record) - _dense_norm(record)))
  rows = '' if table.slices is None else f', of {table.slices.rows} rows'
  sides = ('the port', 'TF1') if is_port else ('TF1', 'the port')
  fix = (
    'clip before tf.convert_to_tensor, or before whatever adds up the rows'
    if is_port
    else 'make the gradient dense with tf.convert_to_tensor before clipping'
  )
  return (
    f'both sides scale all gradients by their global norm, to {number_text(clip.limit)}, but '
    f'{sides[0]} adds up rows of {table.name} that occur several times before it takes the norm '
    f'({dense:.6g}), and {sides[1]} takes that of the IndexedSlices as they are{rows} '
    f'({of_rows:.6g}): {fix}'
  )


def _both_norms(gradients: Sequence[TensorRecord]) -> tuple[float, float]:
  """Returns the global norm of gradients as they are, and with their repeated rows added up."""
  known = [record for record in gradients if record.value is not None]
  return math.hypot(*map(norm_of, known)), math.hypot(*map(_dense_norm, known))


def _dense_norm(gradient: TensorRecord) -> float:
  return 0.0 if gradient.value is None else norm(gradient.value)


def _scaled_by(evidence: TrainingEvidence) -> float | None:
  """Returns by what number the gradients that the port applies are those of TF1, if it is one."""
  ones, others = ({r.name: r.value for r in s.applied_gradients} for s in evidence.steps)
  pairs = [(ones.get(tf1), others.get(tf2)) for tf1, tf2 in evidence.pairs]
  known = [(a, b) for a, b in pairs if a is not None and b is not None and a.shape == b.shape]
  size = math.hypot(*(norm(one) for one, _ in known))
  factor = math.hypot(*(norm(other) for _, other in known)) / size if size else 0.0
  same = all(np.allclose(one * factor, other, rtol=1e-5, atol=1e-6 * size) for one, other in known)
  return factor if factor and same else None


def _differs_in_rows(tf1: TensorRecord, port: TensorRecord) -> bool:
  """Returns whether one gradient has two norms, by how many rows it is made of."""
  if tf1.value is None or port.value is None or is_close(norm_of(tf1), norm_of(port)):
    return False
  return is_close(norm(tf1.value), norm(port.value))


def _rows(gradient: TensorRecord) -> str:
  return 'dense' if gradient.slices is None else f'{gradient.slices.rows} rows'
