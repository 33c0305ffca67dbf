"""Tests of tf2verify.sides.losses.functional."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.losses import functional


class TotalTest(absltest.TestCase):
  def test_adds_in_the_given_order(self):
    losses = [np.float32(1e8), np.float32(1.0), np.float32(-1e8)]
    self.assertEqual(float(functional.total(losses)), float(tf.add_n(losses)))

  def test_nothing_to_add(self):
    self.assertIsNone(functional.total([]))

  def test_different_dtypes(self):
    self.assertEqual(float(functional.total([np.float32(1), np.float64(2)])), 3.0)


if __name__ == '__main__':
  absltest.main()
