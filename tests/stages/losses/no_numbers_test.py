"""Losses that are NaN at outputs which a model never has."""

import abc

import tensorflow as tf
import tf_keras
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_FREE = 0.05


class Correlated(tf2verify.EquivalenceCase, abc.ABC):
  """A correlation near 1 divides by zero, and free bits are not reached by the model's outputs."""

  wrong = False
  greatest = 1.0
  scale = 0.5

  def _outputs(self, hidden):
    correlation = self.scale * hidden / (tf.abs(hidden) + 1e-3)
    return {'correlation': correlation[:, :2], 'mean': 3.0 + 0.1 * hidden[:, 2:]}

  def build_tf1_graph(self, inputs, training):
    return self._outputs(v1.layers.dense(inputs, 4, name='hidden'))

  def make_tf2_layer(self):
    outputs = self._outputs

    class Port(tf_keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.hidden = tf_keras.layers.Dense(4, name='hidden')

      def call(self, inputs):
        return outputs(self.hidden(inputs))

    return Port()

  def make_inputs(self):
    return 0.1 * tf2verify.normal_inputs((4, 5))

  def _costs(self, outputs):
    # Not a number beyond ±`greatest`.
    likelihood = tf.reduce_mean(tf.sqrt(self.greatest**2 - outputs['correlation'] ** 2))
    return likelihood, 0.5 * outputs['mean'] ** 2

  def tf1_loss(self, outputs, labels):
    likelihood, divergence = self._costs(outputs)
    return {'cost': likelihood, 'kl': tf.maximum(tf.reduce_mean(divergence), _FREE)}

  def tf2_loss(self, outputs, labels):
    likelihood, divergence = self._costs(outputs)
    if self.wrong:
      return {'cost': likelihood, 'kl': tf.reduce_mean(tf.maximum(divergence, _FREE))}
    return {'cost': likelihood, 'kl': tf.maximum(tf.reduce_mean(divergence), _FREE)}


class NoNumbersTest(absltest.TestCase):
  def _verdict(self, **body):
    return tf2verify.verify(type('Case', (Correlated,), body), stages=['loss'])

  def test_smaller_outputs_are_tried(self):
    for wrong in (False, True):
      verdict = self._verdict(wrong=wrong)
      with self.subTest(wrong=wrong):
        self.assertEqual(verdict.passed, not wrong, verdict.to_text())
    self.assertIn('the losses differ only on: small normal outputs', verdict.to_text())

  def test_that_none_has_a_number_is_a_blind_spot(self):
    said = "both losses are NaN at all outputs that were tried besides the model's own"
    for scale, greatest, is_said in ((0.5, 1.0, False), (0.01, 0.0101, True)):
      text = ' '.join(self._verdict(scale=scale, greatest=greatest).to_text().split())
      with self.subTest(scale=scale):
        self.assertEqual(said in text, is_said, text)


if __name__ == '__main__':
  absltest.main()
