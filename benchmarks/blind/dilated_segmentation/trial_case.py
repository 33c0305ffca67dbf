"""The small DeepLabv3+ and its port."""

import model
import numpy as np
import port

import tf2verify


class DilatedSegmentationCase(tf2verify.EquivalenceCase):
  modes_to_run = ('tf.function',)

  def build_tf1_graph(self, inputs, training):
    return model.segment(inputs, training)

  def make_tf2_layer(self):
    return port.Deeplab()

  def make_inputs(self):
    return np.random.RandomState(0).uniform(0, 255, (2, 17, 17, 3)).astype(np.float32)

  def make_labels(self):
    labels = np.random.RandomState(1).randint(0, 5, (2, 17, 17)).astype(np.int32)
    return np.where(labels == 4, 255, labels)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Training()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
