"""Tests of tf2verify.numerics.arrays."""

import math
import tracemalloc

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics.arrays import compare_arrays, compare_tensors
from tf2verify.numerics.tolerance import VALUE_TOLERANCES, Tolerance
from tf2verify.records.difference import Aspect
from tf2verify.records.tensor_key import TensorKey

_FLOAT32 = Tolerance(rtol=1e-6, atol=1e-5)
_NAN, _INF = math.nan, math.inf


def _array(*values, dtype=np.float32):
  return np.array(values, dtype)


class AttributesTest(parameterized.TestCase):
  """What is looked at before the values."""

  @parameterized.parameters(((2, 1), (2,)), ((1,), ()), ((2, 3), (3, 2)), ((0,), (0, 1)))
  def test_shapes_are_never_broadcast(self, shape1, shape2):
    found = compare_arrays(np.zeros(shape1), np.zeros(shape2), _FLOAT32)
    self.assertIs(found.aspect, Aspect.SHAPE)
    self.assertEqual((found.difference, found.elements, found.identical), (None, 0, False))

  @parameterized.parameters(
    ('float32', 'float64'), ('float16', ml_dtypes.bfloat16), ('int32', 'uint32'),
    ('bool', 'uint8'), ('S1', 'uint8'),
  )  # fmt: skip
  def test_dtypes_differ(self, dtype1, dtype2):
    found = compare_arrays(np.zeros(3, dtype1), np.zeros(3, dtype2), _FLOAT32)
    self.assertIs(found.aspect, Aspect.DTYPE)

  def test_shape_comes_before_dtype(self):
    found = compare_arrays(np.zeros(3, 'float32'), np.zeros(2, 'float64'), _FLOAT32)
    self.assertIs(found.aspect, Aspect.SHAPE)

  def test_byte_order_is_no_dtype(self):
    values = np.arange(5, dtype='float32')
    found = compare_arrays(values.astype('>f4'), values, _FLOAT32)
    self.assertTrue(found.identical)

  @parameterized.parameters('float32', 'float64', 'int32', 'bool', object, 'S3', 'complex64')
  def test_empty_arrays_agree(self, dtype):
    found = compare_arrays(np.zeros((0, 3), dtype), np.zeros((0, 3), dtype), _FLOAT32)
    self.assertIsNone(found.aspect)
    self.assertEqual((found.elements, found.identical), (0, True))
    self.assertFalse(found.within_tolerance_of_zero)


class NonFiniteTest(parameterized.TestCase):
  @parameterized.parameters('float16', 'float32', 'float64', ml_dtypes.bfloat16)
  def test_the_same_pattern_agrees(self, dtype):
    tf1 = _array(_NAN, _INF, -_INF, 1.0, 0.0, dtype=dtype)
    tf2 = _array(_NAN, _INF, -_INF, 1.0, -0.0, dtype=dtype)
    found = compare_arrays(tf1, tf2, _FLOAT32)
    self.assertIsNone(found.aspect)
    self.assertFalse(found.identical)

  @parameterized.product(
    pair=((_NAN, 1.0), (1.0, _NAN), (_INF, -_INF), (_INF, 1.0), (1.0, -_INF), (_NAN, _INF)),
    dtype=('float16', 'float32', 'float64', ml_dtypes.bfloat16, 'complex64'),
  )
  def test_another_pattern_is_a_difference(self, pair, dtype):
    tf1, tf2 = _array(2.0, pair[0], dtype=dtype), _array(9.0, pair[1], dtype=dtype)
    found = compare_arrays(tf1, tf2, Tolerance(rtol=1e300, atol=1e300))
    self.assertIs(found.aspect, Aspect.NON_FINITE)
    self.assertEqual((found.difference.index, found.difference.mismatched), ((1,), 1))

  def test_non_finite_is_worse_than_any_number(self):
    tf1, tf2 = _array(1.0, 1.0, _NAN, 2.0), _array(3e38, 1.0, 1.0, 3.0)
    found = compare_arrays(tf1, tf2, _FLOAT32).difference
    self.assertEqual((found.index, found.mismatched, found.tf2), ((2,), 3, 1.0))
    self.assertTrue(math.isnan(found.tf1) and math.isnan(found.greatest_absolute))
    self.assertAlmostEqual(found.greatest_relative / 3e38, 1.0, places=5)

  def test_non_finite_in_a_later_chunk_is_the_worst(self):
    tf1 = np.zeros(300_000, np.float32)
    tf2 = tf1.copy()
    tf2[[3, 200_000, 250_000]] = 1e30, _INF, _NAN
    found = compare_arrays(tf1, tf2, _FLOAT32)
    self.assertIs(found.aspect, Aspect.NON_FINITE)
    self.assertEqual((found.difference.index, found.difference.mismatched), ((200_000,), 3))

  def test_a_complex_number_has_two_patterns(self):
    tf1, same = _array(complex(_NAN, 1.0), dtype='complex64'), complex(_NAN, 1.0 + 1e-6)
    found = compare_arrays(tf1, _array(same, dtype='complex64'), _FLOAT32)
    self.assertIsNone(found.aspect)
    for other in (complex(1.0, _NAN), complex(_NAN, 2.0), complex(_NAN, _INF)):
      found = compare_arrays(tf1, _array(other, dtype='complex64'), _FLOAT32)
      self.assertIs(found.aspect, Aspect.NON_FINITE)


