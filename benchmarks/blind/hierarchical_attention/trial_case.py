"""The case of the hierarchical attention network."""

import model
import numpy as np
import port

import tf2verify


class Case(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.han(inputs, training)

  def make_tf2_layer(self):
    return port.HAN()

  def make_inputs(self):
    r = np.random.RandomState(1)
    return {
      'words': r.randint(1, 30, (3, 4, 6)).astype(np.int32),
      'word_lengths': np.array([[6, 3, 5, 2], [4, 6, 0, 0], [1, 2, 6, 0]], np.int32),
      'doc_lengths': np.array([4, 2, 3], np.int32),
    }

  def make_labels(self):
    return np.array([0, 3, 2], np.int32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.data_loss(outputs, labels)

  def tf1_total_loss(self, outputs, labels):
    return model.total_loss(model.loss(outputs, labels))

  def tf2_total_loss(self, layer, outputs, labels):
    return port.data_loss(outputs, labels) + port.weight_decay(layer)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
