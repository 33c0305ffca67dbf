"""A TF-Slim network trained with RMSProp and averaged weights against its port."""

import numpy as np

import tf2verify
from examples.slim_rmsprop_ema import model, port


class SlimRmspropEmaCase(tf2verify.EquivalenceCase):
  evaluate_with_ema = True

  def build_tf1_graph(self, inputs, training):
    return model.conv_net(inputs, 5, is_training=training)

  def make_tf2_layer(self):
    return port.ConvNet(5)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8, 8, 3))

  def make_labels(self):
    return np.array([0, 3, 1, 4], np.int32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.rmsprop()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)


if __name__ == '__main__':
  tf2verify.main()
