"""How gradients were clipped, told by what they were before it and after it."""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf2verify.errors import NotApplicable
from tf2verify.records.observation import TensorRecord
from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import ClippingTrial

NONE, JOINT, EACH, VALUES = 'none', 'joint', 'each', 'values'
BEFORE, AFTER = 'before', 'after'
_CLOSE = 1e-4
# One factor for small gradients and for large ones, up to the rounding of both.
_SAME_FACTOR = 1e-3
# Two gradients of one variable that are the same, up to the rounding of a few steps.
_AGREES = 1e-3
# The same of one that is small compared to the others, where less cancels in them.
_TELLS = 1e-2
# Of the greatest norm of a gradient: what may be rounding throughout, as a bias before a softmax.
_ROUNDING = 2.0**-24
# Of the greatest norm that an update is given: the least that a difference is measured by.
_LEAST_APPLIED = 1e-2


@dataclasses.dataclass(frozen=True, eq=False)
class _Pair:
  """A gradient as differentiated and as applied, flat, and their norms as a clipping takes them.

  That is of the rows of `IndexedSlices` as they are, where both are such. Where only the gradient
  as differentiated is, either norm may have been taken: `of_rows` says which one this is.
  """

  raw: np.ndarray
  applied: np.ndarray
  size: float
  limit: float
  of_group: bool = False  # see `TensorRecord`


_Pairs = list[_Pair]


@dataclasses.dataclass(frozen=True)
class Clip:
  """A clipping."""

  # `NONE`, `JOINT` (all are scaled by their global norm), `EACH` (each by its own norm) or `VALUES`
  # (elements are cut off).
  kind: str
  limit: float = 0.0  # of the norm, or of the elements; 0 for `NONE`
  # Whether elements of gradients are set to 0 `BEFORE` or `AFTER` it; '' where none are.
  clears: str = ''

  def is_like(self, other: 'Clip') -> bool:
    """Returns whether two clippings are the same, as far as arrays tell."""
    return self.scales_like(other) and self.clears == other.clears

  def scales_like(self, other: 'Clip') -> bool:
    """Returns whether two clippings are of one kind and limit."""
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
  before, after = list(before), list(after)
  found = _clip(list(_paired(before, after, of_rows=True).values()))
  if found is None:
    return _beside_zeros(list(_paired(before, after, of_rows=False).values()))
  if found.is_round or not _made_dense(before, after):
    return found
  dense = _clip(list(_paired(before, after, of_rows=False).values()))
  return dense if dense is not None and dense.is_round else found


def _clip(pairs: _Pairs) -> Clip | None:
  if not pairs or any(pair.raw.shape != pair.applied.shape for pair in pairs):
    return None
  return _no_clip(pairs) or _joint(pairs) or _each(pairs) or _values(pairs)


def _beside_zeros(pairs: _Pairs) -> Clip | None:
  """Returns a clipping by norms before or after which elements are set to 0, as those of padding.

  None where none is found, or where it may be either of two.
  """
  if any(pair.raw.shape != pair.applied.shape for pair in pairs):
    return None
  kept = [(pair.applied != 0) | (pair.raw == 0) for pair in pairs]
  if all(map(np.all, kept)):
    return None
  first, scaled = list[_Pair](), list[_Pair]()
  for pair, where in zip(pairs, kept, strict=True):
    left = pair.raw * where
    size, own = norm(left), norm(pair.raw)
    if not size and own:
      return None  # nothing tells by what it was scaled
    factor = norm(pair.applied) / size if size else 1.0
    if not _same(left * factor, pair.applied):
      return None
    first.append(dataclasses.replace(pair, raw=left, size=pair.size * (size / own if own else 1.0)))
    applied = pair.raw * np.asarray(factor, pair.raw.dtype)
    scaled.append(dataclasses.replace(pair, applied=applied, limit=pair.size * factor))
  both = (BEFORE, _joint(first) or _each(first)), (AFTER, _joint(scaled) or _each(scaled))
  found = [dataclasses.replace(clip, clears=when) for when, clip in both if clip is not None]
  found = found if len(found) == 1 else [clip for clip in found if clip.is_round]
  return found[0] if len(found) == 1 else None


