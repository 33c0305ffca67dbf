"""Tests of the values that variables are set to."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.reference.fill_values import distinct_values
from tf2verify.sides.fill import ConstantFill

_FLOAT32 = np.dtype('float32')


class DistinctValuesTest(parameterized.TestCase):
  def test_are_the_same_in_every_version(self):
    # Recorded on numpy 2.4; a recording made elsewhere depends on them.
    np.testing.assert_array_equal(
      distinct_values('moving_variance', (3,), _FLOAT32),
      np.array([1.0787618, 0.512259, 0.6644914], np.float32),
    )

  def test_differ_from_variable_to_variable_and_element_to_element(self):
    one = distinct_values('a/kernel', (8, 8), _FLOAT32)
    other = distinct_values('b/kernel', (8, 8), _FLOAT32)
    self.assertLen(np.unique(np.concatenate([one, other])), 128)

  def test_have_mixed_sign_and_stay_away_from_zero(self):
    values = distinct_values('a/bias', (1000,), _FLOAT32)
    self.assertBetween(np.mean(values > 0), 0.4, 0.6)
    self.assertBetween(np.abs(values).min(), 0.5, 0.51)
    self.assertBetween(np.abs(values).max(), 1.49, 1.5)

  def test_a_variance_is_positive(self):
    for name in (
      *('bn/moving_variance', 'BatchNorm/moving_var', 'head/sigma'),
      *('bn/var', 'pop_var', 'var_ema', 'c1/std_2', 'variance'),
    ):
      self.assertGreaterEqual(distinct_values(name, (100,), _FLOAT32).min(), 0.5)

  def test_bounds_of_a_range(self):
    for name, sign in (('act_quant/min', -1), ('act_quant/max', 1)):
      for shape in ((), (8,)):
        values = sign * distinct_values(name, shape, _FLOAT32)
        self.assertGreaterEqual(values.min(), 0.5)
        self.assertEqual(values.shape, shape)

  @parameterized.parameters(
    ('conv/weights', (3, 3, 16, 32), 144),
    ('word_embeddings', (1000, 64), 64),
    ('separable/depthwise_weights', (3, 3, 32, 1), 9),
  )
  def test_a_weight_is_scaled_by_its_fan_in(self, name, shape, fan_in):
    greatest = np.abs(distinct_values(name, shape, _FLOAT32)).max()
    self.assertBetween(greatest * np.sqrt(fan_in), 1.4, 1.5001)

  @parameterized.parameters(((),), ((0, 3),), ((1,),))
  def test_shapes_of_few_elements(self, shape):
    self.assertEqual(distinct_values('x', shape, _FLOAT32).shape, shape)

  @parameterized.parameters('int64', 'bool', 'uint8')
  def test_what_is_not_floating_keeps_its_initial_value(self, dtype):
    self.assertIsNone(distinct_values('global_step', (), np.dtype(dtype)))
    self.assertIsNone(ConstantFill()('global_step', (), np.dtype(dtype)))

  @parameterized.parameters('float16', 'float64', 'complex64')
  def test_other_floating_dtypes(self, dtype):
    self.assertEqual(distinct_values('x', (2,), np.dtype(dtype)).dtype, np.dtype(dtype))

  def test_the_guides_constant(self):
    np.testing.assert_array_equal(
      ConstantFill()('x', (2,), _FLOAT32), np.full(2, 0.001, np.float32)
    )


if __name__ == '__main__':
  absltest.main()
