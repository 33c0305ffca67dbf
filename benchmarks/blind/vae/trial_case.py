"""The case of the variational autoencoder."""

import model
import numpy as np
import port

import tf2verify


def images():
  return np.random.RandomState(5).uniform(size=(4, 8, 8, 1)).astype(np.float32)


class VaeCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5
  modes_to_run = ('tf.function', 'keras functional model')

  def build_tf1_graph(self, inputs, training):
    return model.vae(inputs, training)

  def make_tf2_layer(self):
    return port.VariationalAutoencoder()

  def variable_names(self, name):
    return name

  def make_inputs(self):
    return images()

  def make_labels(self):
    return {'images': images(), 'weights': np.array([1, 1, 0.5, 0], np.float32)}

  def tf1_loss(self, outputs, labels):
    return model.vae_loss(outputs, labels['images'], labels['weights'])

  def tf2_loss(self, outputs, labels):
    return port.vae_loss(outputs, labels['images'], labels['weights'])

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
