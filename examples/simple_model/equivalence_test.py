"""SimpleModel with a polynomial decay against its port: gradient descent, and Adam."""

import numpy as np
import tensorflow as tf

import tf2verify
from examples.simple_model import model, port

v1 = tf.compat.v1


class SimpleModelCase(tf2verify.EquivalenceCase):
  decay_steps = 4
  training_steps_to_take = 6  # two of them behind the end of the decay
  tf1_optimizer = v1.train.GradientDescentOptimizer

  def build_tf1_graph(self, inputs, training):
    return model.simple_model(inputs)

  def make_tf2_layer(self):
    return port.SimpleModel()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 3))

  def make_labels(self):
    return np.eye(3, dtype=np.float32)[:2]

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss, self.decay_steps, self.tf1_optimizer)

  def make_tf2_optimizer(self):
    return port.sgd(self.decay_steps)

  def variable_names(self, name):
    return f'simple_model/{name}'


class AdamSimpleModelCase(SimpleModelCase):
  tf1_optimizer = v1.train.AdamOptimizer

  def make_tf2_optimizer(self):
    return port.adam(self.decay_steps)


if __name__ == '__main__':
  tf2verify.main()
