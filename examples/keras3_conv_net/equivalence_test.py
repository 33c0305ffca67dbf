"""A `tf.layers` classifier against its port to Keras 3, with training."""

import keras
import numpy as np

import tf2verify
from examples.keras3_conv_net import model, port


class Keras3ConvNetCase(tf2verify.EquivalenceCase):
  def build_tf1_graph(self, inputs, training):
    return model.classifier(inputs, is_training=training)

  def make_tf2_layer(self):
    return port.classifier()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8, 8, 3))

  def make_labels(self):
    return np.array([2, 0, 3, 1], np.int32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, outputs)

  def make_tf1_optimizer(self):
    return model.optimizer()

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.05, momentum=0.9)


if __name__ == '__main__':
  tf2verify.main()
