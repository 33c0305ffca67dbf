"""Tests of the record of a sampled array."""

import numpy as np
from absl.testing import absltest

from tf2verify.records.sampled import SampledArray


class SampledArrayTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self._array = SampledArray(np.arange(4, dtype=np.float32), (10, 20), 3, 64, 'digest')

  def test_what_it_stands_for(self):
    self.assertEqual((self._array.full_shape, self._array.full_size), ((10, 20), 200))
    self.assertEqual((self._array.full_dtype, self._array.samples), (np.dtype(np.float32), 3))
    self.assertEqual(self._array.sha256, 'digest')

  def test_arithmetic_keeps_the_layout_but_not_the_digest(self):
    for computed in (self._array - self._array, 2 * self._array, -self._array, self._array.copy()):
      self.assertIsInstance(computed, SampledArray)
      self.assertEqual((computed.full_shape, computed.samples, computed.block), ((10, 20), 3, 64))
      self.assertEqual(computed.sha256, '')

  def test_a_plain_array_of_it_is_none(self):
    self.assertIs(type(np.asarray(self._array)), np.ndarray)


if __name__ == '__main__':
  absltest.main()
