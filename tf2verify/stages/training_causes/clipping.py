"""Gradients that are clipped otherwise."""

import dataclasses
import math

import numpy as np

from tf2verify.records.training import TrainingStep
from tf2verify.stages.training_causes.cause import About, Cause, number_text
from tf2verify.stages.training_causes.evidence import Evidence

_CLOSE = 1e-4
_NONE, _JOINT, _EACH, _VALUES = 'none', 'joint', 'each', 'values'
_WORDS = {
  _NONE: 'leaves the gradients of this step as they are',
  _JOINT: 'scales all gradients by their joint norm, to {}',
  _EACH: 'scales each gradient by its own norm, to {}',
  _VALUES: 'cuts each element off at {}',
}
_SPARSE = (
  '; if a gradient is sparse and has repeated rows, tf.clip_by_global_norm takes its norm before '
  "they are added up: pass the limit that stands in TF1's code then"
)
_FIXES = {
  _NONE: 'leave clipnorm, global_clipnorm and clipvalue out',
  _JOINT: 'pass global_clipnorm={0} (or apply tf.clip_by_global_norm)',
  _EACH: 'pass clipnorm={0} (or apply tf.clip_by_norm)',
  _VALUES: 'pass clipvalue={0} (or apply tf.clip_by_value)',
}


@dataclasses.dataclass(frozen=True)
class _Clip:
  kind: str
  limit: float = 0.0

  def __str__(self) -> str:
    return _WORDS[self.kind].format(number_text(self.limit))


def clipping(evidence: Evidence) -> Cause | None:
  """Names clips of other kinds or limits, each verified on the gradients of its side."""
  if evidence.sampled:
    return None  # a norm is of all elements
  one, other = evidence.steps
  tf1, tf2 = _clip(one), _clip(other)
  if tf1 is None or tf2 is None or (tf1.kind == tf2.kind and _close(tf1.limit, tf2.limit)):
    return None
  fix = _FIXES[tf1.kind].format(number_text(tf1.limit))
  if tf1.kind == _JOINT and not _is_round(tf1.limit):
    fix += _SPARSE
  return Cause(
    f'TF1 {tf1}; the port {tf2}: {fix}',
    frozenset({About.GRADIENTS, About.UPDATE, About.SHADOWS}),
  )


def _clip(step: TrainingStep) -> _Clip | None:
  raw = {r.name: r.value for r in step.gradients if r.value is not None}
  applied = {
    r.name: r.value for r in step.applied_gradients if r.value is not None and r.name in raw
  }
  if not applied or any(raw[name].shape != value.shape for name, value in applied.items()):
    return None
  pairs = [(raw[name].reshape(-1), value.reshape(-1)) for name, value in applied.items()]
  return _no_clip(pairs) or _joint(pairs) or _each(pairs) or _values(pairs)


_Pairs = list[tuple[np.ndarray, np.ndarray]]


def _no_clip(pairs: _Pairs) -> _Clip | None:
  return _Clip(_NONE) if all(_same(raw, applied) for raw, applied in pairs) else None


def _joint(pairs: _Pairs) -> _Clip | None:
  norm = math.hypot(*(_norm(raw) for raw, _ in pairs))
  limit = math.hypot(*(_norm(applied) for _, applied in pairs))
  if not 0 < limit < norm or len(pairs) < 2:
    return None
  scaled = all(_same(raw * (limit / norm), applied) for raw, applied in pairs)
  return _Clip(_JOINT, limit) if scaled else None


def _each(pairs: _Pairs) -> _Clip | None:
  clipped = [(raw, applied) for raw, applied in pairs if not _same(raw, applied)]
  limit = _norm(clipped[0][1])
  for raw, applied in pairs:
    norm = _norm(raw)
    expected = raw * (limit / norm) if norm > limit else raw
    if not _same(expected, applied):
      return None
  return _Clip(_EACH, limit)


def _values(pairs: _Pairs) -> _Clip | None:
  limit = max(float(np.abs(applied).max(initial=0.0)) for _, applied in pairs)
  cut = all(_same(np.clip(raw, -limit, limit), applied) for raw, applied in pairs)
  return _Clip(_VALUES, limit) if cut else None


def _norm(values: np.ndarray) -> float:
  return math.sqrt(float(np.sum(np.square(values, dtype=np.float64))))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  size = float(np.abs(other).max(initial=0.0))
  return bool(np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE * size))


def _is_round(limit: float) -> bool:
  return _close(limit, float(f'{limit:.2g}'))


def _close(one: float, other: float) -> bool:
  return abs(one - other) <= _CLOSE * max(abs(one), abs(other))
