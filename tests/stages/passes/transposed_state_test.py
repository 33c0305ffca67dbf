"""Tests of state that the port holds with rows and columns exchanged."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'seeded_constant'
_CODES, _SIZE = 5, 3


class _Port(keras.layers.Layer):
  """Keeps a running sum for each code, a row each; TF1 has a column each."""

  def __init__(self, shares):
    super().__init__(name='memory')
    self.shares = shares
    self.dense = keras.layers.Dense(_SIZE, name='dense')
    self.sums = self.add_weight(
      name='sums', shape=(_CODES, _SIZE), initializer='ones', trainable=False
    )

  def call(self, inputs, training=False):
    net = self.dense(inputs)
    near = keras.ops.matmul(net, keras.ops.transpose(keras.ops.convert_to_tensor(self.sums)))
    chosen = keras.ops.softmax(near)
    if training:
      gained = keras.ops.matmul(keras.ops.transpose(chosen), net)
      self.sums.assign(0.9 * self.sums + self.shares * gained)
    return net


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  shares = 0.1
  variable_map = tf2verify.VariableMap(
    (
      tf2verify.MapEntry(('dense/kernel',), ('memory/dense/kernel',)),
      tf2verify.MapEntry(('dense/bias',), ('memory/dense/bias',)),
      tf2verify.MapEntry(('sums',), ('memory/sums',), 'd k -> k d'),
    )
  )

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, _SIZE, name='dense')
    ones = v1.ones_initializer()
    sums = v1.get_variable('sums', [_SIZE, _CODES], initializer=ones, trainable=False)
    chosen = tf.nn.softmax(tf.matmul(net, sums))
    if training:
      gained = 0.1 * tf.matmul(net, chosen, transpose_a=True)
      with tf.control_dependencies([chosen]):
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, sums.assign(0.9 * sums + gained))
    return net

  def make_tf2_layer(self):
    return _Port(self.shares)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 2))


class TransposedStateTest(absltest.TestCase):
  def found(self, **hooks):
    return tf2verify.verify(type('Case', (_Case,), hooks), [_STAGE]).stages[-1]

  def test_right_port(self):
    found = self.found()
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_mistake_in_what_is_written(self):
    found = self.found(shares=0.2)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    text = found.to_text()
    self.assertIn('cause (proven', text)
    self.assertRegex(text, r'is 0\.2 in the port, 0\.1 in tf1')
    self.assertNotIn('never in tf2', text)


if __name__ == '__main__':
  absltest.main()
