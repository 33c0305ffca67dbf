"""Ports whose layers TF1 writes out, or slices, in another way: maps of their variables."""

import abc

import keras
from absl.testing import absltest, parameterized

from tests.stages.passes.block_cases import UNITS, BlockCase, Port, derived, entry_of

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
_EPSILON = 1e-3


class Normalized(keras.layers.Layer):
  """A dense layer and a batch norm of Keras."""

  def __init__(self, name, **arguments):
    super().__init__(name=name)
    self.dense = keras.layers.Dense(UNITS, name='dense')
    self.norm = keras.layers.BatchNormalization(name='norm', **arguments)

  def call(self, x):
    return tf.nn.relu(self.norm(self.dense(x)))


class NormCase(BlockCase, abc.ABC):
  """Batch norm written out, in inference, behind a layer that has a bias."""

  spelling = 0

  def block(self, net):
    x = v1.layers.dense(net, UNITS, name='dense')
    with v1.variable_scope('bn'):
      gamma, beta = v1.get_variable('gamma', [UNITS]), v1.get_variable('beta', [UNITS])
      mean = v1.get_variable('mean', [UNITS], trainable=False)
      variance = v1.get_variable('var', [UNITS], initializer=v1.ones_initializer(), trainable=False)
    root = v1.sqrt(variance + _EPSILON)
    return tf.nn.relu(
      (
        lambda: gamma * (x - mean) * v1.rsqrt(variance + _EPSILON) + beta,
        lambda: (x - mean) / root * gamma + beta,
        lambda: (x - mean) * (gamma / root) + beta,
        lambda: beta + (-mean + x) * gamma / root,
        lambda: v1.nn.batch_normalization(x, mean, variance, beta, gamma, _EPSILON),
      )[self.spelling]()
    )

  def fill_values(self, name, shape, dtype):
    value = super().fill_values(name, shape, dtype)
    return abs(value) + 0.5 if name.endswith('/var') else value

  def make_tf2_layer(self):
    return Port(Normalized('a'), Normalized('b'))


class BatchNormTest(parameterized.TestCase):
  @parameterized.parameters(range(5))
  def test_however_it_is_spelt(self, spelling):
    found = derived(NormCase, spelling=spelling)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(found.doubts, ())
    self.assertLen(found.variable_map.tf1_names, 14)
    for name, its in (('gamma', 'gamma'), ('mean', 'moving_mean'), ('var', 'moving_variance')):
      self.assertEqual(entry_of(found, f'block_1/bn/{name}').tf2, (f'port/b/norm/{its}',))
    self.assertEqual(entry_of(found, 'block_1/dense/bias').tf2, ('port/b/dense/bias',))

  def test_a_wrong_epsilon_unmaps_nothing(self):
    port = lambda _: Port(Normalized('a', epsilon=0.5), Normalized('b'))  # noqa: E731
    found = derived(NormCase, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    self.assertLen(found.variable_map.tf1_names, 14)

  def test_a_shift_that_the_port_lacks_stays_without_a_partner(self):
    port = lambda _: Port(Normalized('a', center=False), Normalized('b'))  # noqa: E731
    found = derived(NormCase, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    self.assertNotIn('block_0/bn/beta', found.variable_map.tf1_names)


class Scores(keras.layers.Layer):
  """Scores of pairs from two vectors, products with each; `exchanged` takes one for the other."""

  def __init__(self, name, exchanged=False):
    super().__init__(name=name)
    self.exchanged = exchanged
    self.project = keras.layers.Dense(UNITS, use_bias=False, name='project')
    self.source = self.add_weight(shape=(UNITS,), name='source')
    self.target = keras.layers.Dense(1, use_bias=False, name='target')

  def call(self, x):
    hidden = self.project(x)
    scores = tf.linalg.matvec(hidden, self.source), self.target(hidden)[..., 0]
    source, target = reversed(scores) if self.exchanged else scores
    weights = tf.nn.softmax(source[:, :, None] * tf.tanh(target)[:, None, :])
    return x + tf.matmul(weights, hidden)


class SlicedCase(BlockCase, abc.ABC):
  """Both vectors in one variable, of which each half is read at its place."""

  def block(self, net):
    hidden = v1.layers.dense(net, UNITS, use_bias=False, name='project')
    both = v1.get_variable('attention', [2, UNITS])
    source, target = (tf.reduce_sum(hidden * both[n], -1) for n in range(2))
    weights = tf.nn.softmax(source[:, :, None] * tf.tanh(target)[:, None, :])
    return net + tf.matmul(weights, hidden)

  def make_tf2_layer(self):
    return Port(Scores('a'), Scores('b'))


class SlicedTest(absltest.TestCase):
  def test_parts_of_which_each_is_a_factor_of_a_product(self):
    found = derived(SlicedCase)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual(found.doubts, ())
    entry = entry_of(found, 'block_1/attention')
    self.assertCountEqual(entry.tf2, ('b/source', 'port/b/target/kernel'))

  def test_parts_exchanged_in_one_layer_stay_a_finding(self):
    port = lambda _: Port(Scores('a'), Scores('b', exchanged=True))  # noqa: E731
    found = derived(SlicedCase, make_tf2_layer=port)
    self.assertFalse(found.outputs_agree)
    self.assertLen(found.variable_map.tf1_names, 6)


if __name__ == '__main__':
  absltest.main()
