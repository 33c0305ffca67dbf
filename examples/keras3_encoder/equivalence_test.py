"""A text encoder of 2018 against its port to Keras 3, trained by Adam."""

import keras
import numpy as np
import tensorflow as tf

import tf2verify
from examples.keras3_encoder import model, port


class Keras3EncoderCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return model.encoder(inputs, is_training=training)

  def make_tf2_layer(self):
    return port.Encoder(name='encoder')

  def make_inputs(self):
    return np.array([[3, 7, 1, 19, 0, 0], [5, 2, 11, 4, 6, 0]], np.int32)

  def make_labels(self):
    return np.array([[0.5], [-1.0]], np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.compat.v1.losses.mean_squared_error(labels, outputs[:, 0, :1])

  def tf2_loss(self, outputs, labels):
    return keras.losses.MeanSquaredError()(labels, outputs[:, 0, :1])

  def make_tf1_optimizer(self):
    return tf.compat.v1.train.AdamOptimizer(1e-3)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(1e-3, epsilon=1e-8)


if __name__ == '__main__':
  tf2verify.main()
