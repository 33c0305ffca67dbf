"""Tests of digests."""

import hashlib

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.reference.arrays import array_digest


def _sha256(data):
  return hashlib.sha256(data).hexdigest()


class DigestTest(parameterized.TestCase):
  def test_dtype_shape_and_bytes(self):
    value = np.arange(6, dtype='<f4').reshape(2, 3)
    self.assertEqual(array_digest(value), _sha256(b'float32|2,3|' + value.tobytes()))
    self.assertEqual(array_digest(np.float32(1)), _sha256(b'float32||' + np.float32(1).tobytes()))
    empty = np.zeros((0, 3), np.int64)
    self.assertEqual(array_digest(empty), _sha256(b'int64|0,3|'))

  def test_layout_and_byte_order_do_not_matter(self):
    value = np.arange(6, dtype='<f4').reshape(2, 3)
    for other in (np.asfortranarray(value), value.astype('>f4'), value[:, ::-1][:, ::-1]):
      self.assertEqual(array_digest(other), array_digest(value))

  def test_everything_else_does(self):
    value = np.arange(6, dtype='<f4').reshape(2, 3)
    others = [value.reshape(3, 2), value.view(np.int32), value.astype('f8'), -value, value.T]
    self.assertLen({array_digest(other) for other in [value, *others]}, 6)
    self.assertNotEqual(array_digest(np.float32(0)), array_digest(np.float32(-0.0)))

  def test_text(self):
    expected = _sha256(b'string|2|' + np.array([1, 3], '<i8').tobytes() + b'a' + b'\xc3\xa4b')
    for value in (
      np.array([b'a', 'äb'.encode()]),
      np.array(['a', 'äb']),
      np.array([b'a', 'äb'], object),
    ):
      self.assertEqual(array_digest(value), expected)
    one, other = np.array([b'ab', b'c']), np.array([b'a', b'bc'])
    self.assertNotEqual(array_digest(one), array_digest(other))

  def test_bfloat16(self):
    value = np.array([1.5, -2], ml_dtypes.bfloat16)
    self.assertEqual(array_digest(value), _sha256(b'bfloat16|2|' + value.tobytes()))


if __name__ == '__main__':
  absltest.main()
