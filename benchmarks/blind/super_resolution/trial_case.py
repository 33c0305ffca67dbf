"""The case of the super-resolution."""

import model
import numpy as np
import port

import tf2verify


class Case(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.edsr(inputs, training)

  def make_tf2_layer(self):
    return port.super_resolution()

  def make_inputs(self):
    return np.random.RandomState(0).uniform(0, 1, (2, 6, 5, 3)).astype(np.float32)

  def make_labels(self):
    return np.random.RandomState(1).uniform(0, 1, (2, 12, 10, 3)).astype(np.float32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def tf1_metrics(self, outputs, labels):
    return {'psnr': model.psnr(outputs, labels)}

  def tf2_metrics(self, outputs, labels):
    return {'psnr': port.psnr(outputs, labels)}

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
