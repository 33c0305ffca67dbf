"""Tests of samples and signed means."""

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import sampling
from tf2verify.numerics.arrays import compare_arrays
from tf2verify.numerics.sampling import Views, is_whole, sampled
from tf2verify.numerics.tolerance import Tolerance
from tf2verify.records.difference import Aspect
from tf2verify.records.sampled import SampledArray
from tf2verify.reference.arrays import array_digest
from tf2verify.reference.sampling import sample_positions as positions
from tf2verify.reference.sampling import signs
from tf2verify.reference.versions import VERSIONS

_TOLERANCE = Tolerance(rtol=1e-6, atol=1e-5)
# Of the digest of the signs, as int8.
_SIGNS = '8e0cc5a5412f0a76'
_RELATIVE = Tolerance(rtol=1e-6, atol=0.0)


def _values(*shape, seed=0):
  return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def _compared(tf1, tf2, tolerance=_TOLERANCE):
  views = Views(sampled(tf1), tf2)
  return compare_arrays(views.tf1, views.tf2, tolerance)


class LayoutTest(parameterized.TestCase):
  @parameterized.parameters(0, 1, 5, 1023, 1024, 1025, 100_000, 50_000_000, 2**40)
  def test_positions_rise_and_are_one_of_each_part(self, size):
    found = positions(size)
    self.assertLen(found, min(size, 1024))
    self.assertTrue((np.diff(found) > 0).all())
    starts = np.arange(len(found) + 1) * size // max(len(found), 1)
    self.assertTrue(((found >= starts[:-1]) & (found < starts[1:])).all())

  def test_positions_and_signs_never_change(self):
    # The numbers are part of the format: a change needs a new version of "sampling".
    self.assertEqual(VERSIONS['sampling'], 1)
    self.assertEqual(positions(10_000_000)[:4].tolist(), [2669, 18604, 24162, 30745])
    self.assertEqual(array_digest(signs().astype(np.int8))[:16], _SIGNS)
    self.assertGreaterEqual(np.abs(signs().sum(1)).min(), 4)

  def test_samples_and_means_are_what_the_documentation_says(self):
    value = _values(70, 30)
    found = sampled(value)
    self.assertEqual(found.shape, (1024 + 33,))
    self.assertLen(found, sampling.stored_size(2100, 1024, 64))
    np.testing.assert_array_equal(found[:1024], value.reshape(-1)[positions(2100)])
    padded = np.zeros(64 * 33)
    padded[:2100] = value.reshape(-1)
    pattern = np.resize(signs(), (33, 64))
    np.testing.assert_array_equal(
      found[1024:], ((padded.reshape(33, 64) * pattern).sum(1) / 64).astype(np.float32)
    )
    self.assertEqual((found.full_shape, found.full_size), ((70, 30), 2100))
    self.assertEqual(found.sha256, array_digest(value))

  def test_arithmetic_stays_that_of_the_whole_arrays(self):
    one, other = _values(70, 30), _values(70, 30, seed=1)
    difference = sampled(one) - sampled(other)
    self.assertIsInstance(difference, SampledArray)
    self.assertEqual((difference.full_shape, difference.samples), ((70, 30), 1024))
    self.assertEqual(difference.sha256, '')
    np.testing.assert_allclose(difference, sampled(one - other), atol=1e-7)

  @parameterized.parameters('float16', ml_dtypes.bfloat16, 'float64', 'complex64', 'complex128')
  def test_other_dtypes(self, dtype):
    value = (_values(70, 30) * (1 + 1j if np.dtype(dtype).kind == 'c' else 1)).astype(dtype)
    found = sampled(value)
    self.assertEqual(found.dtype, value.dtype)
    result = compare_arrays(Views(found, value).tf1, Views(found, value).tf2, _TOLERANCE)
    self.assertTrue(result.identical)
    wrong = value.copy()
    wrong[3, 4] += np.asarray(3, dtype)
    self.assertEqual(_compared(value, wrong).aspect, Aspect.VALUES)

  def test_an_array_without_elements(self):
    self.assertEqual(sampled(np.zeros((0, 3), np.float32)).shape, (0,))


