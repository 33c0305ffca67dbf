"""The case of the MobileNet."""

import model
import numpy as np
import port

import tf2verify


class MobileNetCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 4

  def build_tf1_graph(self, inputs, training):
    return model.mobilenet(inputs, training)

  def make_tf2_layer(self):
    return port.MobileNet()

  def make_inputs(self):
    images = np.random.RandomState(3).randint(0, 256, (6, 20, 20, 3))
    return images.astype(np.float32)

  def make_labels(self):
    return {
      'classes': np.array([0, 3, 1, 4, 2, 2], np.int32),
      'weights': np.array([1, 2, 0, 1, 0.5, 1], np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.classification_loss(outputs, labels['classes'], labels['weights'])

  def tf2_loss(self, outputs, labels):
    return port.classification_loss(outputs, labels['classes'], labels['weights'])

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
