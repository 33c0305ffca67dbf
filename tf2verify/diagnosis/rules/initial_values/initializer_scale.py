"""Initial values of another scale."""

import numpy as np

from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.patterns.arrays import Affine, affine
from tf2verify.diagnosis.rules.initial_values.initial_constants import other_constant
from tf2verify.numerics.same_numbers import holds_one_number
from tf2verify.records.diagnosis import Cause

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
    constant = other_constant(evidence)
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
