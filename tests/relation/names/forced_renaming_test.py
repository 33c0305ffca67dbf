from absl.testing import absltest, parameterized

from tf2verify.records.observation import VariableRecord
from tf2verify.relation.names.forced_renaming import forced_renaming


def records(**shapes):
  return [
    VariableRecord(name.replace('__', '/'), shape, 'float32', trainable=True, trainable_flag=True)
    for name, shape in shapes.items()
  ]


def renamed(tf1, tf2):
  found = forced_renaming(records(**tf1), records(**tf2))
  return None if found is None else dict(found.renames)


class PrefixTest(parameterized.TestCase):
  @parameterized.parameters(('', 'net__'), ('net__', ''), ('net__', 'convnet__'))
  def test_equal_shapes_are_told_apart_by_their_names(self, old, new):
    shapes = {'a__kernel': (3, 3), 'b__kernel': (3, 3), 'a__bias': (3,), 'b__bias': (3,)}
    found = renamed(
      {old + name: shape for name, shape in shapes.items()},
      {new + name: shape for name, shape in reversed(shapes.items())},
    )
    old, new = (prefix.replace('__', '/') for prefix in (old, new))
    rest = [name.replace('__', '/') for name in shapes]
    self.assertEqual(found, {old + name: new + name for name in rest})

  def test_some_names_are_equal(self):
    shapes = {'a__kernel': (3, 3), 'b__kernel': (3, 3)}
    scoped = {f'net__{name}': shape for name, shape in shapes.items()}
    found = renamed({'scale': (3,), **shapes}, {'scale': (3,), **scoped})
    expected = {'scale': 'scale', 'a/kernel': 'net/a/kernel', 'b/kernel': 'net/b/kernel'}
    self.assertEqual(found, expected)

  def test_words_of_another_library(self):
    found = renamed(
      {'a__weights': (3, 3), 'b__weights': (3, 3)}, {'m__b__kernel': (3, 3), 'm__a__kernel': (3, 3)}
    )
    self.assertEqual(found, {'a/weights': 'm/a/kernel', 'b/weights': 'm/b/kernel'})

  def test_a_shape_that_differs_under_the_same_name_is_paired(self):
    found = renamed({'kernel': (8, 4)}, {'net__kernel': (4, 8)})
    self.assertEqual(found, {'kernel': 'net/kernel'})

  def test_counters_alone(self):
    tf1 = {'dense__kernel': (3, 4), 'dense_1__kernel': (4, 2)}
    tf2 = {'dense_2__kernel': (3, 4), 'dense_3__kernel': (4, 2)}
    self.assertIsNone(renamed(tf1, tf2))


class KindTest(absltest.TestCase):
  def test_one_of_each_shape(self):
    found = renamed(
      {'fc1__weights': (8, 7), 'fc1__biases': (1, 7), 'fc2__weights': (7, 3)},
      {'hidden__kernel': (8, 7), 'hidden__bias': (7,), 'out__kernel': (7, 3)},
    )
    expected = {
      'fc1/weights': 'hidden/kernel',
      'fc1/biases': 'hidden/bias',
      'fc2/weights': 'out/kernel',
    }
    self.assertEqual(found, expected)

  def test_the_parts_of_one_layer(self):
    parts = ('gamma', 'beta', 'moving_mean', 'moving_variance')
    found = renamed(
      {f'bn__{part}': (4,) for part in parts}, {f'n__{part}': (4,) for part in reversed(parts)}
    )
    self.assertEqual(found, {f'bn/{part}': f'n/{part}' for part in parts})

  def test_two_layers_that_could_be_exchanged(self):
    tf1 = {'a__kernel': (3, 3), 'b__kernel': (3, 3)}
    self.assertIsNone(renamed(tf1, {'x__kernel': (3, 3), 'y__kernel': (3, 3)}))
    # One name is the same, and the rest would be forced: but is it the same layer?
    self.assertIsNone(renamed(tf1, {'b__kernel': (3, 3), 'c__kernel': (3, 3)}))

  def test_one_renamed_beside_equal_names(self):
    tf1 = {'a__kernel': (3, 3), 'b__kernel': (3, 3), 'logits__kernel': (3, 2)}
    tf2 = {'a__kernel': (3, 3), 'b__kernel': (3, 3), 'head__kernel': (3, 2)}
    expected = {
      'a/kernel': 'a/kernel',
      'b/kernel': 'b/kernel',
      'logits/kernel': 'head/kernel',
    }
    self.assertEqual(renamed(tf1, tf2), expected)

  def test_another_role(self):
    self.assertIsNone(renamed({'bn__gamma': (4,)}, {'n__beta': (4,)}))

  def test_table_of_embeddings_is_the_kernel_of_sparse_rows(self):
    self.assertIsNotNone(renamed({'w': (6, 4)}, {'p__embeddings': (6, 4)}))
    self.assertIsNone(renamed({'w': (6, 4)}, {'p__embeddings': (4, 6)}))
    self.assertIsNone(renamed({'embeddings': (6,)}, {'p__bias': (6,)}))

  def test_something_is_left(self):
    self.assertIsNone(renamed({'a__kernel': (3, 3)}, {'x__kernel': (3, 3), 'x__bias': (3,)}))
    self.assertIsNone(renamed({'a__kernel': (3, 3)}, {'x__bias': (3, 2)}))
    self.assertIsNone(renamed({}, {}))

  def test_a_name_twice(self):
    twice = records(m__a=(3,)) * 2
    self.assertIsNone(forced_renaming(records(a=(3,), b=(3,)), twice))


if __name__ == '__main__':
  absltest.main()
