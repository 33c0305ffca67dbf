"""Ports whose call has no argument `training`."""

import abc

import tensorflow as tf
import tf_keras
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class _Parts(tf_keras.Model):
  def __init__(self):
    super().__init__(name='port')
    self.hidden = tf_keras.layers.Dense(8, name='hidden')
    self.dropout = tf_keras.layers.Dropout(0.4)
    self.logits = tf_keras.layers.Dense(3, name='logits')

  def computed(self, inputs, training):
    return self.logits(self.dropout(self.hidden(inputs), training=training))


class _Renamed(_Parts):
  def call(self, inputs, is_training=False):
    return self.computed(inputs, is_training)


class _Without(_Parts):
  def call(self, inputs):
    return self.computed(inputs, None)


class _Told(_Parts):
  def call(self, inputs, training=False):
    return self.logits(self.hidden(inputs))  # the dropout is lost


class Dropping(tf2verify.EquivalenceCase, abc.ABC):
  port = _Without

  def build_tf1_graph(self, inputs, training):
    hidden = v1.layers.dense(inputs, 8, name='hidden')
    return v1.layers.dense(v1.layers.dropout(hidden, 0.4, training=training), 3, name='logits')

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))


class _Passing(Dropping, abc.ABC):
  def call_tf2_layer(self, layer, inputs, training):
    return layer(inputs)


class UntoldTrainingTest(absltest.TestCase):
  def _causes(self, base, port):
    case = type('Case', (base,), {'port': port})
    failure = tf2verify.verify(case, stages=['seeded_constant']).first_failure
    return [cause.text for cause in failure.diagnosis.causes]

  def test_it_is_the_cause(self):
    for port, fix in (
      (_Without, 'add it, def call(self, inputs, training=False), and pass it on'),
      (_Renamed, 'its is_training has another name: rename it to training'),
    ):
      with self.subTest(port=port.__name__):
        [cause] = self._causes(Dropping, port)
        self.assertRegex(
          cause, r"the port's call \(\S+untold_training_test.py:\d+\) has no argument"
        )
        self.assertIn(fix, cause)

  def test_it_is_not_where_the_port_is_told(self):
    for base, port in ((Dropping, _Told), (_Passing, _Renamed)):
      with self.subTest(port=port.__name__):
        [cause] = self._causes(base, port)
        self.assertIn('dropout', cause)


if __name__ == '__main__':
  absltest.main()