class ValuesTest(parameterized.TestCase):
  def test_identical(self):
    values = np.linspace(-3, 3, 100_001, dtype=np.float32)
    found = compare_arrays(values, values.copy(), Tolerance(0.0, 0.0))
    self.assertEqual((found.identical, found.elements), (True, 100_001))

  def test_reports_counts_and_worst_element(self):
    tf1 = _array([1.0, 2.0, 0.0], [100.0, -4.0, 8.0])
    tf2 = _array([1.0, 2.5, 0.25], [100.5, -4.0, 6.0])
    found = compare_arrays(tf1, tf2, Tolerance(rtol=0.01, atol=0.1))
    self.assertIs(found.aspect, Aspect.VALUES)
    difference = found.difference
    self.assertEqual((difference.mismatched, difference.size), (3, 6))
    self.assertEqual((difference.index, difference.tf1, difference.tf2), ((1, 2), 8.0, 6.0))
    self.assertEqual((difference.greatest_absolute, difference.greatest_relative), (2.0, _INF))
    self.assertEqual((difference.rtol, difference.atol), (0.01, 0.1))
    self.assertEqual((difference.shape, difference.dtype), ((2, 3), 'float32'))
    self.assertIs(type(difference.tf1), float)

  def test_worst_is_the_greatest_excess_not_the_greatest_difference(self):
    tf1, tf2 = _array(1000.0, 1.0), _array(1011.0, 5.0)
    found = compare_arrays(tf1, tf2, Tolerance(rtol=0.01, atol=0.0)).difference
    self.assertEqual((found.index, found.greatest_absolute), ((1,), 4.0))

  def test_the_reference_scales_the_allowance(self):
    tolerance = Tolerance(rtol=0.5, atol=0.0)
    self.assertIsNone(compare_arrays(_array(2.0), _array(1.0), tolerance).aspect)
    self.assertIs(compare_arrays(_array(1.0), _array(2.0), tolerance).aspect, Aspect.VALUES)

  def test_the_boundary_passes_and_the_next_number_does_not(self):
    tolerance = Tolerance(rtol=0.0, atol=0.25)
    for dtype in ('float32', 'float64'):
      tf1, tf2 = _array(1.0, dtype=dtype), _array(1.25, dtype=dtype)
      self.assertIsNone(compare_arrays(tf1, tf2, tolerance).aspect)
      beyond = np.nextafter(tf2, np.asarray(2.0, dtype))
      self.assertIs(compare_arrays(tf1, beyond, tolerance).aspect, Aspect.VALUES)

  def test_finite_difference_that_overflows_is_a_mismatch(self):
    for dtype in ('float32', 'float64'):
      most = np.finfo(dtype).max
      found = compare_arrays(_array(-most, dtype=dtype), _array(most, dtype=dtype), _FLOAT32)
      self.assertIs(found.aspect, Aspect.VALUES)

  @parameterized.parameters('float16', ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
  def test_narrow_dtypes(self, dtype):
    tf1, tf2 = np.ones(3, dtype), np.ones(3, dtype)
    self.assertTrue(compare_arrays(tf1, tf2, _FLOAT32).identical)
    tf2[1] = 1.5
    found = compare_arrays(tf1, tf2, _FLOAT32).difference
    self.assertEqual((found.index, found.tf2, found.dtype), ((1,), 1.5, np.dtype(dtype).name))
    self.assertIs(type(found.tf2), float)
    self.assertIsNone(compare_arrays(tf1, tf2, Tolerance(rtol=0.0, atol=0.5)).aspect)

  @parameterized.parameters('complex64', 'complex128')
  def test_complex_numbers_are_compared_by_modulus(self, dtype):
    tf1, tf2 = _array(1 + 1j, 2j, dtype=dtype), _array(1 + 1j, 3 + 6j, dtype=dtype)
    self.assertIsNone(compare_arrays(tf1, tf2, Tolerance(rtol=0.0, atol=5.0)).aspect)
    found = compare_arrays(tf1, tf2, Tolerance(rtol=0.0, atol=4.99)).difference
    self.assertEqual((found.index, found.tf2, found.greatest_absolute), ((1,), 3 + 6j, 5.0))

  def test_scalars(self):
    found = compare_arrays(np.float32(1.0).reshape(()), np.float32(2.0).reshape(()), _FLOAT32)
    self.assertEqual((found.difference.index, found.difference.tf2), ((), 2.0))

  def test_layout_does_not_matter(self):
    tf1 = np.arange(240_000, dtype=np.float32).reshape(20, 30, 400)
    tf2 = tf1.copy()
    tf2[7, 12, 13] += 100
    for view in (lambda x: x.transpose(2, 0, 1), lambda x: x[::-1, ::3, 1::2], np.asfortranarray):
      found = compare_arrays(view(tf1), view(tf2).copy(), _FLOAT32)
      index = tuple(int(axis[0]) for axis in np.nonzero(view(tf1) != view(tf2)))
      self.assertEqual((found.difference.index, found.difference.mismatched), (index, 1))

  def test_inputs_are_not_changed(self):
    tf1, tf2 = _array(1.0, _NAN, 3.0), _array(1.0, _NAN, 4.0)
    for value in (tf1, tf2):
      value.flags.writeable = False
    compare_arrays(tf1, tf2, _FLOAT32)
    np.testing.assert_array_equal(tf1, _array(1.0, _NAN, 3.0))

  def test_needs_little_memory(self):
    # 40 MB each; one of them not contiguous, and every element a mismatch.
    tf1 = np.zeros((10, 1_000_000), np.float32)
    tf2 = np.ones((1_000_000, 10), np.float32).T
    tracemalloc.start()
    compare_arrays(tf1, tf2, _FLOAT32)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    self.assertLess(peak, 16e6)


class ZeroTest(parameterized.TestCase):
  """`within_tolerance_of_zero`: zeros would have passed as well."""

  @parameterized.parameters('float32', 'float64', 'complex64')
  def test_noise_within_the_tolerance_of_zero(self, dtype):
    tf1 = np.full(200_000, 1e-6, dtype)
    found = compare_arrays(tf1, tf1 * np.asarray(2, dtype), _FLOAT32)
    self.assertIsNone(found.aspect)
    self.assertTrue(found.within_tolerance_of_zero)

  @parameterized.parameters(0, 100_000, 199_999)
  def test_one_large_element_makes_it_conclusive(self, position):
    tf1 = np.full(200_000, 1e-6, np.float32)
    tf2 = 2 * tf1
    tf1[position] = tf2[position] = -1.0
    self.assertFalse(compare_arrays(tf1, tf2, _FLOAT32).within_tolerance_of_zero)

  def test_both_sides_count(self):
    tolerance = Tolerance(rtol=0.0, atol=1.0)
    for tf1, tf2, expected in ((1.0, 0.5, True), (1.5, 0.5, False), (0.5, 1.5, False)):
      found = compare_arrays(_array(tf1), _array(tf2), tolerance)
      self.assertIsNone(found.aspect)
      self.assertEqual(found.within_tolerance_of_zero, expected)

  def test_identical_zeros_are_conclusive(self):
    found = compare_arrays(np.zeros(5, 'float32'), np.zeros(5, 'float32'), _FLOAT32)
    self.assertFalse(found.within_tolerance_of_zero)

  def test_nan_is_not_near_zero(self):
    found = compare_arrays(_array(_NAN, 1e-6), _array(_NAN, 2e-6), _FLOAT32)
    self.assertIsNone(found.aspect)
    self.assertFalse(found.within_tolerance_of_zero)


class ExactDtypesTest(parameterized.TestCase):
  @parameterized.parameters(
    (3, 5, 'int32', 2.0, 2 / 3),
    (-128, 127, 'int8', 255.0, 255 / 128),
    (-(2**63), 2**63 - 1, 'int64', 2.0**64, 2.0),
    (2**64 - 1, 0, 'uint64', 2.0**64, 1.0),
    (0, 1, 'bool', 1.0, _INF),
    (-8, 7, ml_dtypes.int4, 15.0, 15 / 8),
  )
  def test_integers(self, tf1, tf2, dtype, absolute, relative):
    wide = Tolerance(rtol=1e9, atol=1e9)
    same, other = _array(tf1, tf1, dtype=dtype), _array(tf1, tf2, dtype=dtype)
    self.assertTrue(compare_arrays(same, same.copy(), wide).identical)
    found = compare_arrays(same, other, wide)
    self.assertIs(found.aspect, Aspect.VALUES)
    self.assertEqual((found.difference.index, found.difference.tf2), ((1,), tf2))
    self.assertEqual(found.difference.greatest_absolute, absolute)
    self.assertEqual(found.difference.greatest_relative, relative)
    self.assertEqual((found.difference.rtol, found.difference.atol), (0.0, 0.0))

  def test_neighbouring_int64_that_float64_cannot_tell_apart(self):
    tf1, tf2 = _array(2**62, dtype='int64'), _array(2**62 + 1, dtype='int64')
    self.assertEqual(compare_arrays(tf1, tf2, _FLOAT32).difference.greatest_absolute, 1.0)

  def test_text_is_compared_as_bytes_however_it_is_held(self):
    as_objects = np.array([b'wide', 'äöü'.encode(), b''], object)
    as_text = np.array(['wide', 'äöü', ''])
    for tf1 in (as_objects, as_text):
      for tf2 in (as_objects, as_text):
        found = compare_arrays(tf1, tf2, _FLOAT32)
        self.assertEqual((found.aspect, found.identical), (None, True))

  def test_other_text_differs(self):
    tf1, tf2 = np.array([[b'a', b'b'], [b'c', b'd']], object), np.array([['a', 'b'], ['x', 'y']])
    found = compare_arrays(tf1, tf2, _FLOAT32).difference
    self.assertEqual((found.index, found.tf1, found.tf2), ((1, 0), b'c', 'x'))
    self.assertEqual((found.mismatched, found.dtype), (2, 'str'))

  def test_text_scalars_of_different_length(self):
    found = compare_arrays(np.asarray(b'abc'), np.asarray(b'ab'), _FLOAT32)
    self.assertIs(found.aspect, Aspect.VALUES)

  def test_quantized_dtypes_are_structured(self):
    qint8 = np.dtype([('qint8', 'i1')])
    tf1, tf2 = np.zeros(3, qint8), np.zeros(3, qint8)
    self.assertTrue(compare_arrays(tf1, tf2, _FLOAT32).identical)
    tf2[2] = (5,)
    found = compare_arrays(tf1, tf2, _FLOAT32).difference
    self.assertEqual((found.index, found.dtype), ((2,), 'qint8'))


class CompareTensorsTest(parameterized.TestCase):
  def _compare(self, tf1, tf2):
    key = TensorKey('gradient', 'dense/kernel', 'training')
    return compare_tensors(key, tf1, tf2, VALUE_TOLERANCES)

  def test_agreement(self):
    found = self._compare(_array(1.0, 2.0), _array(1.0, 2.000001))
    self.assertIsNone(found.difference)
    self.assertEqual((found.elements, found.inconclusive, found.identical), (2, False, False))

  def test_inconclusive(self):
    self.assertTrue(self._compare(_array(1e-7), _array(-1e-7)).inconclusive)

  def test_absent_on_both_sides_agrees(self):
    found = self._compare(None, None)
    self.assertEqual((found.difference, found.elements, found.identical), (None, 0, True))

  def test_absent_on_one_side(self):
    found = self._compare(np.zeros((4, 8), np.float32), None)
    self.assertIs(found.difference.aspect, Aspect.PRESENCE)
    self.assertEqual((found.difference.tf1, found.difference.tf2), ('(4, 8) float32', 'absent'))
    self.assertEqual(self._compare(None, _array(1.0)).difference.tf1, 'absent')

  @parameterized.parameters(
    ((2, 3), (3, 2), 'transpose'), ((2, 1), (2,), 'axes of size 1'), ((6,), (2, 3), 'reshape'),
    ((5,), (4,), '^$'),
  )  # fmt: skip
  def test_shape(self, shape1, shape2, hint):
    found = self._compare(np.zeros(shape1), np.zeros(shape2)).difference
    self.assertIs(found.aspect, Aspect.SHAPE)
    self.assertEqual((found.tf1, found.tf2), (str(shape1), str(shape2)))
    self.assertRegex(found.hint, hint)

  def test_dtype(self):
    found = self._compare(np.zeros(2, 'S4'), np.zeros(2, 'float32')).difference
    self.assertEqual((found.aspect, found.tf1, found.tf2), (Aspect.DTYPE, 'str', 'float32'))

  def test_values(self):
    found = self._compare(_array(1.0, 2.0), _array(1.0, 3.0)).difference
    self.assertIs(found.aspect, Aspect.VALUES)
    self.assertEqual((found.quantity, found.subject), ('gradient', 'dense/kernel'))
    self.assertEqual((found.run, found.tf1, found.array.index), ('training', '', (1,)))

  def test_each_dtype_has_its_own_allowance(self):
    for dtype, passes in (('float32', True), ('float64', False)):
      found = self._compare(_array(1.0, dtype=dtype), _array(1.000005, dtype=dtype))
      self.assertEqual(found.difference is None, passes)


if __name__ == '__main__':
  absltest.main()
