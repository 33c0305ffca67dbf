"""Values that an input could have as well."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.sides.hooks.other_values import other_values


class OtherValuesTest(parameterized.TestCase):
  @parameterized.parameters(
    ([[1, 2], [3, 4]],),
    ([1.5, 2.5],),
    ([b'a', b'b'],),
    ([True, False, True],),
    (3,),
    (0.5,),
    (0.0,),
  )
  def test_differ(self, values):
    array = np.array(values)
    found = list(other_values(array))
    self.assertNotEmpty(found)
    for other in found:
      self.assertEqual((other.shape, other.dtype), (array.shape, array.dtype))
      self.assertFalse(np.array_equal(other, array))

  def test_rows_first(self):
    self.assertSequenceEqual(
      next(other_values(np.array([[1, 1, 0], [1, 0, 0]]))).tolist(), [[1, 0, 0], [1, 1, 0]]
    )

  @parameterized.parameters(bool, np.int32, np.float32)
  def test_flags_flip(self, dtype):
    (found,) = other_values(np.ones((2, 3), dtype))
    self.assertEqual(set(found.ravel().tolist()), {0, 1})
    (flag,) = other_values(np.array(1, np.int32))
    self.assertEqual(flag, 0)

  @parameterized.parameters((3, 2), (-3, -2), (0.8, 0.6), (0.0, 0.25))
  def test_constants(self, value, other):
    (found,) = other_values(np.array(value))
    self.assertAlmostEqual(found.item(), other)

  @parameterized.parameters(([b'm', b'm'],), (b'm',), ([],))
  def test_none(self, values):
    self.assertEmpty(list(other_values(np.array(values))))


if __name__ == '__main__':
  absltest.main()
