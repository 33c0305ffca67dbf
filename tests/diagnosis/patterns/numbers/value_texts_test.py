"""Tests of tf2verify.diagnosis.patterns.numbers.value_texts."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.diagnosis.patterns.numbers.value_texts import value_text

_TF1 = np.random.default_rng(0).normal(size=(4, 5, 3)).astype(np.float32)


def _with(index, value):
  changed = _TF1.copy()
  changed[index] = value
  return changed


def _shifted():
  later = np.roll(_TF1, 1, axis=1)
  later[:, 0] = 0.5
  return later


def _masked_squares():
  squares = np.square(_TF1)
  squares[0] = -1e30
  return squares


class ValueTextTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('factor', _TF1, 2 * _TF1, 'times 2'),
    ('sign', _TF1, -_TF1, 'times -1'),
    ('offset', _TF1, _TF1 + np.float32(0.25), 'plus 0.25'),
    ('both', _TF1, 3 * _TF1 + 1, 'times 3 plus 1'),
    ('reversed', _TF1, _TF1[:, ::-1], 'in reverse order along axis 1'),
    ('rolled', _TF1, np.roll(_TF1, 2, axis=1), 'rolled by 2 along axis 1'),
    ('rolled_back', _TF1, np.roll(_TF1, -1, axis=1), 'rolled by 4 along axis 1'),
    ('permuted', _TF1, _TF1[[1, 0, 3, 2]], 'in a different order along axis 0'),
    ('later', _TF1, _shifted(), 'one step later along axis 1'),
    ('earlier', _shifted(), _TF1, 'one step earlier along axis 1'),
    ('clipped', _TF1, np.minimum(_TF1, np.float32(0.5)), 'the port has the values of tf1, clipped'),
    ('relu', np.maximum(_TF1, 0), _TF1, 'tf1 has the values of the port, clipped to at least 0'),
  )
  def test_rule(self, tf1, tf2, text):
    self.assertIn(text, value_text(tf1, tf2))

  def test_mask_of_one_side(self):
    masked = _with((1, slice(2, None)), 0)
    self.assertEqual(
      value_text(masked, _TF1),
      'tf1 has zeros where the port keeps other values, as from a mask or padding: 9 of 60 '
      'elements; all others agree',
    )
    self.assertStartsWith(value_text(_TF1, masked), 'the port has zeros where tf1 keeps other')

  def test_mask_of_whole_rows_names_them(self):
    masked = _with((slice(None), [1, 4]), 0)
    self.assertIn('24 of 60 elements (axis 1: 1, 4)', value_text(masked, _TF1))

  def test_another_dtype(self):
    ids = np.int64([1])
    self.assertIn('yields int32 where tf1 yields int64', value_text(ids, ids.astype(np.int32)))
    self.assertEqual(value_text(ids, np.int32([2])), '')

  @parameterized.named_parameters(
    ('the_same', _TF1, _TF1),
    ('rounding', _TF1, _TF1 * np.float32(1 + 1e-7)),
    ('anything_else', _TF1, np.square(_TF1)),
    ('another_shape', _TF1, _TF1[:2]),
    ('two_numbers', np.float32([1, 2]), np.float32([2, 4])),
    ('not_finite', _TF1, _with(0, np.nan)),
    ('integers', np.arange(6), 2 * np.arange(6)),
    ('zeros_beside_other_differences', _with(0, 0), _with(3, 7)),
    ('others_beside_a_mask', _with(0, -1e30), _masked_squares()),
    ('minimum_with_zeros', np.zeros_like(_TF1), np.abs(_TF1) * (_TF1 > 0)),
    ('nothing_but_zeros', np.zeros_like(_TF1), np.square(_TF1)),
  )
  def test_no_rule(self, tf1, tf2):
    self.assertEqual(value_text(tf1, tf2), '')


if __name__ == '__main__':
  absltest.main()
