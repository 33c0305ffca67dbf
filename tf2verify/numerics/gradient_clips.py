"""How gradients were clipped, told by what they were before it and after it."""

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import ClippingTrial

NONE, JOINT, EACH, VALUES = 'none', 'joint', 'each', 'values'
_CLOSE = 1e-4
# One factor for small gradients and for large ones, up to the rounding of both.
_SAME_FACTOR = 1e-3


@dataclasses.dataclass(frozen=True, eq=False)
class _Pair:
  """A gradient as differentiated and as applied, flat, and their norms as a clipping takes them.

  That is of the rows of `IndexedSlices` as they are, where both are such.
  """

  raw: np.ndarray
  applied: np.ndarray
  size: float
  limit: float


_Pairs = list[_Pair]


@dataclasses.dataclass(frozen=True)
class Clip:
  """A clipping.

  Attributes:
    kind: `NONE`, `JOINT` (all are scaled by their joint norm), `EACH` (each by its own
      norm) or `VALUES` (elements are cut off).
    limit: of the norm, or of the elements; 0 for `NONE`.
  """

  kind: str
  limit: float = 0.0

  def is_like(self, other: 'Clip') -> bool:
    """Returns whether two clippings are the same, as far as arrays tell."""
    return self.kind == other.kind and is_close(self.limit, other.limit)

  @property
  def is_round(self) -> bool:
    """Whether the limit is a number that somebody may have written."""
    return is_close(self.limit, float(f'{self.limit:.2g}'))


def clip_of(before: Iterable[TensorRecord], after: Iterable[TensorRecord]) -> Clip | None:
  """Returns the clipping that makes some gradients out of others; None where none does.

  Args:
    before: as differentiated.
    after: as given to the update.
  """
  pairs = list(_paired(before, after).values())
  if not pairs or any(pair.raw.shape != pair.applied.shape for pair in pairs):
    return None
  return _no_clip(pairs) or _joint(pairs) or _each(pairs) or _values(pairs)


def clip_in_trial(trial: ClippingTrial) -> Clip | None:
  """Returns the clipping of large gradients; None where it is none that is known.

  What multiplies small gradients and large ones by the same factors clips none.
  """
  if _has_same_factors(trial):
    return Clip(NONE)
  return clip_of(trial.large, trial.large_applied)


def greatest_sizes(gradients: Iterable[TensorRecord]) -> dict[str, float]:
  """Returns, by kind of clipping, what its limit is compared with, at the most."""
  known = [record for record in gradients if record.value is not None]
  norms = [norm_of(record) for record in known]
  values = [record.value for record in known if record.value is not None]
  return {
    JOINT: math.hypot(*norms),
    EACH: max(norms, default=0.0),
    VALUES: max((float(np.abs(value).max(initial=0.0)) for value in values), default=0.0),
  }


def norm_of(gradient: TensorRecord) -> float:
  """Returns the norm that a clipping takes: of the rows of `IndexedSlices` as they are."""
  if gradient.slices is not None:
    return gradient.slices.norm
  return 0.0 if gradient.value is None else norm(gradient.value)


def enlargement(gradients: Iterable[TensorRecord]) -> float:
  """Returns the power of 2 by which gradients become larger than any limit of a clipping.

  Their joint norm is about 1e6 then; 100 where a square would not fit into float16.

  Raises:
    NotApplicable: all of them are 0, or one is not finite.
  """
  values = [record.value for record in gradients if record.value is not None]
  size = math.hypot(*(norm(value) for value in values))
  if not size or not math.isfinite(size):
    raise NotApplicable('the gradients are 0, or not finite')
  wanted = 1e2 if any(value.dtype.itemsize < 4 for value in values) else 1e6
  return float(2.0 ** round(math.log2(wanted / size)))


def norm(values: np.ndarray) -> float:
  """Returns the Euclidean norm, summed in float64."""
  return math.sqrt(float(np.sum(np.square(values, dtype=np.float64))))


def is_close(one: float, other: float) -> bool:
  """Returns whether two limits are the same, up to rounding."""
  return abs(one - other) <= _CLOSE * max(abs(one), abs(other))


def _paired(before: Iterable[TensorRecord], after: Iterable[TensorRecord]) -> dict[str, _Pair]:
  raw = {record.name: record for record in before if record.value is not None}
  return {
    applied.name: _pair(raw[applied.name], applied)
    for applied in after
    if applied.value is not None and applied.name in raw
  }


def _pair(raw: TensorRecord, applied: TensorRecord) -> _Pair:
  assert raw.value is not None, 'those without were left out'
  assert applied.value is not None, 'those without were left out'
  flat = raw.value.reshape(-1), applied.value.reshape(-1)
  size, limit = map(norm, flat)
  if raw.slices is None or applied.slices is None or not size:
    return _Pair(*flat, size, limit)
  # An optimizer of Keras adds up repeated rows after clipping, so those applied may be fewer.
  return _Pair(*flat, raw.slices.norm, raw.slices.norm * limit / size)


def _has_same_factors(trial: ClippingTrial) -> bool:
  small = _paired(trial.gradients, trial.applied)
  large = _paired(trial.large, trial.large_applied)
  factors = [
    [pair.limit / pair.size for pair in (small[name], large[name]) if pair.size]
    for name in small.keys() & large.keys()
  ]
  known = [pair for pair in factors if len(pair) == 2]
  return bool(known) and all(abs(a - b) <= _SAME_FACTOR * max(a, b) for a, b in known)


def _no_clip(pairs: _Pairs) -> Clip | None:
  return Clip(NONE) if all(_same(pair.raw, pair.applied) for pair in pairs) else None


def _joint(pairs: _Pairs) -> Clip | None:
  size = math.hypot(*(pair.size for pair in pairs))
  limit = math.hypot(*(pair.limit for pair in pairs))
  if not 0 < limit < size or len(pairs) < 2:
    return None
  scaled = all(_same(pair.raw * (limit / size), pair.applied) for pair in pairs)
  return Clip(JOINT, limit) if scaled else None


def _each(pairs: _Pairs) -> Clip | None:
  limit = next(pair.limit for pair in pairs if not _same(pair.raw, pair.applied))
  for pair in pairs:
    expected = pair.raw * (limit / pair.size) if pair.size > limit else pair.raw
    if not _same(expected, pair.applied):
      return None
  return Clip(EACH, limit)


def _values(pairs: _Pairs) -> Clip | None:
  limit = max(float(np.abs(pair.applied).max(initial=0.0)) for pair in pairs)
  cut = all(_same(np.clip(pair.raw, -limit, limit), pair.applied) for pair in pairs)
  return Clip(VALUES, limit) if cut else None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
  size = float(np.abs(other).max(initial=0.0))
  return bool(np.allclose(one, other, rtol=_CLOSE, atol=_CLOSE * size))
