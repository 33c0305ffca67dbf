"""Layers of the port that are in training mode also in inference."""

import abc

import keras as keras3
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
_FIX = 'pass training=training to the layer (the argument of call), not training=True'


class Network(keras3.Model):
  def __init__(self, layer):
    super().__init__()
    self.hidden = keras3.layers.Dense(8, 'relu', name='hidden')
    self.random = layer
    self.logits = keras3.layers.Dense(3, name='logits')

  def call(self, inputs):
    return self.logits(self.random(self.hidden(inputs), training=True))


class Dropping(tf2verify.EquivalenceCase, abc.ABC):
  """The dropout of tf1 is on in training mode."""

  def random(self, net, training):
    return v1.layers.dropout(net, 0.3, training=training)

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 8, tf.nn.relu, name='hidden')
    return v1.layers.dense(self.random(net, training), 3, name='logits')

  def make_tf2_layer(self):
    return Network(keras3.layers.Dropout(0.3))

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))


class TrainingInInferenceTest(LadderTestCase):
  def test_dropout(self):
    self.assert_first_failure(
      type('Case', (Dropping,), {}), 'zero_randomness', 'is also active in inference', _FIX
    )

  def test_noise(self):
    def random(self, net, training):
      return net + tf.random.normal(tf.shape(net), stddev=0.1) if training else net

    def port(self):
      return Network(keras3.layers.GaussianNoise(0.1))

    case = type('Case', (Dropping,), {'random': random, 'make_tf2_layer': port})
    self.assert_first_failure(case, 'zero_randomness', 'in inference', _FIX)

  def test_dropout_that_tf1_never_has(self):
    case = type('Case', (Dropping,), {'random': lambda self, net, training: net})
    self.assert_first_failure(
      case, 'zero_randomness', 'dropout only in the port', 'call it with training=False'
    )


if __name__ == '__main__':
  absltest.main()