def _made_dense(before: Iterable[TensorRecord], after: Iterable[TensorRecord]) -> bool:
  """Returns whether rows went in and a dense gradient came out, before or after the clipping."""
  dense = {record.name for record in after if record.value is not None and record.slices is None}
  return any(record.slices is not None and record.name in dense for record in before)


def clip_in_trial(trial: ClippingTrial) -> Clip | None:
  """Returns the clipping of large gradients; None where it is none that is known.

  What multiplies small gradients and large ones by the same factors clips none.
  """
  if _has_same_factors(trial):
    return Clip(NONE)
  found = clip_of(trial.large, trial.large_applied)
  if found is not None and found.kind == JOINT:
    applied = {record.name for record in trial.large_applied if record.value is not None}
    if any(norm_of(record) > 0 for record in trial.large if record.name not in applied):
      return None  # they may be part of the norm
  return found


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

  Their global norm is about 1e6 then; 100 where a square would not fit into float16.

  Raises:
    NotApplicable: all of them are 0, or one is not finite.
  """
  values = [record.value for record in gradients if record.value is not None]
  size = math.hypot(*(norm(value) for value in values))
  if not size or not math.isfinite(size):
    raise NotApplicable('the gradients are 0, or not finite')
  wanted = 1e2 if any(value.dtype.itemsize < 4 for value in values) else 1e6
  return float(2.0 ** round(math.log2(wanted / size)))


def equalizing_factors(
  tf1: Iterable[TensorRecord], tf2: Iterable[TensorRecord], pairs: Sequence[tuple[str, str]]
) -> tuple[dict[str, float], dict[str, float]] | None:
  """Returns factors by which the gradients become larger than any limit, and equally large.

  A norm of all tells then what each of them adds to it, also of one that is small. What is zero
  in exact arithmetic, and rounding on either side, is multiplied by 0.

  Args:
    tf1: gradients of a step.
    tf2: those of the port.
    pairs: variable names of tf1 and tf2.

  Returns:
    The powers of 2 of tf1 and of tf2, by the side's own variable names; None where too little is
    known of the gradients.
  """
  ones, others = ({record.name: record.value for record in side} for side in (tf1, tf2))
  to_tf1 = {name: one for one, name in pairs}
  paired = {name: to_tf1.get(name, name) for name in others}
  if set(paired.values()) != set(ones) or not ones:
    return None
  values = [*ones.values(), *others.values()]
  if any(value is None or isinstance(value, SampledArray) for value in values):
    return None
  if any(value is not None and value.dtype.itemsize < 4 for value in values):
    return None  # a square would not fit
  wanted = 1e6 / math.sqrt(len(ones))
  greatest = max((norm(value) for value in values if value is not None), default=0.0)
  factors = {}
  for name, one in paired.items():
    value, other = ones[one], others[name]
    assert value is not None, 'looked at above'
    assert other is not None, 'looked at above'
    size, apart = norm(other), _distance(value, other)
    # Both sides may round to the same, and do so no longer in the step that is tried.
    agrees = math.isfinite(size) and size > _ROUNDING * greatest and apart <= _AGREES
    factors[name] = 2.0 ** round(math.log2(wanted / size)) if agrees else 0.0
  if not any(factors.values()):
    return None
  return {one: factors[name] for name, one in paired.items()}, factors


def differs_in_trial(
  tf1: ClippingTrial | None, tf2: ClippingTrial | None, pairs: Sequence[tuple[str, str]]
) -> tuple[str, float, float] | None:
  """Compares what two sides make of the same large gradients.

  Args:
    tf1: the trial of the reference; None where the updates are given the gradients as they are.
    tf2: that of the port; not None as well.
    pairs: variable names of tf1 and tf2.

  Returns:
    The variable whose gradients differ most, by tf1's name, and by what each side has multiplied
    it; None where they agree.

  Raises:
    NotApplicable: the large gradients are not known of both sides, or not the same.
  """
  if tf1 is None and tf2 is None:
    return None
  raw, applied = _large(tf1, {})
  other_raw, other_applied = _large(tf2, {name: one for one, name in pairs})
  if tf1 is None:
    raw = applied = other_raw
  if tf2 is None:
    other_raw = other_applied = raw
  common = [name for name in applied if name in other_applied and name in raw]
  if not common or any(name not in other_raw for name in common):
    raise NotApplicable('how larger gradients are treated is not known for both sides')
  given = {
    name for side in (raw, other_raw) for name, gradient in side.items() if norm(gradient) > 0
  }
  greatest = max((norm(gradient) for gradient in raw.values()), default=0.0)
  # By parts of the greatest one, which is what a norm of all is made of, and of its own.
  apart, own = (
    {
      name: _distance(raw[name], other_raw[name], least)
      if name in raw and name in other_raw
      else math.inf
      for name in (*given, *common)
    }
    for least in (greatest, 0.0)
  )
  if max(apart.values()) > _AGREES:
    raise NotApplicable('the larger gradients of both sides are not the same')
  # What was set to zero tells nothing, and what cancels in a side's own arithmetic is rounding.
  telling = [name for name in common if norm(raw[name]) > 0 and own[name] <= _TELLS]
  if not telling:
    raise NotApplicable('the larger gradients are all zero, or rounding')
  least = _LEAST_APPLIED * max(norm(applied[name]) for name in telling)
  allowed = _CLOSE + 10 * max(apart.values())
  beyond, name = max(
    (_distance(applied[name], other_applied[name], least) - 10 * own[name], name)
    for name in telling
  )
  if beyond <= allowed:
    return None
  size = norm(raw[name])
  return name, norm(applied[name]) / size, norm(other_applied[name]) / size


def _large(
  trial: ClippingTrial | None, names: Mapping[str, str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
  if trial is None:
    return {}, {}
  return _by_name(trial.large, names), _by_name(trial.large_applied, names)


def _by_name(records: Iterable[TensorRecord], names: Mapping[str, str]) -> dict[str, np.ndarray]:
  return {
    names.get(record.name, record.name): record.value
    for record in records
    if record.value is not None and not isinstance(record.value, SampledArray)
  }


def _distance(one: np.ndarray, other: np.ndarray, least: float = 0.0) -> float:
  """Returns how far two arrays are apart, in parts of the larger one, or of a least norm."""
  if one.shape != other.shape:
    return math.inf
  size = max(norm(one), norm(other), least)
  return norm(np.subtract(one, other, dtype=np.float64)) / size if size else 0.0


def norm(values: np.ndarray) -> float:
  """Returns the Euclidean norm, summed in float64."""
  return math.sqrt(float(np.sum(np.square(values, dtype=np.float64))))


def is_close(one: float, other: float) -> bool:
  """Returns whether two limits are the same, up to rounding."""
  return abs(one - other) <= _CLOSE * max(abs(one), abs(other))


def _paired(
  before: Iterable[TensorRecord], after: Iterable[TensorRecord], of_rows: bool = True
) -> dict[str, _Pair]:
  raw = {record.name: record for record in before if record.value is not None}
  return {
    applied.name: _pair(raw[applied.name], applied, of_rows)
    for applied in after
    if applied.value is not None and applied.name in raw
  }


def _pair(raw: TensorRecord, applied: TensorRecord, of_rows: bool) -> _Pair:
  assert raw.value is not None, 'those without were left out'
  assert applied.value is not None, 'those without were left out'
  flat = raw.value.reshape(-1), applied.value.reshape(-1)
  size, limit = map(norm, flat)
  if raw.slices is None or not size or (applied.slices is None and not of_rows):
    return _Pair(*flat, size, limit, raw.of_group)
  # An optimizer of Keras adds up repeated rows after clipping, so those applied may be fewer.
  return _Pair(*flat, raw.slices.norm, raw.slices.norm * limit / size, raw.of_group)


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
  whole = [pair for pair in pairs if not pair.of_group]
  limit = next((pair.limit for pair in whole if not _same(pair.raw, pair.applied)), None)
  if limit is None:
    return None
  for pair in whole:
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
