"""Tests of tf2verify.numerics.distributions."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import distributions
from tf2verify.numerics.distributions import (
  ValueRange,
  at_ends,
  distribution_behind,
  relation,
  same_distribution,
  sample,
  values_test,
)
from tf2verify.records.distribution import Distribution, Family

_UNIFORM, _NORMAL, _TRUNCATED = Family.UNIFORM, Family.NORMAL, Family.TRUNCATED_NORMAL


def _drawn(family, repetitions, shape=(40, 50), scale=1.0, first=0):
  numbers = range(first, first + repetitions)
  return [scale * sample(family, shape, 0, number) for number in numbers]


class ReadTest(parameterized.TestCase):
  @parameterized.parameters(np.float16, np.float32, np.float64)
  def test_uniform(self, dtype):
    draw = sample(_UNIFORM, (8, 4), 0, 0).astype(dtype)
    value = (draw * 1.5 - 0.5).astype(dtype)
    found = distribution_behind(_UNIFORM, draw, value)
    self.assertTrue(same_distribution(found, Distribution(_UNIFORM, -0.5, 1.5), rtol=2e-3))

  def test_uniform_upside_down(self):
    draw = sample(_UNIFORM, (8, 4), 0, 0)
    found = distribution_behind(_UNIFORM, draw, 1 - 2 * draw)
    self.assertTrue(same_distribution(found, Distribution(_UNIFORM, -1.0, 2.0)))

  def test_normal(self):
    draw = sample(_NORMAL, (100,), 0, 0)
    found = distribution_behind(_NORMAL, draw, 0.1 - 0.02 * draw)
    self.assertTrue(same_distribution(found, Distribution(_NORMAL, 0.1, 0.02)))

  def test_not_affine(self):
    draw = sample(_NORMAL, (100,), 0, 0)
    for value in (np.clip(draw, -1, 1), draw[::-1], draw**3, np.repeat(draw[:50], 2), draw[:50]):
      self.assertIsNone(distribution_behind(_NORMAL, draw, value))

  def test_a_diagonal_between_the_points(self):
    draw = sample(_NORMAL, (96, 128), 0, 0)
    value = 0.01 * draw + np.roll(np.eye(96, 128), 1, 1)
    points = distributions.points
    self.assertTrue(np.array_equal(points(0.01 * draw), points(value)))
    self.assertIsNone(distribution_behind(_NORMAL, draw, value))
    extents = ValueRange.of(draw), ValueRange.of(value)
    self.assertIsNone(distribution_behind(_NORMAL, points(draw), points(value), extents))
    self.assertIsNotNone(distribution_behind(_NORMAL, draw, 0.01 * draw))

  def test_hidden_by_rounding(self):
    draw = sample(_NORMAL, (100,), 0, 0).astype(np.float32)
    self.assertIsNone(distribution_behind(_NORMAL, draw, np.float32(1000) + draw * 1e-4))

  def test_too_few(self):
    self.assertIsNone(distribution_behind(_NORMAL, np.arange(2.0), np.arange(2.0)))


class SameTest(absltest.TestCase):
  def test_rounded_constants(self):
    one = Distribution(_TRUNCATED, 0.0, 0.02 / 0.87962566103423978)
    self.assertTrue(same_distribution(one, Distribution(_TRUNCATED, 0.0, 0.02 / 0.8796)))

  def test_another_scale_location_or_family(self):
    one = Distribution(_NORMAL, 0.0, 1.0)
    for other in ((_NORMAL, 0.0, 1.03), (_NORMAL, 0.01, 1.0), (_TRUNCATED, 0.0, 1.0)):
      self.assertFalse(same_distribution(one, Distribution(*other)))


class TextTest(absltest.TestCase):
  def test_is_in_the_terms_of_initializers(self):
    for distribution, text in (
      (Distribution(_UNIFORM, -0.70711, 1.41422), 'uniform in ±0.7071'),
      (Distribution(_UNIFORM, 1e-9, 1.0), 'uniform from 0 to 1'),
      (Distribution(_NORMAL, 0.0, 0.05), 'normal, standard deviation 0.05'),
      (Distribution(_TRUNCATED, 1.0, 0.05), 'truncated normal, mean 1, standard deviation 0.05'),
    ):
      self.assertEqual(str(distribution), text)


class SampleTest(absltest.TestCase):
  def test_has_the_bounds_of_its_family(self):
    self.assertLess(np.abs(sample(_TRUNCATED, (5000,), 0, 0)).max(), 2)
    self.assertGreater(np.abs(sample(_NORMAL, (5000,), 0, 0)).max(), 2)
    uniform = sample(_UNIFORM, (5000,), 0, 0)
    self.assertBetween(uniform.min(), 0, 0.01)

  def test_repeats_itself_whatever_the_shape(self):
    one, other = sample(_NORMAL, (6,), 1, 2), sample(_NORMAL, (2, 3), 1, 2)
    np.testing.assert_array_equal(one, other.ravel())
    self.assertTrue((one != sample(_NORMAL, (6,), 1, 3)).any())


class RelationTest(absltest.TestCase):
  def test_the_same(self):
    one = _drawn(_NORMAL, 6)
    self.assertEqual(relation(one, [array * (1 + 1e-6) for array in one]), '')

  def test_one_factor(self):
    one = _drawn(_NORMAL, 6)
    self.assertStartsWith(relation(one, [1.03 * array for array in one]), '1.03 times what tf1')

  def test_a_column(self):
    one = _drawn(_NORMAL, 6)
    other = [array.copy() for array in one]
    for array in other:
      array[:, 3] *= 1.03
    self.assertStartsWith(relation(one, other), 'at (0, 3) 1.03 times what tf1 makes')

  def test_signs_tell_nothing(self):
    one = _drawn(_NORMAL, 6)
    self.assertIsNone(relation(one, [-array for array in one]))

  def test_other_numbers_tell_nothing(self):
    self.assertIsNone(relation(_drawn(_NORMAL, 6), _drawn(_NORMAL, 6, first=6)))
    self.assertIsNone(relation(_drawn(_NORMAL, 6), _drawn(_NORMAL, 5)))


class ValuesTest(parameterized.TestCase):
  @parameterized.parameters(_UNIFORM, _NORMAL, _TRUNCATED)
  def test_same(self, family):
    found = values_test(_drawn(family, 100), _drawn(family, 100, first=100))
    self.assertEqual(found.difference, '')
    self.assertTrue(found.is_telling)
    self.assertEqual(found.elements, 200_000)

  @parameterized.parameters(_UNIFORM, _NORMAL, _TRUNCATED)
  def test_scale_that_is_three_percent_off(self, family):
    found = values_test(_drawn(family, 100), _drawn(family, 100, scale=1.03, first=100))
    self.assertStartsWith(found.difference, 'the scale of the port is 1.03')

  def test_mean(self):
    other = [array + 0.05 for array in _drawn(_NORMAL, 100, first=100)]
    self.assertStartsWith(values_test(_drawn(_NORMAL, 100), other).difference, 'the ')

  def test_family_of_one_scale(self):
    uniform = [np.sqrt(12) * (array - 0.5) for array in _drawn(_UNIFORM, 100)]
    found = values_test(_drawn(_NORMAL, 100), uniform)
    self.assertStartsWith(found.difference, 'the fraction of elements below some number differs')

  def test_one_column_of_another_scale(self):
    one, other = _drawn(_NORMAL, 100), _drawn(_NORMAL, 100, first=100)
    for array in other:
      array[:, 7] *= 0.5
      array[:, 8] *= np.sqrt(1.75)
    found = values_test(one, other)
    self.assertStartsWith(found.difference, 'at index 7 of axis 1 the scale of the port is 0.5')

  def test_few_numbers_tell_nothing(self):
    found = values_test(_drawn(_NORMAL, 1, (3, 3)), _drawn(_NORMAL, 1, (3, 3), first=1))
    self.assertEqual((found.difference, found.is_telling), ('', False))

  def test_one_number_of_one_side_tells_little(self):
    for number in range(20):
      found = values_test(_drawn(_UNIFORM, 200, ()), _drawn(_UNIFORM, 1, (), first=300 + number))
      self.assertEqual((found.difference, found.is_telling), ('', False))


class ElementsTest(absltest.TestCase):
  """Fixed parts beside what is drawn, and permutations."""

  def near(self, table, scale, first=0):
    return [table + one for one in _drawn(_NORMAL, 100, scale=scale, first=first)]

  def test_the_same(self):
    table = np.sin(np.arange(2000.0)).reshape(40, 50)
    found = values_test(self.near(table, 0.01), self.near(table, 0.01, 100))
    self.assertEqual(found.difference, '')

  def test_noise_beside_a_table(self):
    table = np.sin(np.arange(2000.0)).reshape(40, 50)
    found = values_test(self.near(table, 0.01), self.near(table, 0.0103, 100))
    self.assertRegex(found.difference, r'about its mean, the scale of the port is 1\.0[23]')

  def test_another_table(self):
    table = np.sin(np.arange(2000.0)).reshape(40, 50)
    found = values_test(self.near(table, 0.01), self.near(table[::-1], 0.01, 100))
    self.assertIn('the mean of many draws differs', found.difference)

  def test_permutations(self):
    generator = np.random.RandomState(0)
    orders = [generator.permutation(24) for _ in range(200)]
    numbers = [generator.randint(0, 24, 24) for _ in range(200)]
    self.assertEqual(values_test(orders[:100], orders[100:]).difference, '')
    self.assertIn('tf1 draws the same', values_test(orders, numbers).difference)
    self.assertIn('the port draws the same', values_test(numbers, orders).difference)


class EndsTest(parameterized.TestCase):
  """Of 1,200 numbers, whose spread shows a scale that is 7 % off and no less."""

  def tested(self, scale=1.0, times=1, known=_UNIFORM, count=1200):
    values = [np.repeat(scale * sample(_UNIFORM, (count,), 0, n), times) for n in range(1)]
    ones = [sample(_UNIFORM, (count,), 0, 9)]
    return at_ends(values_test(ones, values), Distribution(known, 0.0, 1.0), values)

  def test_the_same(self):
    found = self.tested()
    self.assertEqual(found.difference, '')
    self.assertTrue(found.is_telling, found)

  @parameterized.parameters(0.97, 1.03)
  def test_another_scale(self, scale):
    self.assertIn('draws from 0 to 1, and the other one numbers', self.tested(scale).difference)

  def test_what_tells_nothing(self):
    self.assertFalse(self.tested(known=_NORMAL).is_telling)
    self.assertFalse(self.tested(count=200).is_telling)
    repeated = self.tested(count=200, times=6)  # as many numbers, of which few differ
    self.assertFalse(repeated.is_telling)


if __name__ == '__main__':
  absltest.main()
