"""Tests of nests."""

import collections

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.reference import nests

Heads = collections.namedtuple('Heads', ['logits', 'value'])


class FlattenTest(absltest.TestCase):
  def test_paths_and_structure(self):
    one = tf.constant(1.0)
    flat = nests.flatten((one, {'b': [one], 'a': Heads(one, None)}))
    self.assertEqual(
      flat.structure, "(Tensor, {'a': Heads(logits=Tensor, value=None), 'b': (Tensor)})"
    )
    self.assertEqual(
      [path for path, _ in flat.leaves],
      ['[0]', "[1]['a'].logits", "[1]['a'].value", "[1]['b'][0]"],
    )

  def test_a_list_and_a_tuple_are_alike_a_named_tuple_is_not(self):
    one = tf.constant(1.0)
    self.assertEqual(nests.flatten([one, one]).structure, nests.flatten((one, one)).structure)
    self.assertNotEqual(
      nests.flatten(Heads(one, one)).structure, nests.flatten((one, one)).structure
    )

  def test_composite_tensors_come_as_components(self):
    sparse = tf.SparseTensor([[0, 1]], [2.0], [2, 2])
    ragged = tf.ragged.constant([[1], [2, 3]])
    paths = [path for path, _ in nests.flatten({'s': sparse, 'r': ragged}).leaves]
    self.assertEqual(
      paths,
      [
        "['r'].flat_values",
        "['r'].row_splits_0",
        "['s'].indices",
        "['s'].values",
        "['s'].dense_shape",
      ],
    )

  def test_numbers_and_arrays_are_leaves(self):
    flat = nests.flatten([1, 2.5, np.zeros(2), 'text'])
    self.assertTrue(all(isinstance(leaf, np.ndarray) for _, leaf in flat.leaves))

  def test_anything_else_is_no_tensor(self):
    with self.assertRaisesRegex(nests.NotATensor, r"\['x'\] is of type object"):
      nests.flatten({'x': object()})


class MapLeavesTest(absltest.TestCase):
  def test_keeps_the_structure(self):
    nest = collections.OrderedDict(a=(1, [2]), b=Heads(3, 4))
    doubled = nests.map_leaves(lambda _, leaf: 2 * leaf, nest)
    self.assertEqual(doubled, collections.OrderedDict(a=(2, [4]), b=Heads(6, 8)))
    self.assertIsInstance(doubled['b'], Heads)


if __name__ == '__main__':
  absltest.main()
