"""Losses of outputs that a model has in training alone, one of them a single number."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1


class _Port(keras.layers.Layer):
  def __init__(self):
    super().__init__(name='port')
    self.dense = keras.layers.Dense(3, name='dense')

  def call(self, inputs, training=False):
    net = self.dense(inputs)
    return {'net': net, 'size': tf.reduce_mean(tf.square(net))} if training else {'net': net}


class _OfTraining(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 3, name='dense')
    return {'net': net, 'size': tf.reduce_mean(tf.square(net))} if training else {'net': net}

  def make_tf2_layer(self):
    return _Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return np.array([0, 2, 1, 0])

  def tf1_loss(self, outputs, labels):
    crossed = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=outputs['net'])
    return tf.reduce_mean(crossed) + 0.1 * outputs['size']

  def tf2_loss(self, outputs, labels):
    # Adds up numbers of one shape alone.
    crossed = keras.losses.sparse_categorical_crossentropy(labels, outputs['net'], from_logits=True)
    return tf.add_n([tf.reduce_mean(crossed), 0.1 * outputs['size']])


class LossesOfTrainingTest(absltest.TestCase):
  def verdicts(self, **hooks):
    case = type('Case', (_OfTraining,), hooks)
    found = tf2verify.verify(case, ['loss', 'execution_modes']).stages
    return {one.stage: one for one in found}

  def test_outputs_of_training(self):
    found = self.verdicts()
    self.assertIs(found['loss'].status, Status.PASSED, found['loss'].to_text())
    modes = found['execution_modes']
    self.assertIs(modes.status, Status.PASSED, modes.to_text())
    self.assertTrue([one for one in modes.notes if 'no losses in inference' in one], modes.notes)

  def test_loss_that_raises_in_training(self):
    def tf2_loss(case, outputs, labels):
      return outputs['sizes']

    found = self.verdicts(tf2_loss=tf2_loss)
    self.assertIs(found['execution_modes'].status, Status.ERROR)


if __name__ == '__main__':
  absltest.main()
