"""The case of the deep interest network."""

import model
import numpy as np
import port

import tf2verify


class Case(tf2verify.EquivalenceCase):
  training_steps_to_take = 6

  def build_tf1_graph(self, inputs, training):
    return model.din(inputs, training)

  def make_tf2_layer(self):
    return port.DIN()

  def make_inputs(self):
    r = np.random.RandomState(1)
    i = lambda n, *s: r.randint(0, n, s).astype(np.int32)
    return {
      'user': i(8, 6),
      'item': i(20, 6),
      'cate': i(6, 6),
      'hist_item': i(20, 6, 5),
      'hist_cate': i(6, 6, 5),
      'hist_len': np.array([5, 3, 1, 4, 2, 5], np.int32),
    }

  def make_labels(self):
    return np.array([1, 0, 0, 1, 0, 1], np.float32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.data_loss(outputs, labels)

  def tf1_total_loss(self, outputs, labels):
    return model.total_loss(model.loss(outputs, labels))

  def tf2_total_loss(self, layer, outputs, labels):
    return port.data_loss(outputs, labels) + port.table_decay(layer)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
