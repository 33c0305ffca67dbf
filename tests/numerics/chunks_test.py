"""The rules for chunks against a reference that looks at one element at a time."""

import math
import sys
import zlib
from unittest import mock

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import chunks
from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.tolerance import Tolerance
from tf2verify.records.difference import Aspect

_TOLERANCES = (
  (1e-6, 1e-5),
  (0.0, 0.0),
  (1e-3, 0.0),
  (0.0, 0.25),
  (0.1, 1e-40),
  (1e-40, 1e-45),
  (1e-30, 1e-38),
  (0.5, 1e30),
  (3.0, 0.0),
  (1e300, 0.0),
  (0.0, 1e300),
  (1.0, 1e39),
)


def _modulus(number):
  # abs() of a complex number raises where it overflows.
  return math.hypot(number.real, number.imag)


def _agree(tf1, tf2, tolerance):
  """Returns whether two Python numbers agree, and their excess."""
  if isinstance(tf1, complex):
    if not (np.isfinite(tf1) and np.isfinite(tf2)):
      parts = ((tf1.real, tf2.real), (tf1.imag, tf2.imag))
      return all(_agree(*part, tolerance)[0] for part in parts), math.inf
  elif not (math.isfinite(tf1) and math.isfinite(tf2)):
    return tf1 == tf2 or (math.isnan(tf1) and math.isnan(tf2)), math.inf
  difference = _modulus(tf2 - tf1)
  allowance = tolerance.atol + tolerance.rtol * min(_modulus(tf1), sys.float_info.max)
  if difference == math.inf:
    return False, math.inf
  return difference <= allowance, difference - allowance


def _is_borderline(tf1, tf2, tolerance):
  most = sys.float_info.max
  difference = _modulus(tf2 - tf1)
  allowance = min(tolerance.atol + tolerance.rtol * min(_modulus(tf1), most), most)
  return abs(min(difference, most) - allowance) <= 4 * math.ulp(allowance)


def _reference(tf1, tf2, tolerance):
  """Returns mismatched count, worst position, whether that is non-finite, near zero."""
  verdicts = [_agree(x, y, tolerance) for x, y in zip(tf1.tolist(), tf2.tolist(), strict=True)]
  bad = [position for position, (agree, _) in enumerate(verdicts) if not agree]
  astray = [position for position in bad if not np.isfinite([tf1[position], tf2[position]]).all()]
  if not bad:
    values = [*tf1.tolist(), *tf2.tolist()]
    near_zero = all(_modulus(value) <= tolerance.atol for value in values)
    return 0, None, False, near_zero and tf1.tobytes() != tf2.tobytes()
  worst = astray[0] if astray else max(bad, key=lambda position: verdicts[position][1])
  return len(bad), worst, bool(astray), False


def _found(tf1, tf2, tolerance):
  found = compare_arrays(tf1, tf2, tolerance)
  if found.difference is None:
    return 0, None, False, found.within_tolerance_of_zero
  non_finite = found.aspect is Aspect.NON_FINITE
  return found.difference.mismatched, found.difference.index[0], non_finite, False


def _numbers(generator, size, dtype):
  """Returns numbers of every magnitude, and the special ones."""
  limits = ml_dtypes.finfo(dtype)
  special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, limits.max, -limits.max, 1e-5]
  special += [limits.tiny, limits.smallest_subnormal, -limits.smallest_subnormal, 1e30, 1e-30]
  low, high = math.log2(float(limits.smallest_subnormal)), math.log2(float(limits.max))
  magnitudes = np.exp2(generator.uniform(low, high, size)) * generator.choice([-1, 1], size)
  near_one = generator.standard_normal(size)
  choice = generator.integers(0, 3, size)
  mixed = np.choose(choice, [generator.choice(special, size).astype(float), magnitudes, near_one])
  return mixed.astype(dtype)


def _counterparts(generator, tf1, tolerance):
  """Returns numbers that equal tf1, miss it by ULPs, or lie around the boundary."""
  dtype = tf1.dtype
  wide = tf1.astype(np.float64)
  sign = generator.choice([-1, 1], tf1.size)
  boundary = (wide + sign * (tolerance.atol + tolerance.rtol * np.abs(wide))).astype(dtype)
  towards = (sign * np.inf).astype(dtype)
  choices = [
    tf1,
    np.nextafter(tf1, towards),
    boundary,
    np.nextafter(boundary, towards),
    np.nextafter(boundary, -towards),
    _numbers(generator, tf1.size, dtype),
  ]
  # A chunk that passes as a whole takes another path than one that does not.
  usual = generator.integers(0, len(choices))
  chosen = np.where(generator.random(tf1.size) < 0.9, usual, generator.integers(0, 6, tf1.size))
  return np.stack(choices)[chosen, np.arange(tf1.size)]


class ReferenceTest(parameterized.TestCase):
  """Never passes what the rule fails, never fails what the rule passes."""

  @parameterized.product(
    dtype=('float32', 'float64', 'float16', ml_dtypes.bfloat16),
    figures=_TOLERANCES,
    chunk_bytes=(8, 64, 2**18),
  )
  def test_floating(self, dtype, figures, chunk_bytes):
    generator = np.random.default_rng(zlib.crc32(self.id().encode()))
    tolerance = Tolerance(*figures)
    for _ in range(10):
      with np.errstate(all='ignore'):
        tf1 = _numbers(generator, 150, np.dtype(dtype))
        tf2 = _counterparts(generator, tf1, tolerance)
      with mock.patch.object(chunks, '_CHUNK_BYTES', chunk_bytes):
        found = _found(tf1, tf2, tolerance)
      self.assertEqual(found, _reference(tf1, tf2, tolerance))

  @parameterized.product(
    dtypes=(('float32', 'complex64'), ('float64', 'complex128')),
    figures=_TOLERANCES,
    chunk_bytes=(16, 2**18),
  )
  def test_complex(self, dtypes, figures, chunk_bytes):
    generator = np.random.default_rng(zlib.crc32(self.id().encode()))
    tolerance = Tolerance(*figures)
    for _ in range(10):
      with np.errstate(all='ignore'):
        tf1 = _numbers(generator, 150, np.dtype(dtypes[0]))
        tf2 = _counterparts(generator, tf1, tolerance)
      tf1, tf2 = tf1.view(dtypes[1]), tf2.view(dtypes[1])
      # The last bit of a modulus depends on who computes it.
      doubtful = [
        _is_borderline(x, y, tolerance) for x, y in zip(tf1.tolist(), tf2.tolist(), strict=True)
      ]
      tf2[doubtful] = tf1[doubtful]
      with mock.patch.object(chunks, '_CHUNK_BYTES', chunk_bytes):
        found = _found(tf1, tf2, tolerance)
      self.assertEqual(found, _reference(tf1, tf2, tolerance))

  def test_every_float16_pair_around_the_boundary(self):
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    tolerance = Tolerance(rtol=2**-10, atol=2**-20)
    for steps in range(-3, 4):
      other = (every.view(np.int16) + np.int16(steps)).view(np.float16)
      self.assertEqual(_found(every, other, tolerance), _reference(every, other, tolerance))

  def test_the_reference_itself_fails_a_planted_mismatch(self):
    tf1, tf2 = np.ones(3, 'float32'), np.array([1, 1, 1.1], 'float32')
    self.assertEqual(_reference(tf1, tf2, Tolerance(1e-6, 1e-5)), (1, 2, False, False))


if __name__ == '__main__':
  absltest.main()
