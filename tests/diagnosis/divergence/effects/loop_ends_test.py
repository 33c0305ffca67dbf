"""Tests of loops that end for an example on one side alone, as the ladder sees them."""

import keras
import numpy as np
import tensorflow as tf
import tf_keras
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class _Port(keras.layers.Layer):
  """The last output of an LSTM, read in one of several ways."""

  def __init__(self, reads='mask', **arguments):
    super().__init__(name='net')
    self.reads = reads
    whole = {'return_sequences': True} if reads == 'gather' else {}
    self.rnn = keras.layers.LSTM(3, name='rnn', **whole)
    self.fc = keras.layers.Dense(2, name='fc', **arguments)

  def call(self, inputs):
    steps, lengths = inputs['steps'], inputs['lengths']
    mask = tf.sequence_mask(lengths, tf.shape(steps)[1]) if self.reads == 'mask' else None
    net = self.rnn(steps, mask=mask)
    if self.reads == 'gather':
      net = tf.gather(net, lengths - 1, axis=1, batch_dims=1)
    return self.fc(net)


def _case(port, lengths=(4, 2), tf1_lengths=True):
  class Case(tf2verify.EquivalenceCase):
    training_modes = (False,)

    def build_tf1_graph(self, inputs, training):
      cell = tf_keras.layers.LSTMCell(3, name='cell')
      ends = inputs['lengths'] if tf1_lengths else None
      _, state = v1.nn.dynamic_rnn(cell, inputs['steps'], ends, dtype=tf.float32)
      return v1.layers.dense(state[0], 2, name='fc')

    def make_tf2_layer(self):
      return port()

    def make_inputs(self):
      steps = tf2verify.normal_inputs((2, 4, 3))
      return {'steps': steps, 'lengths': np.array(lengths, np.int32)}

  return Case


class LoopEndsTest(absltest.TestCase):
  def causes(self, case):
    verdict = tf2verify.verify(case, stages=['zero_randomness'])
    failure = verdict.first_failure
    self.assertIsNotNone(failure, verdict.to_text())
    self.text = failure.to_text()
    return failure.diagnosis.causes

  def test_forgotten_mask_is_proven_and_the_unread_input_is_no_second_cause(self):
    (cause,) = self.causes(_case(lambda: _Port('nothing')))
    self.assertEqual(cause.rule, 'forgotten_mask')
    self.assertTrue(cause.is_proven)
    self.assertRegex(cause.text, r"\(the input \['lengths'\], loop_ends_test\.py:\d+\)")
    self.assertNotIn('has to take the input', self.text)
    self.assertNotIn('none of the corrections', self.text)

  def test_mask_that_tf1_has_not_is_proven(self):
    (cause,) = self.causes(_case(_Port, tf1_lengths=False))
    self.assertEqual((cause.rule, cause.is_proven), ('needless_mask', True))

  def test_loop_of_tf1_that_ends_with_the_longest_example_is_likely(self):
    cause, *_ = self.causes(_case(lambda: _Port('nothing'), lengths=(3, 2)))
    self.assertEqual((cause.rule, cause.is_proven), ('forgotten_mask', False))

  def test_masked_outputs_do_not_hide_that_another_mistake_is_left(self):
    hidden = tf.constant([0.0, -1e30])

    class Case(_case(_Port)):
      def build_tf1_graph(self, inputs, training):
        return super().build_tf1_graph(inputs, training) + hidden.numpy()

      def call_tf2_layer(self, layer, inputs, training):
        return layer(inputs) * 1.1 + hidden

    self.causes(Case)
    self.assertNotIn('goes on to the last step', self.text)
    self.assertIn('1.1', self.text)

  def test_small_mistake_in_masked_outputs(self):
    """Beside the mask, no more than rounding is left of it, with all steps and without."""
    hidden = tf.constant([0.0, -1e9])

    class Case(_case(lambda: _Port('gather'))):
      def build_tf1_graph(self, inputs, training):
        cell, ends = tf_keras.layers.LSTMCell(3, name='cell'), inputs['lengths']
        net, _ = v1.nn.dynamic_rnn(cell, inputs['steps'], ends, dtype=tf.float32)
        net = tf.gather(net, ends - 1, axis=1, batch_dims=1)  # nothing reads the padding
        return v1.layers.dense(net, 2, name='fc') + 1.0 + hidden.numpy()

      def call_tf2_layer(self, layer, inputs, training):
        return layer(inputs) + 1.0002 + hidden

    self.causes(Case)
    self.assertNotIn('goes on to the last step', self.text)

  def test_last_output_that_is_gathered_is_not_blamed_for_another_mistake(self):
    self.assertIsNone(
      tf2verify.verify(_case(lambda: _Port('gather')), stages=['zero_randomness']).first_failure
    )
    for port in (lambda: _Port('gather', activation='tanh'), lambda: _Port(activation='tanh')):
      rules = {cause.rule for cause in self.causes(_case(port))}
      self.assertEmpty(rules & {'forgotten_mask', 'needless_mask'}, self.text)


if __name__ == '__main__':
  absltest.main()
