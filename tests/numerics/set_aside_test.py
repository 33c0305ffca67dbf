"""Arrays that are set aside are the same numbers, and take no memory until they are read."""

import gc
import mmap
import tempfile
from unittest import mock

import ml_dtypes
import numpy as np
from absl.testing import absltest

from tf2verify.numerics import set_aside as module
from tf2verify.numerics.set_aside import release_pages, set_aside


def _normal(*shape):
  return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def _lies_in_a_file(array):
  while isinstance(array, np.ndarray):
    array = array.base
  return isinstance(getattr(array, 'obj', None), mmap.mmap)


class SetAsideTest(absltest.TestCase):
  def test_numbers_dtypes_and_shapes_are_the_same(self):
    values = [
      _normal(3000, 2000),
      _normal(2000, 1000).astype(ml_dtypes.bfloat16),
      _normal(1000, 500).T,
      np.arange(90_000).reshape(300, 300) % 7 == 0,
      _normal(4),
      None,
    ]
    found = set_aside(values)
    self.assertEqual([_lies_in_a_file(value) for value in found], [True] * 4 + [False] * 2)
    for before, after in zip(values[:5], found, strict=False):
      self.assertEqual((before.dtype, before.shape), (after.dtype, after.shape))
      self.assertEqual(before.tobytes(), after.tobytes())
    self.assertIsNone(found[5])
    with self.assertRaisesRegex(ValueError, 'read-only'):
      found[0][0, 0] = 1.0

  def test_one_number_throughout_is_kept_as_that_number(self):
    values = [np.full((3000, 2000), number, np.float32) for number in (1.0, -0.0, np.nan)]
    nearly = values[0].copy()
    nearly[-1, -1] = 1.0000001
    for before, after in zip([*values, nearly], set_aside([*values, nearly]), strict=True):
      self.assertEqual(after.strides == (0, 0), before is not nearly)
      self.assertEqual(before.tobytes(), after.tobytes())

  def test_an_array_that_is_there_twice_stays_one(self):
    value = _normal(3000, 2000)
    one, other = set_aside([value, value])
    self.assertIs(one, other)

  def test_few_arrays_stay_where_they_are(self):
    values = [_normal(500, 500), np.zeros((500, 500))]
    for before, after in zip(values, set_aside(values), strict=True):
      self.assertIs(before, after)

  def test_without_a_place_for_a_file_they_stay_in_memory(self):
    values = [_normal(3000, 2000)]
    with mock.patch.object(tempfile, 'TemporaryFile', side_effect=OSError('disk full')):
      self.assertIs(set_aside(values)[0], values[0])

  def test_released_pages_can_be_read_again_and_the_file_ends_with_its_arrays(self):
    value = _normal(3000, 2000)
    (found,) = set_aside([value])
    mapped = len(module._mapped)
    for _ in range(2):
      np.testing.assert_array_equal(found, value)
      release_pages()
    del found
    gc.collect()
    self.assertLess(len(module._mapped), mapped)


if __name__ == '__main__':
  absltest.main()
