"""Which dimensions grow together, and with what values."""

import numpy as np
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.errors import CaseDefinitionError
from tf2verify.sides.hooks import other_sizes


def shapes(inputs, axes):
  """Returns the shapes of inputs that have grown along axes."""
  return other_sizes.shapes_of(other_sizes.grown(inputs, axes).inputs)


class ProposalsTest(parameterized.TestCase):
  def test_images(self):
    proposed = other_sizes.proposals(tf2verify.normal_inputs((2, 9, 9, 3)))
    self.assertEqual(proposed.everything, (frozenset({('', 0), ('', 1), ('', 2)}),))
    self.assertEqual(proposed.batch, frozenset({('', 0)}))
    self.assertEqual(proposed.features, (frozenset({('', 3)}),))

  def test_ids_and_a_floating_mask(self):
    inputs = {'ids': np.arange(8).reshape(2, 4), 'mask': np.ones((2, 4), np.float32)}
    (everything,) = other_sizes.proposals(inputs).everything
    self.assertEqual(shapes(inputs, everything), {"['ids']": (3, 5), "['mask']": (3, 5)})

  def test_weights_of_each_step_are_no_features(self):
    inputs = {'ids': np.arange(8).reshape(2, 4), 'weights': tf2verify.normal_inputs((2, 4))}
    both, ids_only = other_sizes.proposals(inputs).everything
    self.assertEqual(shapes(inputs, both), {"['ids']": (3, 5), "['weights']": (3, 5)})
    self.assertEqual(shapes(inputs, ids_only), {"['ids']": (3, 5), "['weights']": (3, 4)})

  def test_memory_in_time_major(self):
    inputs = {'ids': np.zeros((7, 2), int), 'memory': tf2verify.normal_inputs((5, 2, 3))}
    found = other_sizes.proposals({'x': np.zeros((2, 7), int), **inputs})
    self.assertEqual(found.batch, {("['x']", 0), ("['ids']", 1), ("['memory']", 1)} & found.batch)

  def test_no_axes(self):
    proposed = other_sizes.proposals({'rate': np.array(0.5)})
    self.assertEqual((proposed.everything, proposed.batch, proposed.parts), ((), frozenset(), ()))

  def test_axes_of_size_1_stay(self):
    inputs = {'kind': np.array([[1], [2], [0]]), 'scale': np.ones((1, 5), np.float32)}
    proposed = other_sizes.proposals(inputs)
    grown = {axis for axes in (*proposed.everything, *proposed.parts) for axis in axes}
    self.assertNoCommonElements(grown, {("['kind']", 1), ("['scale']", 0)})


