"""Maps of models that use one layer several times: an attention is not taken for a cell."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'zero_randomness'
UNITS, HEADS, TIMES = 12, 3, 2


def _attention(inputs):
  batch, length = tf.shape(inputs)[0], tf.shape(inputs)[1]

  def heads(name):
    found = v1.layers.dense(inputs, UNITS, name=name)
    found = tf.reshape(found, [batch, length, HEADS, UNITS // HEADS])
    return tf.transpose(found, [0, 2, 1, 3])

  scores = tf.matmul(heads('query'), heads('key'), transpose_b=True)
  weights = tf.nn.softmax(scores / (UNITS // HEADS) ** 0.5)
  read = tf.transpose(tf.matmul(weights, heads('value')), [0, 2, 1, 3])
  return v1.layers.dense(tf.reshape(read, [batch, length, UNITS]), UNITS, name='output')


class Port(keras.Model):
  def __init__(self, times):
    super().__init__(name='port')
    self.attend = keras.layers.MultiHeadAttention(HEADS, UNITS // HEADS, name='attend')
    self.pool = keras.layers.Dense(UNITS, 'tanh', name='pool')
    self.times = times

  def call(self, inputs):
    for _ in range(self.times):
      inputs = tf.tanh(inputs + self.attend(inputs, inputs))
    return self.pool(inputs[:, 0])


class Shared(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  times = TIMES

  def build_tf1_graph(self, inputs, training):
    for n in range(TIMES):
      with v1.variable_scope('block', reuse=n > 0):
        inputs = tf.tanh(inputs + _attention(inputs))
    return v1.layers.dense(inputs[:, 0], UNITS, tf.tanh, name='pooler')

  def make_tf2_layer(self):
    return Port(self.times)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5, UNITS))


class SharedLayersTest(LadderTestCase):
  def test_the_kernel_of_a_query_is_not_that_of_a_pooler(self):
    class Case(Shared):
      pass

    derived = tf2verify.derive_variable_map(Case)
    pairs = {entry.tf1[0]: entry.tf2[0] for entry in derived.entries}
    self.assertEqual(pairs['pooler/kernel'], 'port/pool/kernel')
    self.assertEqual(pairs['block/query/kernel'], 'port/attend/query/kernel')
    self.assert_passes(Case, STAGE)

  def test_a_block_that_is_used_once(self):
    class Case(Shared):
      times = 1

    self.assert_first_failure(Case, STAGE)


if __name__ == '__main__':
  absltest.main()
