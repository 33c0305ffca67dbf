"""Tests of tf2verify.diagnosis.patterns.operations.moved_operations."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.tiny_models import OneModel

v1 = tf.compat.v1
_KNOWN = {'momentum': 0.9, 'name': 'norm'}


class Gated(keras.layers.Layer):
  """A gate that is computed of what it multiplies, and a batch norm before it or after it."""

  def __init__(self, before, after):
    super().__init__(name='net')
    self.inner = keras.layers.Dense(6, name='inner')
    self.squeeze = keras.layers.Dense(3, 'relu', name='squeeze')
    self.excite = keras.layers.Dense(6, 'sigmoid', name='excite')
    self.norm = keras.layers.BatchNormalization(**_KNOWN)
    self.before, self.after = before, after

  def call(self, inputs, training=None):
    net = self.inner(inputs)
    net = self.norm(net, training=training) if self.before else net
    net = net * self.excite(self.squeeze(net))
    return tf.nn.relu(self.norm(net, training=training) if self.after else net)


class Moved(OneModel, abc.ABC):
  places = True, False

  def model(self, inputs, training):
    net = v1.layers.dense(inputs, 6, name='inner')
    gate = v1.layers.dense(net, 3, tf.nn.relu, name='squeeze')
    net *= v1.layers.dense(gate, 6, tf.sigmoid, name='excite')
    return tf.nn.relu(v1.layers.batch_normalization(net, training=training, **_KNOWN))

  def make_tf2_layer(self):
    return Gated(*self.places)


class Twice(Moved, abc.ABC):
  places = True, True


class Right(Moved, abc.ABC):
  places = False, True


class MovedOperationsTest(absltest.TestCase):
  def _text(self, case):
    verdict = tf2verify.verify(case, stages=['zero_randomness'])
    failed = verdict.first_failure
    return '' if failed is None else ' '.join(failed.to_text().split())

  def test_a_norm_before_a_gate_and_not_after_it(self):
    text = self._text(Moved)
    self.assertIn('at another place than tf1, which has it at norm/batchnorm/mul_1', text)
    self.assertNotIn('which tf1 does not have', text)

  def test_a_norm_that_tf1_has_once_is_extra(self):
    text = self._text(Twice)
    self.assertIn('which tf1 does not have', text)
    self.assertNotIn('at another place', text)

  def test_a_right_port(self):
    self.assertEqual(self._text(Right), '')


if __name__ == '__main__':
  absltest.main()
