"""The small SE-ResNet and its port."""

import model
import numpy as np
import port

import tf2verify


class SeNetCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 4
  modes_to_run = ('tf.function',)

  def build_tf1_graph(self, inputs, training):
    return model.se_net(inputs, training)

  def make_tf2_layer(self):
    return port.SeNet()

  def make_inputs(self):
    return np.random.RandomState(0).uniform(0, 255, (4, 20, 20, 3)).astype(np.float32)

  def make_labels(self):
    return {
      'label': np.array([0, 3, 1, 4], np.int32),
      'weight': np.array([1.0, 0.5, 0.0, 2.0], np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf1_total_loss(self, outputs, labels):
    return model.loss(outputs, labels) + model.weight_decay()

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
