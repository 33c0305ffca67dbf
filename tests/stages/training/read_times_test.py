"""Steps of which one side reads variables before their update, and the other one after it."""

import abc
from unittest import mock

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.diagnosis import diagnose
from tf2verify.diagnosis.steps.read_times import RULE

v1 = tf.compat.v1
_RATE, _DECAY = 0.1, 0.9


def _logits(x, kernel, bias):
  return tf.matmul(x, kernel) + bias


def _loss(logits):
  return tf.reduce_mean(tf.nn.softplus(logits))


class Adversaries(tf2verify.EquivalenceCase, abc.ABC):
  """Two models that are trained against each other, one of them with an average of its weights."""

  training_modes = (True,)
  variable_names = {
    'g': 'port/g',
    'd/kernel': 'port/d_kernel',
    'd/bias': 'port/d_bias',
    'average': 'port/average',
  }
  # In which order each side takes its steps.
  tf1_alternates = tf2_alternates = False
  tf1_averages_old = tf2_averages_old = False
  tf2_returns_new = False

  def build_tf1_graph(self, inputs, training):
    self.noise = inputs['noise']
    self.g = v1.get_variable('g', [3, 4])
    self.average = v1.get_variable('average', [3, 4], trainable=False)
    with v1.variable_scope('d'):
      self.d = v1.get_variable('kernel', [4, 2]), v1.get_variable('bias', [2])
    made = tf.matmul(self.noise, self.g)
    return {'made': _logits(made, *self.d), 'real': _logits(inputs['real'], *self.d)}

  def make_tf2_layer(self):
    class Port(keras.layers.Layer):
      def build(self, shape):
        self.g = self.add_weight(shape=(3, 4), name='g')
        self.average = self.add_weight(shape=(3, 4), name='average', trainable=False)
        self.d_kernel = self.add_weight(shape=(4, 2), name='d_kernel')
        self.d_bias = self.add_weight(shape=(2,), name='d_bias')

      def call(self, inputs):
        made = tf.matmul(inputs['noise'], self.g)
        d = self.d_kernel, self.d_bias
        return {'made': _logits(made, *d), 'real': _logits(inputs['real'], *d)}

    return Port(name='port')

  def make_inputs(self):
    real = tf2verify.normal_inputs((5, 4), seed=3)
    return {'noise': tf2verify.normal_inputs((5, 3)), 'real': real}

  def make_labels(self):
    return tf2verify.normal_inputs((5, 1), seed=4)

  def tf1_loss(self, outputs, labels):
    return _loss(outputs['made']) - _loss(outputs['real'] * labels)

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(_RATE)
    of_d = optimizer.compute_gradients(loss, list(self.d))
    of_g = optimizer.compute_gradients(-loss, [self.g])
    with tf.control_dependencies([g for g, _ in (*of_d, *of_g)]):
      old = tf.identity(self.g)
      with tf.control_dependencies([old]):
        trained = optimizer.apply_gradients(of_d)
    with tf.control_dependencies([trained]):
      if self.tf1_alternates:
        made = tf.matmul(self.noise, self.g)
        judged = _loss(_logits(made, *(one.read_value() for one in self.d)))
        of_g = optimizer.compute_gradients(-judged, [self.g])
      done = optimizer.apply_gradients(of_g)
    with tf.control_dependencies([done]):
      read = old if self.tf1_averages_old else self.g.read_value()
      return v1.assign_sub(self.average, (1.0 - _DECAY) * (self.average - read))

  def make_tf2_optimizer(self):
    return [tf.Variable(0.0)]

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    of_d = [layer.d_kernel.value, layer.d_bias.value]
    with tf.GradientTape(persistent=True) as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
      reverse = -loss
    of_g = tape.gradient(reverse, layer.g.value)
    old = tf.identity(layer.g.value)
    for variable, gradient in zip(of_d, tape.gradient(loss, of_d), strict=True):
      variable.assign_sub(_RATE * gradient)
    if self.tf2_alternates:
      with tf.GradientTape() as tape:
        reverse = -_loss(layer(inputs, training=True)['made'])
      of_g = tape.gradient(reverse, layer.g.value)
    layer.g.value.assign_sub(_RATE * of_g)
    read = old if self.tf2_averages_old else layer.g.value
    layer.average.value.assign_sub((1.0 - _DECAY) * (layer.average.value - read))
    return self.tf2_loss(layer(inputs), labels) if self.tf2_returns_new else loss


def _trained(**hooks):
  verdict = tf2verify.verify(type('Case', (Adversaries,), hooks), ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class ReadTimesTest(parameterized.TestCase):
  @parameterized.parameters(
    {},
    {'tf1_alternates': True, 'tf2_alternates': True},
    {'tf1_averages_old': True, 'tf2_averages_old': True},
  )
  def test_right(self, **hooks):
    found = _trained(**hooks)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())

  @parameterized.parameters(
    ('tf2_alternates', 'the port computes the update of g, average from d/', 'before the update'),
    ('tf1_alternates', 'TF1 computes the update of g, average from d/', 'after the update'),
    ('tf2_averages_old', 'TF1 computes the update of average from g after', 'after the update'),
    ('tf1_averages_old', 'the port computes the update of average from g after', 'before the'),
    ('tf2_returns_new', 'the port computes the loss that the step returns from', 'before the'),
  )
  def test_other_order(self, hook, said, when):
    found = _trained(**{hook: True})
    self.assertIs(found.status, tf2verify.Status.FAILED)
    first = found.diagnosis.causes[0]
    self.assertEqual(first.rule, RULE, found.to_text())
    self.assertTrue(first.numbers)
    self.assertIn(said, first.text)
    self.assertIn(f'from the values {when}', first.text)

  def test_a_fault_of_the_search_is_told(self):
    with mock.patch.object(diagnose, 'read_times', side_effect=TypeError('planted')):
      found = _trained(tf2_returns_new=True)
    self.assertIs(found.status, tf2verify.Status.FAILED)
    self.assertIn('were not looked for: TypeError: planted', ' '.join(found.to_text().split()))

  def test_another_mistake_besides_is_not_explained_so(self):
    class Other(Adversaries):
      tf2_alternates = True

      def tf2_loss(self, outputs, labels):
        return 1.5 * super().tf2_loss(outputs, labels)

    found = tf2verify.verify(Other, ['training_steps']).first_failure
    rules = {cause.rule for cause in found.diagnosis.causes}
    self.assertNotIn(RULE, rules, found.to_text())


if __name__ == '__main__':
  absltest.main()
