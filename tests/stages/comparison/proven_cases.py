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


class WrittenTwice(OneModel):
  """A moving average that the port writes in two steps, the second of which reads the first."""

  def average(self):
    zeros = v1.zeros_initializer()
    return v1.get_variable('average', [3], initializer=zeros, trainable=False, use_resource=True)

  def model(self, inputs, training):
    average, mean = self.average(), tf.reduce_mean(inputs, 0)
    if training:
      v1.add_to_collection(
        v1.GraphKeys.UPDATE_OPS, v1.assign_sub(average, (average - 1.25 * mean) * 0.1)
      )
    return inputs * v1.get_variable('scale', [3])

  def port(self, inputs, training):
    average, mean = self.average(), tf.reduce_mean(inputs, 0)
    if training:
      kept = 0.9 * average
      average.assign(kept + 0.1 * mean)
      average.assign(kept + 1.25 * (average - kept))
    return inputs * v1.get_variable('scale', [3])
