"""Right models with labels and a loss, whose subclasses give them optimizers."""

import abc

import numpy as np
import tensorflow as tf

import tf2verify
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel


class Trained(tiny_models.OneModel, abc.ABC):
  """An affine map, trained towards labels of its own size by squared errors."""

  def model(self, inputs, training):
    return tf.matmul(inputs, kernel()) + bias()

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=7)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf2_optimizer(self):
    # What needs no port of its own: one of tf.compat.v1.train works in eager mode.
    return self.make_tf1_optimizer()


class FewSignals(Trained, abc.ABC):
  """One of the inputs is all but off, so that its gradients are tiny."""

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3)) * np.array([1, 1, 1e-5], np.float32)


class Steep(Trained, abc.ABC):
  """A loss with gradients that are clipped."""

  def tf1_loss(self, outputs, labels):
    return 10.0 * tf.reduce_sum(tf.square(outputs - labels))

  tf2_loss = tf1_loss


class TwoNetworks(Trained, abc.ABC):
  """A generator, and a critic on top of it."""

  def model(self, inputs, training):
    generated = tf.matmul(inputs, tf.compat.v1.get_variable('generator/kernel', [3, 3]))
    return tf.matmul(generated, tf.compat.v1.get_variable('critic/kernel', [3, 3]))


def of_network(name, variables):
  """Returns the trainable variables of one of the networks."""
  return [variable for variable in variables if variable.name.startswith(name)]


def differentiated(case, layer, inputs, labels):
  """Returns the loss and its gradients, as a port's training loop does."""
  with tf.GradientTape() as tape:
    loss = case.tf2_loss(layer(inputs, training=True), labels)
  return loss, tape.gradient(loss, layer.trainable_variables)
