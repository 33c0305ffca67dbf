"""Tests of tf2verify.relation.cell_layouts: variables of cells that TF1 writes out."""

import numpy as np
from absl.testing import absltest

from tf2verify.relation import cell_layouts

X, H = 2, 3
_PORT = {'kernel': (X, 4 * H), 'recurrent_kernel': (H, 4 * H), 'bias': (4 * H,)}


def numbered(*shape):
  return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def as_keras(array, added=0.0):
  i, c, f, o = np.split(array, 4, -1)
  return np.concatenate([i, f + np.float32(added), c, o], -1)


def moved(entries, **own):
  found = {}
  for entry in entries:
    values = entry.to_tf2([own[name] for name in entry.tf1])
    found.update(zip(entry.tf2, values, strict=True))
  return found


class RawLstmTest(absltest.TestCase):
  def test_one_kernel_in_either_order(self):
    own = [('W', (X + H, 4 * H)), ('b', (4 * H,))]
    known = cell_layouts.raw_lstm(own, 'cell', _PORT)
    whole, bias = numbered(X + H, 4 * H), numbered(4 * H)
    found = [moved(entries, W=whole, b=bias) for entries in known]
    np.testing.assert_array_equal(found[0]['cell/kernel'], as_keras(whole[:X]))
    np.testing.assert_array_equal(found[0]['cell/recurrent_kernel'], as_keras(whole[X:]))
    np.testing.assert_array_equal(found[0]['cell/bias'], as_keras(bias, 1.0))
    turned = found[len(found) // 2]
    np.testing.assert_array_equal(turned['cell/kernel'], as_keras(whole[H:]))
    np.testing.assert_array_equal(turned['cell/recurrent_kernel'], as_keras(whole[:H]))

  def test_a_kernel_for_the_inputs_and_one_for_the_state(self):
    own = [('w_h', (H, 4 * H)), ('w_x', (X, 4 * H)), ('b', (4 * H,))]
    known = cell_layouts.raw_lstm(own, 'cell', _PORT)
    inputs, state, bias = numbered(X, 4 * H), numbered(H, 4 * H) + 100, numbered(4 * H)
    found = moved(known[0], w_x=inputs, w_h=state, b=bias)
    np.testing.assert_array_equal(found['cell/kernel'], as_keras(inputs))
    np.testing.assert_array_equal(found['cell/recurrent_kernel'], as_keras(state))
    np.testing.assert_array_equal(found['cell/bias'], as_keras(bias, 1.0))
    self.assertTrue(all(len({*map(str, entries)}) == 3 for entries in known))

  def test_what_is_no_lstm(self):
    for own in (
      [('W', (X + H, 3 * H)), ('b', (3 * H,))],
      [('W', (X + H, 4 * H))],
      [('W', (X + H, 4 * H)), ('b', (4 * H,)), ('g', (H,))],
      [('W', (X + H + 1, 4 * H)), ('b', (4 * H,))],
      [('w_x', (X, 4 * H)), ('w_h', (H + 1, 4 * H)), ('b', (4 * H,))],
    ):
      self.assertEqual(cell_layouts.raw_lstm(own, 'cell', _PORT), [], own)
    self.assertEqual(cell_layouts.raw_lstm([], 'cell', {'kernel': (X, 4 * H)}), [])


if __name__ == '__main__':
  absltest.main()
