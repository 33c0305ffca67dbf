"""Tests of tables that one side keeps in one variable, and of kernels of what is put together."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify.commands.variable_map import derived_of

v1 = tf.compat.v1
STAGE = 'zero_randomness'
SIZES = (9, 7, 7, 4)
WIDTH = 4


def uniform():
  return keras.initializers.RandomUniform(-0.1, 0.1)


def offsets(sizes):
  return np.cumsum([0, *sizes[:-1]]).astype(np.int32)


class Port(keras.Model):
  """A factorization machine with a table for each field, and a kernel for each of its terms."""

  def __init__(self, sizes, order, turned):
    super().__init__(name='port')
    self.order, self.turned = order, turned
    self.vectors, self.weights_of = (
      [
        keras.layers.Embedding(size, width, uniform(), name=f'{name}{n}')
        for n, size in enumerate(sizes)
      ]
      for name, width in (('vector', WIDTH), ('weight', 1))
    )
    self.terms = [
      keras.layers.Dense(1, use_bias=name == 'deep', kernel_initializer=uniform(), name=name)
      for name in ('first', 'second', 'deep')
    ]

  def call(self, ids):
    ops = keras.ops
    vectors, weights = (
      [table(ids[:, n]) for n, table in zip(self.order, tables, strict=True)]
      for tables in (self.vectors, self.weights_of)
    )
    stacked = ops.stack(vectors, 1)
    second = ops.square(ops.sum(stacked, 1)) - ops.sum(ops.square(stacked), 1)
    deep = ops.concatenate(vectors[::-1] if self.turned else vectors, 1)
    parts = ops.concatenate(weights, 1), second, ops.tanh(deep)
    return sum(term(part) for term, part in zip(self.terms, parts, strict=True))


class Fields(tf2verify.EquivalenceCase, abc.ABC):
  """TF1 has one table for all fields, and one kernel for all terms."""

  variable_map = 'derive'
  sizes = SIZES
  order = (0, 1, 2, 3)
  turned = False

  def build_tf1_graph(self, inputs, training):
    ids = inputs + offsets(self.sizes)
    start = v1.random_uniform_initializer(-0.1, 0.1)
    table = v1.get_variable('vectors', [sum(self.sizes), WIDTH], initializer=start)
    weights = v1.get_variable('weights', [sum(self.sizes), 1], initializer=start)
    vectors = tf.nn.embedding_lookup(table, ids)
    first = tf.reduce_sum(tf.nn.embedding_lookup(weights, ids), 2)
    second = tf.square(tf.reduce_sum(vectors, 1)) - tf.reduce_sum(tf.square(vectors), 1)
    deep = tf.tanh(tf.reshape(vectors, [-1, len(self.sizes) * WIDTH]))
    terms = tf.concat([first, second, deep], 1)
    return v1.layers.dense(terms, 1, kernel_initializer=start, name='end')

  def make_tf2_layer(self):
    return Port(self.sizes, self.order, self.turned)

  def make_inputs(self):
    state = np.random.RandomState(0)
    return np.stack([state.randint(0, size, 12) for size in self.sizes], 1).astype(np.int32)


class Whole(keras.Model):
  """One table for all fields."""

  def __init__(self, sizes):
    super().__init__(name='port')
    self.starts = offsets(sizes)
    self.table = keras.layers.Embedding(sum(sizes), WIDTH, name='table')
    self.last = keras.layers.Dense(3, name='last')

  def call(self, ids):
    vectors = self.table(ids + self.starts)
    return self.last(keras.ops.reshape(vectors, (-1, len(self.starts) * WIDTH)))


class Parted(Fields, abc.ABC):
  """TF1 has a table for each field, the port one for all."""

  def build_tf1_graph(self, inputs, training):
    tables = [
      v1.get_variable(f'field_{n}', [size, WIDTH], initializer=v1.random_uniform_initializer())
      for n, size in enumerate(self.sizes)
    ]
    vectors = [tf.nn.embedding_lookup(table, inputs[:, n]) for n, table in enumerate(tables)]
    return v1.layers.dense(tf.concat(vectors, 1), 3, name='end')

  def make_tf2_layer(self):
    return Whole(self.sizes)


def derived(case, **hooks):
  return derived_of(type('Case', (case,), {'__module__': __name__, **hooks}), lambda _: None)


class TablesTest(absltest.TestCase):
  def check(self, case, name, partners, **hooks):
    found = derived(case, **hooks)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(found.doubts, ())
    entries = {entry.tf1[0]: entry for entry in found.variable_map.entries}
    self.assertLen(entries[name].tf2, partners)
    return entries

  def test_tables_of_fields_and_kernels_of_terms(self):
    entries = self.check(Fields, 'vectors', 4)
    self.assertLen(entries['weights'].tf2, 4)
    self.assertEqual(entries['end/kernel'].layout, '(z1+z2+z3) 1 -> z1 1, z2 1, z3 1')

  def test_many_fields(self):
    sizes = (9, 7, 7, 4, 6, 5, 3)
    self.check(Fields, 'weights', 7, sizes=sizes, order=range(7))

  def test_one_table_in_the_port(self):
    found = derived(Parted)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertLen(found.variable_map.entries[0].tf1, 4)

  def test_fields_put_together_in_another_order(self):
    found = derived(Fields, turned=True)
    self.assertFalse(found.outputs_agree)
    entries = {entry.tf1: entry.tf2 for entry in found.variable_map.entries}
    self.assertEqual(entries['vectors',], tuple(f'port/vector{n}/embeddings' for n in range(4)))

  def test_a_kernel_is_no_table_of_as_many_elements(self):
    """The kernel has 16 elements, and so has the table of the last field."""

    def port(self):
      made = Port(self.sizes, self.order, False)
      made.terms[2] = lambda part: 0.0
      return made

    found = derived(Fields, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    for entry in found.variable_map.entries:
      self.assertFalse(entry.tf1 == ('end/kernel',) and 'vector' in entry.tf2[0], entry)


class LadderTest(LadderTestCase):
  def test_right(self):
    class Case(Fields):
      def make_labels(self):
        return np.linspace(-1, 1, 12, dtype=np.float32)[:, None]

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels))

      def tf2_loss(self, outputs, labels):
        return keras.ops.mean(keras.ops.square(outputs - labels))

      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.1)

      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(0.1)

    self.assert_passes(Case, 'checkpoint')

  def test_fields_that_read_the_column_of_another(self):
    class Case(Fields):
      order = (0, 2, 1, 3)

    self.assert_first_failure(Case, STAGE)


if __name__ == '__main__':
  absltest.main()
