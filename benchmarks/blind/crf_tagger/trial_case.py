"""The case of the BiLSTM-CRF tagger."""

import model
import numpy as np
import port

import tf2verify


class Case(tf2verify.EquivalenceCase):
  training_steps_to_take = 4

  def build_tf1_graph(self, inputs, training):
    return model.tagger(inputs, training)

  def make_tf2_layer(self):
    return port.Tagger()

  def make_inputs(self):
    r = np.random.RandomState(2)
    return {
      'words': r.randint(0, 25, (4, 7)).astype(np.int32),
      'lengths': np.array([7, 4, 1, 6], np.int32),
    }

  def make_labels(self):
    r = np.random.RandomState(5)
    return {
      'tags': r.randint(0, 4, (4, 7)).astype(np.int32),
      'lengths': np.array([7, 4, 1, 6], np.int32),
    }

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.crf_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
