"""A mask that the loss of the port forgets, before a mean that tf1 writes as a sum and a number."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Masked(tf2verify.EquivalenceCase, abc.ABC):
  masks = True

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='dense')

  def make_tf2_layer(self):
    return keras.layers.Dense(3, name='dense')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5, 6))

  def make_labels(self):
    mask = np.tril(np.ones((4, 5), np.float32), 1)
    return {'y': (np.arange(60).reshape(4, 5, 3) % 2).astype(np.float32), 'mask': mask}

  def tf1_loss(self, outputs, labels):
    each = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels['y'], logits=outputs)
    each = tf.reduce_sum(each * tf.expand_dims(labels['mask'], 2), axis=[1, 2])
    return tf.reduce_mean(each) / 3

  def tf2_loss(self, outputs, labels):
    each = tf.nn.sigmoid_cross_entropy_with_logits(labels['y'], outputs)
    each = tf.reduce_mean(each, -1)
    each = each * labels['mask'] if self.masks else each
    return tf.reduce_mean(tf.reduce_sum(each, 1))


def _loss(**hooks):
  verdict = tf2verify.verify(type('Case', (Masked,), hooks), ['loss'])
  return next(one for one in verdict.stages if one.stage == 'loss')


class OperandInsertionsTest(absltest.TestCase):
  def test_right_port(self):
    stage = _loss()
    self.assertTrue(stage.passed, stage.to_text())

  def test_the_mask_alone_is_the_cause(self):
    stage = _loss(masks=False)
    [cause] = stage.diagnosis.causes
    self.assertTrue(cause.is_proven, stage.to_text())
    self.assertIn("does not depend on labels['mask']", cause.text)


if __name__ == '__main__':
  absltest.main()
