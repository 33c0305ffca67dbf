"""Gradients that are clipped in other groups than those of TF1."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import StepPair, TrainingEvidence
from tf2verify.numerics.gradient_clips import EACH, JOINT, Clip, is_close, norm, norm_of
from tf2verify.records.observation import TensorRecord
from tf2verify.records.wording import listed, number_text

_Array = np.ndarray[Any, Any]
# Relative: factors of elements that are nearer are one, but for rounding.
_SAME = 1e-3
_MOST_PARTS = 64


def other_parts(evidence: TrainingEvidence, clip: Clip) -> str:
  """Returns that the port clips the gradients of other parts than TF1, by norms of their own.

  Elements of one part are scaled by one factor, which brings their norm to the limit. So the
  factors tell the parts, and the norms that this is true.

  Args:
    evidence: of gradients that both sides clip each by its own norm, to one limit.
    clip: of both sides.
  """
  return _told(_of_groups(evidence), clip) if clip.kind == EACH else ''


def own_parts(evidence: TrainingEvidence, clip: Clip) -> str:
  """Returns the same of an optimizer of the port's own: what its first moments have gained.

  Args:
    evidence: of a first step.
    clip: of TF1.
  """
  return _told(_of_slots(evidence), clip) if clip.kind == EACH else ''


def left_out_of_norm(evidence: TrainingEvidence, tf1: Clip | None, tf2: Clip | None) -> str:
  """Returns that one side leaves gradients out of the global norm that the other one takes of all.

  Args:
    evidence: of a step.
    tf1: how TF1 clips its gradients; None where no one way explains what it applies.
    tf2: likewise, of the port.
  """
  whole = tf1 or tf2
  if (tf1 is None) == (tf2 is None) or whole is None or whole.kind != JOINT:
    return ''
  step = evidence.steps[1 if tf1 is not None else 0]
  left = _left_out(step.gradients, step.applied_gradients, whole.limit)
  if not left:
    return ''
  named = sorted(evidence.by_tf1(left)) if tf1 is not None else sorted(left)
  limit = number_text(float(f'{whole.limit:.2g}') if whole.is_round else whole.limit)
  if tf1 is not None:
    return (
      f'TF1 scales all gradients by their global norm, to {limit}; the port leaves {listed(named)} '
      'out of it, applies them as they are, and scales the others by the norm of these alone: give '
      'all gradients to tf.clip_by_global_norm'
    )
  return (
    f'the port scales all gradients by their global norm, to {limit}; TF1 leaves {listed(named)} '
    'out of it, applies them as they are, and scales the others by the norm of these alone: give '
    'only those to tf.clip_by_global_norm'
  )


def _left_out(
  gradients: Sequence[TensorRecord], applied: Sequence[TensorRecord], limit: float
) -> set[str]:
  """Returns the gradients that are applied as they are, if the others are brought to a norm."""
  after = {record.name: record.value for record in applied}
  left, sizes, factors = set[str](), list[float](), list[float]()
  for record in gradients:
    value, size = after.get(record.name), norm_of(record)
    if value is None or record.value is None or not size:
      continue
    if _same(record.value, value):
      left.add(record.name)
    else:
      sizes.append(size)
      factors.append(norm(value) / norm(record.value))
  if not factors or max(factors) > min(factors) * (1 + _SAME):
    return set()
  return left if is_close(math.hypot(*sizes) * factors[0], limit) else set()


def _told(found: Sequence[tuple[str, _Array, _Array]], clip: Clip) -> str:
  """Returns what parts gradients are clipped by; see `other_parts`.

  Args:
    found: name, gradient, and what is applied of it, which is not what TF1 applies.
    clip: of TF1.
  """
  if not found:
    return ''
  gradients = np.concatenate([gradient.ravel() for _, gradient, _ in found]).astype(np.float64)
  applied = np.concatenate([value.ravel() for _, _, value in found])
  owners = np.repeat(np.arange(len(found)), [gradient.size for _, gradient, _ in found])
  moved = np.flatnonzero(gradients * applied)
  parts = _parts(applied[moved] / gradients[moved])
  if not 1 <= len(parts) <= _MOST_PARTS:
    return ''
  scaled = []
  for places, factor in parts:
    where = moved[places]
    if abs(factor - 1.0) <= _SAME:
      continue  # of a norm below the limit, or several of them
    if not is_close(norm(gradients[where]) * factor, clip.limit):
      return ''
    scaled.append((norm(gradients[where]), frozenset(owners[where].tolist())))
  if not scaled:
    return ''
  return _text(found, [owners[moved[places]] for places, _ in parts], scaled, clip)


def _of_groups(evidence: TrainingEvidence) -> list[tuple[str, _Array, _Array]]:
  """Returns what the port has in other variables and applies otherwise: gradient, and applied."""
  ones, others = ({r.name: r for r in step.applied_gradients} for step in evidence.steps)
  raw = {record.name: record.value for record in evidence.steps[1].gradients}
  found = []
  for tf1, tf2 in evidence.pairs:
    one, other, gradient = ones.get(tf1), others.get(tf2), raw.get(tf2)
    if one is None or other is None or not other.of_group or gradient is None:
      continue
    if one.value is not None and other.value is not None and not _same(one.value, other.value):
      found.append((tf1, gradient, other.value))
  return found


def _of_slots(evidence: TrainingEvidence) -> list[tuple[str, _Array, _Array]]:
  """Returns what the port applies of gradients, by slots that start from zero and grow by these.

  What it calls such a slot is told by the variables of which both sides have the same.
  """
  raw = {record.name: record.value for record in evidence.steps[0].gradients}
  known: list[tuple[StepPair, _Array, _Array]] = []
  for pair in evidence.moves:
    given = pair.tf1.gradient
    grown = [] if given is None else [s for s in pair.tf1.slots_after.values() if _grows(s, given)]
    if given is not None and grown:
      known.append((pair, given, grown[0]))
  alike = Counter(
    role
    for pair, _, one in known
    for role, other in pair.tf2.slots_after.items()
    if _same(one, other)
  )
  role = max(alike, key=lambda name: alike[name], default='')
  found = []
  for pair, given, one in known:
    gradient, other = raw.get(pair.name), pair.tf2.slots_after.get(role)
    if gradient is not None and other is not None and not _same(one, other):
      applied = np.divide(given * other, one, out=np.zeros_like(one), where=one != 0)
      found.append((pair.name, gradient, applied))
  return found


def _grows(slot: _Array, given: _Array) -> bool:
  """Returns whether a slot is a number times what was given to the update."""
  size = float(np.vdot(given, given)) if slot.shape == given.shape else 0.0
  return bool(size) and _same(given * (float(np.vdot(given, slot)) / size), slot)


def _parts(factors: _Array) -> list[tuple[_Array, float]]:
  """Returns the places of elements that one factor scales, and the factor."""
  order = np.argsort(factors)
  ends = np.flatnonzero(np.diff(factors[order]) > _SAME * np.abs(factors[order][:-1])) + 1
  parts = np.split(order, ends)
  return [(part, float(np.median(factors[part]))) for part in parts if part.size]


def _text(
  found: Sequence[tuple[str, _Array, _Array]],
  owners: Sequence[_Array],
  scaled: Sequence[tuple[float, frozenset[int]]],
  clip: Clip,
) -> str:
  names = listed([name for name, _, _ in found])
  size, of = max(scaled, key=lambda part: part[0])
  is_shared = any(len(part) > 1 for _, part in scaled)
  is_divided = any(sum(n in part for part in owners) > 1 for n in range(len(found)))
  where = listed([found[n][0] for n in sorted(of)])
  if is_shared:
    how = (
      f'holds {names} in variables of other parts'
      if is_divided
      else f'holds {names} in fewer variables'
    )
    fix = "clip the part of each of TF1's variables by its own norm"
  else:
    how = f'holds {names} in several variables each'
    fix = 'scale the parts by the norm of all of them (tf.clip_by_global_norm of these alone)'
  wholes = [norm(found[n][1]) for n in sorted(of)]
  return (
    f'both sides scale each gradient by its own norm, to {number_text(clip.limit)}, but the port '
    f'{how}, and clips these one by one: of {where}, TF1 takes the norm '
    f'{" and ".join(f"{whole:.4g}" for whole in wholes[:3])}, the port {size:.4g}: {fix}'
  )


def _same(one: _Array, other: _Array) -> bool:
  size = float(np.abs(one).max(initial=0.0))
  return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=1e-5 * size))
