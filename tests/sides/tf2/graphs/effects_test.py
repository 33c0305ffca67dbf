import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify.case import new_ladder


class Port(tf.keras.Model):
  """Reads `scale` in training alone, `weight` in its loss, and `calls` nowhere."""

  def __init__(self):
    super().__init__(name='port')
    self.scale = tf.Variable(2.0, name='scale')
    self.weight = tf.Variable(3.0, name='weight')
    self.calls = tf.Variable(0, trainable=False, name='calls')
    self.dead = tf.keras.layers.Dense(2, name='dead')
    self.seen = tf.keras.metrics.Mean(name='seen')

  def call(self, inputs, training=False):
    self.calls.assign_add(1)
    self.seen.update_state(self.dead(inputs))
    return inputs * self.scale if training else inputs * 1.0


class ReadInParts(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return inputs * 1.0

  def make_tf2_layer(self):
    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(outputs)

  def tf2_total_loss(self, layer, outputs, labels):
    return self.tf2_loss(outputs, labels) + layer.weight


class EagerPort(Port):
  def call(self, inputs, training=False):
    inputs.numpy()
    return super().call(inputs, training)


def effects_of(case):
  ladder = new_ladder(case, lambda _: None)
  tf2 = ladder.prepared().tf2
  names = [variable.name for variable in tf2.inventory().variables]
  return names, tf2.effects_of(names, None)


class PortEffectsTest(absltest.TestCase):
  def test_what_is_read_and_what_is_not(self):
    class Case(ReadInParts):
      pass

    names, found = effects_of(Case)
    self.assertContainsSubset({'calls', 'total', 'count', 'port/dead/kernel'}, names)
    self.assertEqual(set(found), {'scale', 'weight'})
    self.assertEqual(found['scale'].graph, 'port, training')
    self.assertEqual(found['weight'].reaches, 'the total loss')
    self.assertIn('layer.weight', found['weight'].source.code)

  def test_a_port_that_does_not_run_as_a_graph(self):
    class Eager(ReadInParts):
      def make_tf2_layer(self):
        return EagerPort()

    self.assertIsNone(effects_of(Eager)[1])


if __name__ == '__main__':
  absltest.main()
