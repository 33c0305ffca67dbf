"""The case of the detector."""

import model
import numpy as np
import port

import tf2verify


class DetectorCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.detector(inputs, training)

  def make_tf2_layer(self):
    return port.Detector()

  def make_inputs(self):
    return np.random.RandomState(11).uniform(0, 255, size=(2, 32, 32, 3)).astype(np.float32)

  def make_labels(self):
    boxes = [
      [[2, 3, 11, 12], [10, 14, 30, 27], [0, 20, 7, 31]],
      [[16, 1, 31, 15], [5, 18, 14, 26], [0, 0, 0, 0]],  # the last: padding
    ]
    return {
      'boxes': np.array(boxes, np.float32),
      'classes': np.array([[0, 1, 2], [1, 2, 0]], np.int32),
    }

  def tf1_loss(self, outputs, labels):
    return model.detection_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.detection_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
