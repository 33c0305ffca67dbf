"""Losses that look wrong beside TF1's and are right."""

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.losses import Binary, Classified, PerExample, Smoothed
from tests.port_bugs.port_bug import Control
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
keras = tf.keras


class SigmoidSmoothed(tiny_models.Affine):
  """Three labels that do not exclude each other."""

  def make_labels(self):
    return np.array([[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]], np.float32)

  def tf1_loss(self, outputs, labels):
    return v1.losses.sigmoid_cross_entropy(labels, outputs, label_smoothing=0.1)

  def tf2_loss(self, outputs, labels):
    loss = keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)
    return loss(labels, outputs)


class Regressed(tiny_models.Affine):
  """Huber's loss."""

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return v1.losses.huber_loss(labels, outputs, delta=0.5)

  def tf2_loss(self, outputs, labels):
    return keras.losses.Huber(delta=0.5)(labels, outputs)


class Separated(tiny_models.Affine):
  """The hinge loss of TF1 takes labels of 0 and 1, that of Keras of -1 and 1 as well."""

  def make_labels(self):
    return np.eye(3, dtype=np.float32)[[0, 2, 1, 2]]

  def tf1_loss(self, outputs, labels):
    return v1.losses.hinge_loss(labels, outputs)

  def tf2_loss(self, outputs, labels):
    return keras.losses.Hinge()(labels, outputs)


class SparseOnes(Classified):
  """One-hot labels on one side, class numbers on the other."""

  def tf2_loss(self, outputs, labels):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return loss(labels['classes'], outputs)


class AddedUp(PerExample):
  """A loss per example on both sides."""

  def tf2_loss(self, outputs, labels):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels['classes'], outputs)


class ByLogSoftmax(Classified):
  """The cross-entropy in another spelling, of the same accuracy."""

  def tf2_loss(self, outputs, labels):
    picked = tf.gather(tf.nn.log_softmax(outputs), labels['classes'], batch_dims=1)
    return -tf.reduce_mean(picked)


class TwoHeads(Classified):
  """Logits and their softmax as outputs: each loss reads the one that it needs."""

  def model(self, inputs, training):
    logits = inputs @ kernel() + bias()
    return {'logits': logits, 'probabilities': tf.nn.softmax(logits), 'again': logits}

  def tf1_loss(self, outputs, labels):
    return super().tf1_loss(outputs['logits'], labels)

  def tf2_loss(self, outputs, labels):
    return super().tf2_loss(outputs['again'], labels)


class KerasLogLoss(Binary):
  """Keras' binary cross-entropy on both sides."""

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(keras.backend.binary_crossentropy(labels, outputs))

  def tf2_loss(self, outputs, labels):
    return keras.losses.BinaryCrossentropy()(labels, outputs)


CONTROLS = (
  Control('softmax cross-entropy of TF1 and of Keras, from logits', Classified),
  Control('the same with label smoothing', Smoothed),
  Control('the same with one-hot labels and with class numbers', SparseOnes),
  Control('cross-entropy as the logarithm of the softmax', ByLogSoftmax),
  Control('the same logits under two names, together with their softmax', TwoHeads),
  Control('a loss per example, and its sum', PerExample),
  Control('a loss per example on both sides', AddedUp),
  Control('sigmoid cross-entropy with label smoothing', SigmoidSmoothed),
  Control('binary cross-entropy of Keras on both sides', KerasLogLoss),
  Control("Huber's loss of TF1 and of Keras", Regressed),
  Control('hinge loss of TF1 and of Keras', Separated),
)
