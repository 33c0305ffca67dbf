"""An output that is another result of a loop than in tf1."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_UNITS = 4


class _Recurrent(keras.Model):
  def __init__(self):
    super().__init__(name='net')
    self.lstm = keras.layers.LSTM(
      _UNITS,
      return_sequences=True,
      return_state=True,
      unit_forget_bias=False,
      recurrent_initializer='glorot_uniform',
      name='lstm',
    )

  def call(self, inputs):
    out, _, cell = self.lstm(inputs)
    return {'sum': tf.reduce_sum(out, 1), 'h': cell}


class ReturnedStateTest(absltest.TestCase):
  def test_the_state_of_the_cell_for_its_output(self):
    class Case(tf2verify.EquivalenceCase):
      variable_map = 'derive'

      def build_tf1_graph(self, inputs, training):
        with v1.variable_scope('net'):
          cell = v1.nn.rnn_cell.LSTMCell(_UNITS, name='lstm')
          out, state = v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
          return {'sum': tf.reduce_sum(out, 1), 'h': state.h}

      def make_tf2_layer(self):
        return _Recurrent()

      def make_inputs(self):
        return tf2verify.normal_inputs((3, 5, 2))

    verdict = tf2verify.verify(Case, ['zero_randomness'])
    failed = verdict.first_failure
    self.assertEqual(failed.stage, 'zero_randomness', verdict.to_text())
    (cause,) = failed.diagnosis.causes
    self.assertTrue(cause.is_proven, cause.text)
    self.assertRegex(
      cause.text, r"output \['h'\] is \S*add_1 in the port; in tf1 it is \S*mul_2, which the port "
    )
    self.assertRegex(cause.text, r'which the port computes as \S*mul_2\b')


if __name__ == '__main__':
  absltest.main()
