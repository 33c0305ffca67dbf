"""Tests of tf2verify.numerics.relayout."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics.relayout import (
  Relayout,
  agreement_as_held,
  agreement_but_for_sign,
  alike,
  is_constant,
  relayout,
  relayout_of_shapes,
)

_X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


class RelayoutTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('axes_of_length_one', lambda x: x[:, None, :, None]),
    ('flattened', lambda x: x.reshape(6, 4)),
    ('transposed', lambda x: x.transpose(2, 0, 1)),
    ('transposed_with_an_axis_of_length_one', lambda x: x.transpose(1, 0, 2)[None]),
  )
  def test_same_elements(self, held):
    there = held(_X)
    layout = relayout(_X, there)
    np.testing.assert_array_equal(layout.to_tf2(_X), there)
    np.testing.assert_array_equal(layout.to_tf1(there), _X)
    found, again = agreement_as_held(_X, there)
    self.assertTrue(found.identical)
    self.assertEqual(again, layout)

  @parameterized.named_parameters(
    ('flattened', lambda x: x.reshape(-1, 4)),
    ('transposed', lambda x: x.transpose(0, 2, 1)),
  )
  def test_as_operations_for_another_batch_too(self, held):
    layout = relayout(_X, held(_X))
    for x in (_X, np.tile(_X, (3, 1, 1))):
      for steps, one, other in (
        (layout.steps_to_tf2(), x, held(x)),
        (layout.inverse().steps_to_tf2(), held(x), x),
      ):
        for kind, given in steps:
          one = one.reshape(given) if kind == 'Reshape' else one.transpose(given)
        np.testing.assert_array_equal(one, other)

  def test_any_order_of_elements(self):
    places = np.random.default_rng(1).permutation(24)
    layout = Relayout((2, 3, 4), None, (4, 6), elements=places)
    there = layout.to_tf2(_X)
    np.testing.assert_array_equal(there.reshape(-1), _X.reshape(-1)[places])
    np.testing.assert_array_equal(layout.to_tf1(there), _X)
    np.testing.assert_array_equal(layout.inverse().to_tf2(there), _X)
    for steps, one, other in (
      (layout.steps_to_tf2(), _X, there),
      (layout.inverse().steps_to_tf2(), there, _X),
    ):
      for kind, given in steps:
        one = one.reshape(given) if kind == 'Reshape' else one[list(given)]
      np.testing.assert_array_equal(one, other)

  def test_by_shapes_alone(self):
    self.assertIsNone(relayout_of_shapes((2, None), (2, None)))
    self.assertIsNone(relayout_of_shapes(None, (2, 3)))
    self.assertEqual(relayout_of_shapes((6, 4), (2, 3, 4)).tf2_shape, (2, 3, 4))
    for one, other in (((2, 3), (3, 2)), ((2, None), (2, 1, 3)), ((2, 3), (2, 4))):
      with self.assertRaises(ValueError):
        relayout_of_shapes(one, other)

  def test_arrays_of_another_shape_stay(self):
    layout = relayout(_X, _X[:, None])
    self.assertEqual(layout.to_tf2(_X[0]).shape, (3, 4))
    self.assertEqual(layout.to_tf1(_X).shape, (2, 3, 4))

  def test_axes_of_length_one_are_enough_whatever_the_values(self):
    found, layout = agreement_as_held(_X, 2 * _X[:, None])
    self.assertIsNotNone(layout)
    self.assertAlmostEqual(found.absolute, float(np.abs(_X).max()), places=5)

  @parameterized.named_parameters(
    ('one_shape', _X + 1),
    ('one_shape_transposed', np.ascontiguousarray(_X[:, ::-1])),
    ('other_values_transposed', _X.transpose(2, 0, 1) + 1),
    ('another_size', _X[:1]),
    ('another_dtype', _X[:, None].astype(np.float64)),
    ('not_in_that_order', _X.transpose(1, 0, 2).reshape(4, 6)),
  )
  def test_other_elements(self, there):
    self.assertIsNone(relayout(_X, there))
    self.assertFalse(agreement_as_held(_X, there)[0].is_rounding)

  @parameterized.named_parameters(
    ('axes_taken_together', _X.reshape(6, 4)),
    ('all_of_them', _X.reshape(24)),
  )
  def test_axes_taken_together_are_enough_too(self, there):
    layout = relayout(_X, 3 * there)
    np.testing.assert_array_equal(layout.to_tf2(_X), there)
    found, _ = agreement_as_held(_X, 3 * there)
    self.assertLess(found.absolute, np.inf)
    self.assertFalse(found.is_rounding)

  def test_nothing_in_two_shapes(self):
    self.assertIsNone(relayout(np.zeros((0, 2)), np.zeros((2, 0))))

  def test_great_elements_make_nothing_alike(self):
    masked = np.concatenate([_X, np.full_like(_X, -1e9)])
    other = masked.copy()
    other[0] *= 2.449
    self.assertTrue(alike(masked, masked + np.float32(0)))
    self.assertFalse(alike(masked, other))
    self.assertTrue(alike(masked, masked * np.float32(1 + 2e-7)))

  @parameterized.parameters(
    ([3.0], True), ([], True), ([np.nan, np.nan], True), ([1.0, 1.0], True), ([1.0, 2.0], False)
  )
  def test_constant(self, values, expected):
    self.assertEqual(is_constant(np.array(values)), expected)

  def test_other_sign(self):
    there = -_X.transpose(2, 0, 1)
    found, layout = agreement_but_for_sign(_X, there)
    self.assertFalse(found.is_rounding, 'an order of axes is seen by the values as they are')
    self.assertIsNone(layout)
    flat = -_X.reshape(24, 1)
    found, layout = agreement_but_for_sign(_X, flat)
    self.assertTrue(found.is_rounding)
    np.testing.assert_array_equal(layout.to_tf2(_X), flat)
    np.testing.assert_array_equal(layout.to_tf1(flat), _X)
    np.testing.assert_array_equal(layout.inverse().to_tf2(flat), _X)
    self.assertEqual([kind for kind, _ in layout.steps_to_tf2()], ['Neg', 'Reshape'])
    found, layout = agreement_but_for_sign(_X, -_X)
    self.assertEqual(layout.steps_to_tf2(), [('Neg', ())])

  def test_same_sign_and_whole_numbers(self):
    self.assertIsNone(agreement_but_for_sign(_X, _X)[1])
    self.assertIsNone(agreement_but_for_sign(_X, _X + 1)[1])
    self.assertIsNone(agreement_but_for_sign(_X, -1.1 * _X)[1])
    whole = np.arange(5)
    self.assertIsNone(agreement_but_for_sign(whole, -whole)[1])
    self.assertIsNone(agreement_but_for_sign(_X[:2], _X)[1])


if __name__ == '__main__':
  absltest.main()
