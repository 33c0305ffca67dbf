"""The case of the YOLOv2-like detector."""

import model
import numpy as np
import port

import tf2verify


class Case(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.darknet(inputs, training)

  def make_tf2_layer(self):
    return port.Detector()

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 32, 32, 3))

  def make_labels(self):
    r = np.random.RandomState(3)
    s = (2, 4, 4, 2)
    boxes = np.concatenate([r.uniform(0, 1, s + (2,)), r.uniform(0.3, 3, s + (2,))], -1)
    return {
      'boxes': boxes.astype(np.float32),
      'object': (r.uniform(size=s) < 0.3).astype(np.float32),
      'classes': r.randint(0, 3, s).astype(np.int32),
    }

  def tf1_loss(self, outputs, labels):
    return model.yolo_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.detector_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
