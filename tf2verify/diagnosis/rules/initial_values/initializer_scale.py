"""Initial values of another scale, or that are another constant."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.numbers.arrays import Affine, affine
from tf2verify.numerics.same_numbers import holds_one_number
from tf2verify.records.diagnosis import Cause
from tf2verify.records.failed_tensor import FailedTensor

# slim divides by a rounded correction of the truncated normal, Keras by the exact one.
SLIM_CORRECTION = 1.3**0.5 * 0.87962566103423978
# Scale, what tf1's numbers are if it is that default (least, greatest, stddev), what to say.
_DEFAULTS: tuple[tuple[Affine, tuple[float, float, float] | None, str], ...] = (
  (
    Affine(0.05),
    (-6.0, 6.0, 1.0),
    'the initializer of the port has the default of TF2, a stddev of 0.05, that of tf1 the default '
    'of TF1, 1.0 (random_normal_initializer, truncated_normal_initializer): pass stddev=1.0',
  ),
  (
    Affine(0.1, -0.05),
    (0.0, 1.0, 12**-0.5),
    'the initializer of the port draws from -0.05 to 0.05, the default of TF2, that of tf1 from 0 '
    'to 1, the default of TF1 (random_uniform_initializer): pass minval=0, maxval=1',
  ),
  (
    Affine(1 / SLIM_CORRECTION),
    None,
    'the variance scaling of tf1 corrects the truncated normal by the factor 1.3 of slim, that of '
    'the port exactly: keep slim.variance_scaling_initializer, or pass '
    'VarianceScaling(scale=1.3 * 0.87962566 ** 2 * factor)',
  ),
  (
    Affine(SLIM_CORRECTION),
    None,
    'the variance scaling of the port corrects the truncated normal by the factor 1.3 of slim, '
    'that of tf1 exactly: use keras.initializers.VarianceScaling',
  ),
)


# So many numbers of a normal distribution are within one stddev once in a thousand times.
_FEW = 18
# Of an LSTM, along its bias.
_GATES = 4


def initializer_scale(evidence: FailedStage) -> Cause | None:
  """The same random numbers, scaled differently, or another constant.

  Looks for initial values that follow from those of tf1, or are another constant.
  """
  found: list[tuple[str, Affine, np.ndarray]] = []
  for failed in evidence.of_quantity('initial value'):
    if failed.tf1.size <= 2 or holds_one_number(failed.tf1) or holds_one_number(failed.tf2):
      continue  # nothing was drawn, or too little to tell a factor by
    way = affine(failed.tf1, failed.tf2)
    if way is not None and abs(way.factor - 1) > 1e-4:
      found.append((failed.name, way, failed.tf1))
  if not found:
    constant = _other_constant(evidence)
    return None if constant is None else Cause(*constant, by_itself=True)
  name, way, values = found[0]
  alike = {other for other, its, _ in found if _near(its, way)}
  more = f' (and {len(alike) - 1} more)' if len(alike) > 1 else ''
  offset = f' {way.offset:+.5g}' if abs(way.offset) > 1e-6 else ''
  seen = f'initial value of {name}{more}: tf2 = {way.factor:.5f} tf1{offset}, for every element'
  for known, drawn, text in _DEFAULTS:
    if _near(way, known) and (drawn is None or _is_drawn_so(values, *drawn)):
      text = f'every initial value is {way.factor:.5g} of that of tf1: {text}'
      return Cause(text, seen, by_itself=True)
  return Cause(
    f'{name} starts with {way.factor:.5g} times the values of tf1, drawn from the same random '
    'numbers: the two initializers have different scales (stddev, gain, or fan in and fan out)',
    seen,
    by_itself=True,
  )


def _near(one: Affine, other: Affine) -> bool:
  close = abs(one.factor - other.factor) <= 2e-4 * abs(other.factor)
  return close and abs(one.offset - other.offset) <= 1e-5


def _is_drawn_so(values: np.ndarray, least: float, greatest: float, stddev: float) -> bool:
  """Returns whether numbers may be of a distribution; of few ones, any scale near it is allowed."""
  wide = values.astype(np.float64)
  # A truncated normal has 0.88 of it; of n numbers the stddev is off by 1 / sqrt(2 n).
  off = 0.13 + 3 / (2 * wide.size) ** 0.5
  within = bool(((least <= wide) & (wide <= greatest)).all())
  if greatest > stddev and wide.size >= _FEW and np.abs(wide).max() <= stddev:
    return False  # of a normal distribution a third is beyond: these are uniform
  return within and abs(float(wide.std()) / stddev - 1) <= off


def _other_constant(evidence: FailedStage) -> tuple[str, str] | None:
  """Returns what to say of initial values that are constant on one side at least.

  Returns:
    What is wrong, and what was seen; None without any that no stage has explained already.
  """
  explained = {d.tf1_subject for d in evidence.differences if d.hint}
  found = {
    failed.name: failed
    for failed in reversed(evidence.of_quantity('initial value'))
    if failed.name not in explained and _is_other_constant(failed)
  }
  if not found:
    return None
  first, *others = reversed(found.values())
  more = ''
  if others:
    more = f' (and {len(others)} more: {", ".join(failed.name for failed in others[:3])}'
    more += ', …)' if len(others) > 3 else ')'
  one, other = _numbers(first.tf1), _numbers(first.tf2)
  named = {d.tf1_subject: d.tf2_subject for d in evidence.differences}
  # Under the shim there is no map, and names are the same.
  is_mapped = named.get(first.name, first.name) not in ('', first.name)
  added = _lacks_constant(first) if is_mapped else 0.0
  if added:
    return (
      f'the port starts {first.name} with 0 where the variable map adds {added:g} to a part of it, '
      'as the cell of TF1 does in each step (its forget bias): let the port start that part with '
      f'{added:g} (unit_forget_bias=True for 1){more}',
      f'initial value of {first.name}, through the map: {one} (tf1), {other} (tf2)',
    )
  return (
    f'the port starts {first.name} with {other}, tf1 with {one}{more}: give the variable of the '
    'port the initializer of tf1',
    f'initial value of {first.name}: {one} (tf1), {other} (tf2)',
  )


def _is_other_constant(failed: FailedTensor) -> bool:
  if failed.tf1.shape != failed.tf2.shape:
    return False
  constant = holds_one_number(failed.tf1), holds_one_number(failed.tf2)
  return any(constant) if failed.tf1.size > 1 else all(constant)


def _lacks_constant(failed: FailedTensor) -> float:
  """Returns what a cell adds to one of its four gates, if the port starts that at 0; 0 for nothing.

  A map subtracts it from the port's bias, which then starts below tf1's zeros by that.
  """
  one, other = failed.tf1, failed.tf2
  if one.ndim != 1 or one.size % _GATES or one.any() or other.dtype.kind != 'f':
    return 0.0
  blocks = other.reshape(_GATES, -1).astype(np.float64)
  lower = np.flatnonzero(blocks.any(axis=1))
  if len(lower) != 1 or not holds_one_number(blocks[lower[0]]):
    return 0.0
  return max(-float(blocks[lower[0], 0]), 0.0)


def _numbers(array: np.ndarray) -> str:
  wide = array.astype(np.float64) if array.dtype.kind in 'fiuV' else array
  if holds_one_number(array):
    return f'{wide.flat[0]:g}' if wide.dtype.kind == 'f' else str(wide.flat[0])
  return f'numbers from {wide.min():.3g} to {wide.max():.3g}'