class SensitivityTest(parameterized.TestCase):
  """The table of docs/decisions/0025-large-arrays-are-sampled.md, on a smaller array."""

  def setUp(self):
    super().setUp()
    self._value = _values(500, 1000)
    random = np.random.RandomState(1)
    self._errors = {
      'uniform': random.uniform(-1, 1, self._value.shape),
      'all as far': random.randint(0, 2, self._value.shape) * 2 - 1,
      'one factor': np.ones(self._value.shape),
      'with the signs of the means': (
        np.resize(signs(), self._value.size).reshape(500, 1000) * np.sign(self._value)
      ),
    }

  @parameterized.product(
    kind=('uniform', 'all as far', 'one factor', 'with the signs of the means'),
    size=(5e-7, 9e-7),
    tolerance=(_TOLERANCE, _RELATIVE),
  )
  def test_what_passes_as_a_whole_passes_in_part(self, kind, size, tolerance):
    errors = 1 + size * self._errors[kind]
    moved = (self._value.astype(np.float64) * errors).astype(np.float32)
    self.assertIsNone(compare_arrays(self._value, moved, tolerance).aspect)
    self.assertIsNone(_compared(self._value, moved, tolerance).aspect)

  @parameterized.parameters('uniform', 'all as far', 'one factor')
  def test_what_is_beyond_the_tolerance_all_over_is_seen(self, kind):
    moved = (self._value * (1 + 3e-6 * self._errors[kind])).astype(np.float32)
    self.assertEqual(_compared(self._value, moved, _RELATIVE).aspect, Aspect.VALUES)

  @parameterized.parameters((8e-4, _TOLERANCE), (1e-4, _RELATIVE))
  def test_one_element_of_half_a_million(self, error, tolerance):
    for position in np.random.RandomState(2).randint(self._value.size, size=20).tolist():
      moved = self._value.copy()
      moved.reshape(-1)[position] += np.float32(error)
      views = Views(sampled(self._value), moved)
      found = compare_arrays(views.tf1, views.tf2, tolerance)
      element, is_block = views.element(found.difference.index[0])
      self.assertEqual(found.difference.mismatched, 1)
      self.assertTrue(is_block)
      self.assertEqual(element, position // 64 * 64)
      one, other = views.means(found.difference.index[0])
      self.assertAlmostEqual(abs(other - one), error / 64, delta=1e-7)

  def test_one_element_by_less_than_64_allowances_is_not(self):
    moved = self._value.copy()
    moved[123, 456] += np.float32(5e-4)
    self.assertIsNone(_compared(self._value, moved).aspect)

  @parameterized.named_parameters(
    ('transposed', lambda value: np.ascontiguousarray(value.T).reshape(value.shape), 8000),
    ('shifted', lambda value: np.roll(value.reshape(-1), 1).reshape(value.shape), 8000),
    ('reversed', lambda value: value[::-1].copy(), 8000),
    ('rows_exchanged', lambda value: value[[1, 0, *range(2, 500)]], 20),
    ('columns_exchanged', lambda value: value[:, [1, 0, *range(2, 1000)]], 200),
    ('last_row_zero', lambda value: value * (np.arange(500) < 499)[:, None].astype('f4'), 10),
    ('constant_added_to_64', lambda value: value + _stretch(640, 704, 1e-3), 1),
  )
  def test_other_orders_are_seen(self, change, least):
    found = _compared(self._value, change(self._value))
    self.assertGreaterEqual(found.difference.mismatched, least)

  def test_half_of_the_exchanges_within_a_block_are_seen(self):
    random, seen = np.random.RandomState(3), 0
    for _ in range(100):
      moved = self._value.reshape(-1).copy()
      start = 64 * random.randint(7000)
      one, other = start + random.choice(64, 2, replace=False)
      moved[[one, other]] = moved[[other, one]]
      seen += _compared(self._value, moved.reshape(500, 1000)).aspect is not None
    self.assertBetween(seen, 35, 65)


def _stretch(start, end, value):
  found = np.zeros(500_000, np.float32)
  found[start:end] = value
  return found.reshape(500, 1000)


class ViewsTest(parameterized.TestCase):
  def test_non_finite_elements_agree_where_they_are_the_same(self):
    value = _values(100, 100)
    value[3, 4], value[50, 60] = np.nan, np.inf
    self.assertIsNone(_compared(value, value.copy()).aspect)
    other = value.copy()
    other[3, 4] = 0
    self.assertEqual(_compared(value, other).aspect, Aspect.NON_FINITE)
    self.assertEqual(_compared(other, value).aspect, Aspect.NON_FINITE)

  def test_a_moved_value_is_seen_as_the_port_is(self):
    value, port = _values(100, 100), _values(100, 100) + np.float32(1e-3)
    views = Views(sampled(value), port)
    np.testing.assert_array_equal(views.of(value), views.tf1)
    np.testing.assert_array_equal(views.of(sampled(value)), views.tf1)
    np.testing.assert_array_equal(views.of(port), views.tf2)
    moved = value + np.float32(1e-4)
    spread = np.abs(views.of(sampled(moved)) - views.tf1)
    np.testing.assert_allclose(spread[:1024], 1e-4, rtol=1e-2)
    means = sampled(np.full_like(value, 1e-4))[1024:]
    np.testing.assert_allclose(spread[1024:], np.abs(means), atol=3e-7)
    self.assertIsNone(views.of(value[1:]))
    self.assertIsNone(views.of(sampled(value[1:])))

  def test_zeros_on_one_side(self):
    value, zero = _values(100, 100), np.zeros((100, 100), np.float32)
    self.assertEqual(_compared(value, zero).aspect, Aspect.VALUES)
    self.assertEqual(_compared(zero, value).aspect, Aspect.VALUES)
    self.assertTrue(_compared(zero, zero).identical)
    near = _compared(zero + np.float32(1e-7), zero)
    self.assertTrue(near.within_tolerance_of_zero)

  def test_the_digest_tells_the_whole(self):
    value = _values(100, 100)
    self.assertTrue(is_whole(sampled(value), value.copy()))
    other = value.copy()
    other[0, 1] += 1
    self.assertFalse(is_whole(sampled(value), other))
    self.assertFalse(is_whole(sampled(value), value.reshape(-1)))
    self.assertFalse(is_whole(sampled(value), value.astype(np.float64)))
    self.assertFalse(is_whole(sampled(value) * np.float32(1), value))

  def test_samples_without_means(self):
    value = _values(100, 100)
    found = sampled(value, samples=64, block=0)
    self.assertEqual(found.shape, (64,))
    np.testing.assert_array_equal(Views(found, value).tf1, Views(found, value).tf2)


if __name__ == '__main__':
  absltest.main()