class GrownTest(absltest.TestCase):
  def test_ids_stay_in_their_columns(self):
    ids = np.array([[0, 10], [1, 11], [2, 12]])
    grown = other_sizes.grown(ids, frozenset({('', 0)}))
    self.assertEqual((grown.name, grown.batch_only), ('batch 4', True))
    self.assertTrue(np.all(grown.inputs[:, 0] < 10) and np.all(grown.inputs[:, 1] >= 10))

  def test_sorted_stays_sorted(self):
    splits = np.array([0, 2, 2, 5])
    grown = other_sizes.grown(splits, frozenset({('', 0)})).inputs
    self.assertEqual((grown[0], grown[-1], len(grown)), (0, 5, 5))
    self.assertTrue(np.all(np.diff(grown) >= 0))

  def test_measured_rows_are_not_the_same(self):
    for shape in ((4, 3), (1, 3), (2, 1, 5)):
      grown = other_sizes.grown(tf2verify.normal_inputs(shape), frozenset({('', 0)})).inputs
      self.assertLen(np.unique(grown, axis=0), shape[0] + 1)

  def test_lengths(self):
    grown = other_sizes.grown(np.zeros((4, 6), int), frozenset({('', 0), ('', 1)}))
    self.assertEqual(grown.name, 'inputs of shape (5, 7)')
    self.assertFalse(grown.batch_only)
    self.assertEqual(grown.lengths, (frozenset({('', 1)}),))

  def test_each_length_by_another_amount(self):
    images = tf2verify.normal_inputs((2, 9, 9, 3))
    axes = frozenset({('', 0), ('', 1), ('', 2)})
    self.assertTrue(other_sizes.grow_apart(images, axes))
    found = other_sizes.grown(images, axes, apart=True)
    self.assertEqual(found.name, 'inputs of shape (3, 10, 11, 3)')
    self.assertEqual(found.lengths, (frozenset({('', 1)}), frozenset({('', 2)})))

  def test_height_and_width_stay_apart_behind_strides(self):
    for size, stride in ((17, 4), (16, 4), (32, 8), (224, 32)):
      images = np.zeros((2, size, size, 3), np.float32)
      axes = frozenset({('', 0), ('', 1), ('', 2)})
      ((_, height, width, _),) = other_sizes.shapes_of(
        other_sizes.grown(images, axes, apart=True).inputs
      ).values()
      while stride:
        behind = [-(-n // stride) for n in (size, height, width)]
        self.assertNotEqual(*behind[1:])
        self.assertTrue(any(n % 2 != behind[0] % 2 for n in behind[1:]), (size, stride))
        stride //= 2

  def test_one_length_of_several_inputs(self):
    inputs = {'ids': np.zeros((2, 4), int), 'mask': np.zeros((2, 4, 4), int)}
    axes = frozenset((path, axis) for path, x in inputs.items() for axis in range(x.ndim))
    axes = frozenset((f'[{path!r}]', axis) for path, axis in axes)
    found = other_sizes.grown(inputs, axes, apart=True)
    self.assertEqual(
      other_sizes.shapes_of(found.inputs), {"['ids']": (3, 5), "['mask']": (3, 5, 6)}
    )

  def test_a_single_length_cannot_grow_apart(self):
    ids = np.zeros((4, 6), int)
    self.assertFalse(other_sizes.grow_apart(ids, frozenset({('', 0), ('', 1)})))

  def test_other_ends(self):
    inputs = {'ids': np.array([[1, 2, 3], [4, 5, 6]]), 'mask': np.ones((2, 3), bool)}
    axes = frozenset({("['ids']", 1), ("['mask']", 1)})
    changed = other_sizes.with_other_ends(inputs, axes)
    self.assertSequenceEqual(changed['ids'].tolist(), [[1, 2, 6], [4, 5, 3]])
    self.assertSequenceEqual(changed['mask'][:, :2].tolist(), [[True, True]] * 2)
    self.assertFalse(changed['mask'].all())


class DeclaredTest(parameterized.TestCase):
  def test_smaller_and_larger(self):
    ids = np.arange(6).reshape(3, 2)
    sizes = other_sizes.declared_sizes([(2, 2), (7, 4)], ids)
    self.assertEqual([size.inputs.shape for size in sizes], [(2, 2), (7, 4)])

  def test_paths_and_keys(self):
    inputs = {'a': np.zeros((3, 2)), 'b': [np.zeros(3)]}
    for key, shape in (('a', (5, 2)), ("['a']", (5, 2)), ("['b'][0]", (5,))):
      (size,) = other_sizes.declared_sizes({key: shape}, inputs)
      self.assertIn(shape, other_sizes.shapes_of(size.inputs).values())

  @parameterized.parameters(
    (7,), ({'a': (1, 1)},), ('size',), ({'': 'x'},), ({'': (2,)},), ((2, 2, 2),)
  )
  def test_not_understood(self, declared):
    with self.assertRaises(CaseDefinitionError):
      list(other_sizes.declared_sizes(declared, np.zeros((2, 2))))

  def test_another_structure(self):
    with self.assertRaisesRegex(CaseDefinitionError, 'return the same nest'):
      list(other_sizes.declared_sizes(lambda: {'x': np.zeros(2)}, np.zeros(2)))


if __name__ == '__main__':
  absltest.main()
