"""Tests of initial values that differ behind an earlier failure: told with their causes."""

import abc
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify import Status, time_for_diagnosis

v1 = tf.compat.v1
_STAGES = ('no_new_variables', 'variable_inventory', 'zero_randomness', 'seeded_constant')
_CONSTANT = 'starts second/bias with 0.5, tf1 with 0'
_SCALE = 'first/kernel starts with 1.633 times the values of tf1'


class _Two(tiny_models.OneModel, abc.ABC):
  """Two dense layers, by names of TF1; the first activation of the port is wrong."""

  right = staticmethod(tf.nn.tanh)
  activation = staticmethod(tf.nn.relu)
  kernel = 'glorot_uniform'
  bias = 0.0
  rate = 0.25

  def forward(self, inputs, training, activation, kernel, bias, rate):
    first = tf.keras.initializers.get(kernel)
    net = activation(v1.layers.dense(inputs, 5, kernel_initializer=first, name='first'))
    net = tf.nn.dropout(net, rate=rate) if training else net
    start = v1.constant_initializer(bias)
    return v1.layers.dense(net, 5, bias_initializer=start, name='second')

  def model(self, inputs, training):
    return self.forward(inputs, training, self.right, 'glorot_uniform', 0.0, 0.25)

  def port(self, inputs, training):
    given = self.activation, self.kernel, self.bias, self.rate
    return self.forward(inputs, training, *given)


class _Native(_Two, abc.ABC):
  """A port with names of its own, whose variable map is derived."""

  def make_tf2_layer(self):
    case = self

    class Net(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.a = tf.keras.layers.Dense(5, kernel_initializer=case.kernel)
        self.drop = tf.keras.layers.Dropout(case.rate)
        start = tf.keras.initializers.Constant(case.bias)
        self.b = tf.keras.layers.Dense(5, bias_initializer=start)

      def call(self, inputs, training=False):
        net = case.activation(self.a(inputs))
        return self.b(self.drop(net, training=training))

    return Net()


class StartsBeyondFailuresTest(parameterized.TestCase):
  def setUp(self):
    super().setUp()
    self.enter_context(mock.patch.object(time_for_diagnosis, '_LEAST_SECONDS', 600.0))

  def found(self, parent, status, failed=Status.FAILED, **settings):
    verdict = tf2verify.verify(type('Case', (parent,), settings), stages=_STAGES)
    known, text = {one.stage: one for one in verdict.stages}, verdict.to_text()
    self.assertEqual('entries derived from what' in text, parent is _Native, text)
    self.assertIs(known['zero_randomness'].status, failed, text)
    found = known['seeded_constant']
    self.assertIs(found.status, status, text)
    causes = found.diagnosis.causes if found.diagnosis else ()
    hints = [difference.hint for difference in found.differences]
    return ' '.join([*(cause.text for cause in causes), *hints]), text

  @parameterized.parameters(_Two, _Native)
  def test_right_initial_values_stay_blocked(self, parent):
    self.found(parent, Status.BLOCKED)

  @parameterized.parameters(_Two, _Native)
  def test_a_constant(self, parent):
    """Behind the wrong activation no numbers confirm the pair; but nothing else starts with 0.5."""
    said, text = self.found(parent, Status.FAILED, bias=0.5)
    self.assertIn(_CONSTANT, said, text)

  @parameterized.parameters(_Two, _Native)
  def test_a_scale(self, parent):
    said, text = self.found(parent, Status.FAILED, kernel='he_uniform')
    self.assertIn(_SCALE, said, text)

  @parameterized.parameters(_Two, _Native)
  def test_a_family(self, parent):
    said, text = self.found(parent, Status.FAILED, kernel='glorot_normal')
    self.assertIn('first/kernel is drawn from a different distribution', said, text)
    self.assertIn('truncated normal', said, text)

  @parameterized.parameters(_Two, _Native)
  def test_beside_a_mistake_of_the_stage(self, parent):
    said, text = self.found(parent, Status.FAILED, bias=0.5, rate=0.5)
    self.assertIn(_CONSTANT, said, text)
    self.assertIn('drops 0.25 of the elements in tf1 and 0.5 in the port', said, text)

  @parameterized.parameters(
    (_Two, _CONSTANT, {'bias': 0.5}), (_Native, _SCALE, {'kernel': 'he_uniform'})
  )
  def test_behind_a_slope_that_is_proven(self, parent, expected, starts):
    slopes = {
      'right': staticmethod(tf.nn.leaky_relu),
      'activation': staticmethod(lambda x: tf.nn.leaky_relu(x, 0.3)),
    }
    said, text = self.found(parent, Status.FAILED, **slopes, **starts)
    self.assertIn(expected, said, text)
    self.found(parent, Status.BLOCKED, **slopes)

  @parameterized.parameters(_Two, _Native)
  def test_without_an_earlier_failure(self, parent):
    right = {'activation': staticmethod(tf.nn.tanh)}
    said, text = self.found(parent, Status.FAILED, Status.PASSED, bias=0.5, **right)
    self.assertIn(_CONSTANT, said, text)
    self.found(parent, Status.PASSED, Status.PASSED, **right)


if __name__ == '__main__':
  absltest.main()
