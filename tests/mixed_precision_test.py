"""Ports whose layers compute in bfloat16, from variables of float32."""

import abc

import keras
import numpy as np
import tensorflow as tf
import tf_keras
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_POLICY = 'mixed_bfloat16'
_STAGES = ['variable_inventory', 'zero_randomness', 'gradients', 'training_steps', 'checkpoint']


class Mixed(tf2verify.EquivalenceCase, abc.ABC):
  variable_names = {'logits/kernel': 'logits/kernel', 'logits/bias': 'logits/bias'}
  tolerance = gradient_tolerance = training_tolerance = tf2verify.Tolerance(rtol=0.05, atol=0.02)
  activation = None
  kind = keras

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    layers = self.kind.layers
    dense = layers.Dense(3, self.activation, name='logits', dtype=_POLICY)
    logits = layers.Activation('linear', dtype='float32')
    return self.kind.Sequential([dense, logits], name='net')

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8))

  def make_labels(self):
    return np.array([0, 1, 2, 1], np.int64)

  def tf1_loss(self, outputs, labels):
    found = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=outputs, labels=labels)
    return tf.reduce_mean(found)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return self.kind.optimizers.Adam(0.01, epsilon=1e-8)


class MixedPrecisionTest(parameterized.TestCase):
  @parameterized.parameters(keras, tf_keras)
  def test_right(self, kind):
    names = {} if kind is tf_keras else {'variable_names': lambda self, name: 'net/' + name}
    case = type('Case', (Mixed,), {'kind': kind, **names})
    verdict = tf2verify.verify(case, _STAGES)
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    self.assertNotIn('untracked', verdict.to_text())

  @parameterized.parameters(keras, tf_keras)
  def test_an_activation_that_tf1_does_not_have(self, kind):
    names = {} if kind is tf_keras else {'variable_names': lambda self, name: 'net/' + name}
    case = type('Case', (Mixed,), {'kind': kind, 'activation': 'relu', **names})
    verdict = tf2verify.verify(case, ['zero_randomness'])
    self.assertIs(verdict.status, Status.FAILED)
    self.assertIn('Relu', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
