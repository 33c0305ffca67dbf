"""Gradients of losses that differ at single values of the outputs alone."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import Status
from tf2verify.records.loss_values import LossExample
from tf2verify.stages.losses.kinks import beside
from tf2verify.stages.losses.results import LossReading

v1 = tf.compat.v1
_STAGE = 'loss'
_NOTE = 'agree at outputs that are larger or smaller by rounding'


class _Between(tf2verify.EquivalenceCase, abc.ABC):
  """Outputs that happen to be between 0 and 1, so that 0 and 1 are tried."""

  def build_tf1_graph(self, inputs, training):
    return tf.sigmoid(v1.layers.dense(inputs, 3, name='logits'))

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, 'sigmoid', name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]


class _Weighted(_Between, abc.ABC):
  """TensorFlow's operation has derivatives of its own at logits of 0."""

  weight = 4.0

  def tf1_loss(self, outputs, labels):
    each = tf.nn.sigmoid_cross_entropy_with_logits(labels, outputs)
    return tf.reduce_mean((1.0 + 3.0 * labels) * each)

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(
      tf.nn.weighted_cross_entropy_with_logits(labels, outputs, pos_weight=self.weight)
    )


class _Bounded(_Between, abc.ABC):
  """Another gradient at 0, and everywhere below an epsilon that nothing else comes to."""

  def tf1_loss(self, outputs, labels):
    return -tf.reduce_mean(labels * tf.math.log(outputs + 1e-20))

  def tf2_loss(self, outputs, labels):
    return -tf.reduce_mean(labels * tf.math.log(tf.maximum(outputs, 1e-20)))


class _StoppedAtZero(_Between, abc.ABC):
  """Another gradient at 0 and below it."""

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean((outputs - labels) ** 2)

  def tf2_loss(self, outputs, labels):
    outputs = tf.where(outputs > 0, outputs, tf.stop_gradient(outputs))
    return tf.reduce_mean((outputs - labels) ** 2)


class KinksTest(parameterized.TestCase):
  def _found(self, parent, **settings):
    verdict = tf2verify.verify(type('Case', (parent,), settings), [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_derivatives_at_single_values(self):
    found = self._found(_Weighted)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn(_NOTE, ' '.join(found.notes))

  @parameterized.parameters(_Bounded, _StoppedAtZero)
  def test_gradients_that_differ_beside_them_too(self, parent):
    found = self._found(parent)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertNotIn(_NOTE, found.to_text())

  def test_another_weight(self):
    self.assertIs(self._found(_Weighted, weight=3.0).status, Status.FAILED)

  def test_outputs_beside_an_example(self):
    outputs = np.array([[0.0, 1.0, -3.0, 0.0]], np.float32)
    reading = LossReading(('',))
    for sign in (1.0, -1.0):
      moved = beside(LossExample('zeros', {'': outputs}, {}), reading, sign).outputs['']
      self.assertTrue(np.all(sign * (moved - outputs) > 0))
      np.testing.assert_allclose(moved, outputs, 1e-5, 1e-30)
      self.assertNotEqual(moved[0, 0], moved[0, 3])
    half = LossExample('half', {'': outputs.astype(np.float16)}, {})
    self.assertIsNone(beside(half, reading, 1.0))


if __name__ == '__main__':
  absltest.main()
