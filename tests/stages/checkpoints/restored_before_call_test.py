"""Layers of Keras 3 that are restored before their first call."""

import abc

import keras
from absl.testing import absltest, parameterized

import tf2verify

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
STAGE = 'checkpoint'
Status = tf2verify.Status


class Recurrent(keras.Model):
  """A plain GRU in an attribute, or one for each direction."""

  def __init__(self, both_ways):
    super().__init__(name='port')
    gru = keras.layers.GRU(3, return_sequences=True, reset_after=False, name='gru')
    self.rnn = keras.layers.Bidirectional(gru, name='rnn') if both_ways else gru

  def call(self, inputs):
    return self.rnn(inputs)


class RecurrentCase(tf2verify.EquivalenceCase, abc.ABC):
  both_ways = False

  def build_tf1_graph(self, inputs, training):
    make = v1.nn.rnn_cell.GRUCell
    if not self.both_ways:
      return v1.nn.dynamic_rnn(make(3), inputs, dtype=tf.float32)[0]
    states, _ = v1.nn.bidirectional_dynamic_rnn(make(3), make(3), inputs, dtype=tf.float32)
    return tf.concat(states, -1)

  def make_tf2_layer(self):
    return Recurrent(self.both_ways)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 4, 5))


def checkpoint_of(case):
  return tf2verify.verify(case, stages=[STAGE]).stages[-1]


class RestoredBeforeCallTest(parameterized.TestCase):
  @parameterized.parameters(False, True)
  def test_a_right_port_is_not_blamed(self, two):
    class Case(RecurrentCase):
      both_ways = two

    found = checkpoint_of(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    spots = ' '.join(found.blind_spots)
    self.assertIn('restored before its first call raises in it: ', spots)
    self.assertIn("'GRUCell' object has no attribute 'kernel'", found.to_text())
    self.assertIn('call the port once before it is restored', spots)
    self.assertNotIn(r'\x1b', found.to_text())

  @parameterized.parameters(False, True)
  def test_a_file_with_another_value_fails(self, two):
    class Case(RecurrentCase):
      both_ways = two

      def save_tf2_checkpoint(self, layer, path):
        variable = layer.trainable_variables[1].value
        value = variable.numpy()
        variable.assign(tf.zeros_like(variable))
        written = tf.train.Checkpoint(model=layer).write(path)
        variable.assign(value)
        return written

    found = checkpoint_of(Case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn("value restored from the port's checkpoint", found.to_text())

  def test_a_file_without_the_weights_fails(self):
    class Case(RecurrentCase):
      def save_tf2_checkpoint(self, layer, path):
        return tf.train.Checkpoint(step=tf.Variable(1)).write(path)

    found = checkpoint_of(Case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('not restored', found.to_text())


if __name__ == '__main__':
  absltest.main()
