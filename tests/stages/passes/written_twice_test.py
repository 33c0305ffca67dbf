"""State that the port writes twice in a call, as a layer does that corrects what its base wrote."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


class _Port(keras.layers.Layer):
  """Writes a half first, and then what TF1 writes."""

  def __init__(self, factor, gain):
    super().__init__(name='port')
    self.factor, self.gain = factor, gain
    self.dense = keras.layers.Dense(4, name='dense')
    self.mean = self.add_weight(name='mean', shape=(4,), initializer='zeros', trainable=False)

  def call(self, inputs, training=False):
    net = self.dense(inputs)
    if training:
      self.mean.assign(0.5 * self.mean)
      self.mean.assign(1.8 * self.mean + self.factor * tf.reduce_mean(net, 0))
    return net * (self.gain if training else 1.5)


class _Twice(tf2verify.EquivalenceCase, abc.ABC):
  factor, gain = 0.1, 1.5

  def variable_names(self, name):
    return f'port/{name}'

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 4, name='dense')
    mean = v1.get_variable('mean', [4], initializer=v1.zeros_initializer(), trainable=False)
    if training:
      update = mean.assign(0.9 * mean + 0.1 * tf.reduce_mean(net, 0))
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    return net * 1.5

  def make_tf2_layer(self):
    return _Port(self.factor, self.gain)

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 3))


class WrittenTwiceTest(absltest.TestCase):
  def test_right_port(self):
    verdict = tf2verify.verify(type('Case', (_Twice,), {}), ['seeded_constant'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())

  def test_mistake_elsewhere_is_the_only_one(self):
    causes, text = causes_of(self, _Twice, 'seeded_constant', gain=1.4)
    self.assertLen(causes, 1, text)
    self.assertIn('is 1.4 in the port, 1.5 in tf1', causes[0])

  def test_mistake_in_the_last_write(self):
    _, text = causes_of(self, _Twice, 'seeded_constant', factor=0.2)
    self.assertIn('state after the call mean', text)


if __name__ == '__main__':
  absltest.main()
