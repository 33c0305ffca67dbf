import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics.telling import Blank, blank, within_allowance_of_zero
from tf2verify.numerics.tolerance import EXACT, Tolerance

_USUAL = Tolerance(rtol=1e-6, atol=1e-5)
_INF, _NAN = np.inf, np.nan


def floats(*values):
  return np.array(values, np.float32)


class BlankTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('no element', floats(), Blank.EMPTY),
    ('no boolean', np.zeros((0, 3), bool), Blank.EMPTY),
    ('zeros', floats(0, -0.0), Blank.ZERO),
    ('complex zeros', np.zeros(3, np.complex64), Blank.ZERO),
    ('infinities', floats(_INF, -_INF), Blank.NON_FINITE),
    ('infinities and zeros', floats(0, _INF), Blank.NON_FINITE),
    ('not a number', floats(_NAN, _NAN), Blank.NAN),
    ('small', floats(1e-6, -9e-6), Blank.TOLERANCE),
    ('small beside NaN', floats(1e-6, _NAN), Blank.NAN),
    ('one boolean', np.array([False] * 5), Blank.SAME),
    ('one integer', np.full((2, 3), 7), Blank.SAME),
    ('one text', np.array([b'no', b'no'], object), Blank.SAME),
  )
  def test_tells_nothing(self, value, expected):
    self.assertIs(blank(value, _USUAL, identical=False), expected)

  @parameterized.named_parameters(
    ('a number', floats(0, 0, 1)),
    ('a number beside NaN', floats(_NAN, 1)),
    ('a constant', np.full(9, 0.25)),
    ('a scalar', np.float32(2)),
    ('booleans', np.array([True, False])),
    ('texts', np.array([b'no', b'yes'], object)),
    ('the last of many', np.append(np.zeros(10**6, np.float32), 1)),
  )
  def test_tells_something(self, value):
    self.assertIsNone(blank(np.asarray(value), _USUAL, identical=False))

  @parameterized.parameters((1e6, 0.0), (1.0, 0.0), (0.0, 1e9), (0.5, 600.0))
  def test_a_tolerance_that_zeros_pass(self, rtol, atol):
    wide = Tolerance(rtol, atol)
    self.assertIs(blank(floats(1, -1000), wide, identical=False), Blank.TOLERANCE)
    self.assertIsNone(blank(floats(1, -1000), wide, identical=True))

  def test_half_as_much_again_is_no_zero(self):
    self.assertIsNone(blank(floats(1), Tolerance(0.9, 0.0), identical=False))

  def test_equal_bits_need_no_tolerance(self):
    self.assertIsNone(blank(floats(1e-9), _USUAL, identical=True))
    self.assertIs(blank(floats(0), EXACT, identical=True), Blank.ZERO)

  def test_the_least_size_that_tells(self):
    self.assertTrue(within_allowance_of_zero(1.0, 1e6, 0.0))
    self.assertFalse(within_allowance_of_zero(1.0, 1e-6, 1e-5))
    self.assertFalse(within_allowance_of_zero(_INF, 1e6, 0.0))


if __name__ == '__main__':
  absltest.main()
