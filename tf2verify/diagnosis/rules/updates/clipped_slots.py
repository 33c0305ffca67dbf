"""Clippings of an optimizer of the port's own, told by what its slots have gained.

What such an optimizer applies is in no record. A first moment or a momentum that starts at zero is
a number times that, after the first step; and TF1's slots tell the number.
"""

import dataclasses
import math
from typing import Any

import numpy as np

from tf2verify.diagnosis.evidence.training import TrainingEvidence, VariableStep
from tf2verify.diagnosis.rules.updates.clipping import clip_fix, clip_text
from tf2verify.numerics.gradient_clips import NONE, Clip, clip_of
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import number_text

_Array = np.ndarray[Any, Any]
# Relative: two numbers, or arrays, that are nearer are one, but for rounding.
_SAME = 1e-4


def clipping_in_slots(evidence: TrainingEvidence) -> Cause | None:
  """Names a clipping of another kind or limit, by a slot that gains what is applied."""
  step, port = evidence.steps
  if evidence.number != 1 or evidence.sampled or port.applied_gradients:
    return None
  clip = clip_of(step.gradients, step.applied_gradients)
  share = None if clip is None else _share(evidence)
  if clip is None or share is None:
    return None
  raw = [r for r in step.gradients if r.name not in evidence.left_out and r.value is not None]
  moves = {pair.name: pair.tf2 for pair in evidence.moves}
  if any(record.name not in moves for record in raw):
    return None
  gained = [_gained(moves[record.name]) for record in raw]
  for role in sorted(set.intersection(*(set(slots) for slots in gained))):
    given = [
      dataclasses.replace(record, value=slots[role] / share, slices=None)
      for record, slots in zip(raw, gained, strict=True)
    ]
    own = clip_of(raw, given)
    if own is not None and _is_told(own) and not own.is_like(clip):
      return Cause(
        f'TF1 {clip_text(clip)}; the port {clip_text(own)}: {clip_fix(clip)} in the port',
        f'in the first step, a slot of each variable gains {number_text(share)} times what is '
        'applied of its gradient, on both sides',
        explains=(About.UPDATE, About.SHADOWS),
      )
  return None


def _is_told(clip: Clip) -> bool:
  """Returns whether it is none that another number in front of the gradients may be taken for."""
  return clip.kind == NONE or clip.is_round


def _share(evidence: TrainingEvidence) -> float | None:
  """Returns by what number a slot of TF1 gains what is applied; None if not one for all."""
  applied = {r.name: r.value for r in evidence.steps[0].applied_gradients}
  shares = []
  for pair in evidence.moves:
    given = applied.get(pair.name)
    if given is None or not np.any(given):
      return None
    found = [s for slot in _gained(pair.tf1).values() if (s := _factor(given, slot)) is not None]
    shares.extend(found[:1])
  if len(shares) < max(len(evidence.moves), 1):
    return None
  share = shares[0]
  return share if all(math.isclose(one, share, rel_tol=_SAME) for one in shares) else None


def _factor(given: _Array, slot: _Array) -> float | None:
  """Returns the positive number by which one array is another one; None for none."""
  if given.shape != slot.shape:
    return None
  wide = given.astype(np.float64)
  factor = float(np.vdot(wide, slot)) / float(np.vdot(wide, wide))
  least = _SAME * float(np.abs(slot).max(initial=0.0))
  is_one = factor > 0.0 and np.allclose(wide * factor, slot, rtol=_SAME, atol=least)
  return factor if is_one else None


def _gained(move: VariableStep) -> dict[str, _Array]:
  """Returns the slots that start at zero, by role, as they are after the step."""
  starts = {role for role, slot in move.slots.items() if np.any(slot)}
  return {role: slot for role, slot in move.slots_after.items() if role not in starts}
