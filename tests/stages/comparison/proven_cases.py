"""Cases whose graphs are related."""

import numpy as np
import tensorflow as tf

from tests.stages.tiny_models import OneModel

v1 = tf.compat.v1


class Dense(OneModel):
  def activation(self, net):
    return tf.nn.relu(net)

  def model(self, inputs, training):
    net = v1.layers.dense(inputs, 4, name='d')
    net = v1.layers.dropout(net, 0.25, training=training)
    return self.activation(net)


class NativeDense(Dense):
  def make_tf2_layer(self):
    dense = tf.keras.layers.Dense(4, 'relu', name='d')
    return tf.keras.Sequential([dense, tf.keras.layers.Dropout(0.25)])

  def model(self, inputs, training):
    net = v1.layers.dense(inputs, 4, tf.nn.relu, name='d')
    return v1.layers.dropout(net, 0.25, training=training)


class Capped(Dense):
  def port(self, inputs, training):
    net = v1.layers.dense(inputs, 4, name='d')
    return tf.nn.relu6(v1.layers.dropout(net, 0.25, training=training))


class CappedAndBounded(Capped):
  """Inputs that are not made greater, since they may be bounded."""

  def make_inputs(self):
    return np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


class Numpy(Dense):
  """A port that leaves TensorFlow on its way."""

  def port(self, inputs, training):
    net = self.model(inputs, training)
    return net + 0.0 * float(tf.reduce_sum(net))
