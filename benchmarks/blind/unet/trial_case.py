"""The case of the U-Net."""

import model
import numpy as np
import port

import tf2verify


def images():
  return np.random.RandomState(7).normal(size=(3, 16, 16, 2)).astype(np.float32)


def masks():
  labels = np.random.RandomState(8).randint(0, model.CLASSES, size=(3, 16, 16)).astype(np.int32)
  labels[0, :3] = model.VOID
  labels[2, :, 9:] = 0
  return labels


class UNetCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.unet(inputs, training)

  def make_tf2_layer(self):
    return port.build_unet()

  def make_inputs(self):
    return images()

  def make_labels(self):
    return masks()

  def tf1_loss(self, outputs, labels):
    return model.segmentation_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.segmentation_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
