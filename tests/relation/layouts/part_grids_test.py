"""Variables that each hold a part of each of several variables of the other side."""

import numpy as np
from absl.testing import absltest

from tf2verify.relation.derivation.leftover_pairs import leftover_pairs
from tf2verify.relation.layouts.part_grids import part_grids

_KERNELS = {'layer/filter': (2, 6, 5), 'layer/gate': (2, 6, 5)}
_TAPS = {'block/past': (6, 10), 'block/now': (6, 10)}


class PartGridsTest(absltest.TestCase):
  def test_taps_of_two_kernels(self):
    (found,) = part_grids(_KERNELS, _TAPS)
    self.assertLen({entries[0].layout for entries in found}, 4)
    ((entry,), *others) = found
    rng = np.random.default_rng(0)
    kernels = [rng.normal(size=shape) for shape in _KERNELS.values()]
    past, now = entry.bound([*_KERNELS.values()], [*_TAPS.values()]).to_tf2(kernels)
    for tap, value in enumerate((past, now)):
      np.testing.assert_array_equal(value, np.concatenate([k[tap] for k in kernels], 1))
    self.assertEqual({other.tf2 for (other,) in others}, {tuple(_TAPS)})

  def test_tf1_may_have_the_taps(self):
    (found,) = part_grids(_TAPS, _KERNELS)
    entry = found[0][0].bound([*_TAPS.values()], [*_KERNELS.values()])
    values = [np.random.default_rng(n).normal(size=(6, 10)) for n in range(2)]
    first, _ = entry.to_tf2(values)
    np.testing.assert_array_equal(first, np.stack([value[:, :5] for value in values]))

  def test_other_counts_and_sizes_are_none(self):
    one = {'layer/filter': (2, 6, 5)}
    three = {**_TAPS, 'block/next': (6, 10)}
    other = dict.fromkeys(_TAPS, (5, 12))
    for ones, others in ((one, _TAPS), (_KERNELS, three), (_KERNELS, other)):
      self.assertEmpty(list(part_grids(ones, others)))

  def test_what_is_left_in_a_pair_of_scopes(self):
    ones = {f'a/{name}': shape for name, shape in _KERNELS.items()}
    others = {f'b/{name}': shape for name, shape in _TAPS.items()}
    found = dict(leftover_pairs({'a/layer/skip': 'b/block/skip'}, ones, others))
    (alternatives,) = found.values()
    self.assertEqual(alternatives[0][0].tf2, ('b/block/past', 'b/block/now'))


if __name__ == '__main__':
  absltest.main()
