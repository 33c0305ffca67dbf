"""Two optimizers, of which the port's first one tells no rate."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Descent:
  """An optimizer that tells nothing."""

  def __init__(self, step):
    self.step = step

  def apply(self, gradients, variables):
    for gradient, variable in zip(gradients, variables, strict=True):
      variable.assign_sub(self.step * gradient)


class WideAndDeep(tf2verify.EquivalenceCase, abc.ABC):
  wide_rate = deep_rate = None

  def build_tf1_graph(self, inputs, training):
    deep = v1.layers.dense(inputs, 4, tf.nn.relu, name='hidden')
    return v1.layers.dense(inputs, 1, name='wide') + v1.layers.dense(deep, 1, name='deep')

  def make_tf2_layer(self):
    class Port(keras.Model):
      def __init__(self):
        super().__init__(name='port')
        self.hidden = keras.layers.Dense(4, 'relu', name='hidden')
        self.deep = keras.layers.Dense(1, name='deep')
        self.wide = keras.layers.Dense(1, name='wide')

      def call(self, inputs):
        return self.wide(inputs) + self.deep(self.hidden(inputs))

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 1), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    wide = v1.trainable_variables('wide')
    deep = [one for one in v1.trainable_variables() if one not in wide]
    return tf.group(
      v1.train.GradientDescentOptimizer(0.2).minimize(loss, var_list=wide),
      v1.train.GradientDescentOptimizer(0.05).minimize(loss, var_list=deep),
    )

  def make_tf2_optimizer(self):
    return Descent(self.wide_rate), keras.optimizers.SGD(self.deep_rate)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    wide = layer.wide.trainable_variables
    deep = layer.hidden.trainable_variables + layer.deep.trainable_variables
    of_wide, of_deep = tape.gradient(loss, [wide, deep])
    optimizer[0].apply(of_wide, wide)
    optimizer[1].apply_gradients(zip(of_deep, deep, strict=True))
    return loss


class UnknownOptimizersTest(absltest.TestCase):
  def _verdict(self, wide, deep):
    case = type('Case', (WideAndDeep,), {'wide_rate': wide, 'deep_rate': deep})
    return tf2verify.verify(case, stages=['training_steps'])

  def test_the_rate_of_the_other_one_is_not_compared_with_it(self):
    verdict = self._verdict(0.2, 0.05)
    self.assertTrue(verdict.passed, verdict.to_text())
    self.assertIn('the learning rate is not known on the tf2 side', verdict.to_text())

  def test_a_wrong_rate_of_either_shows_in_the_updates(self):
    for rates, name in (((0.1, 0.05), 'wide/kernel'), ((0.2, 0.1), 'deep/kernel')):
      failure = self._verdict(*rates).first_failure
      wrong = [known.tf1_subject for known in failure.differences if known.quantity == 'update']
      self.assertIn(name, wrong)

  def test_one_optimizer_for_two_of_one_rate_is_compared(self):
    def constant(self, loss):
      parts = v1.trainable_variables('wide'), v1.trainable_variables('hidden|deep')
      return tf.group(
        *(v1.train.GradientDescentOptimizer(0.1).minimize(loss, var_list=part) for part in parts)
      )

    def later(self, loss, counts=True):
      count = v1.train.get_or_create_global_step()

      def step(scope, counted=None):
        rate = v1.train.piecewise_constant(count, [999], [0.1, 0.01])
        parts = v1.trainable_variables(scope)
        return v1.train.GradientDescentOptimizer(rate).minimize(loss, counted, var_list=parts)

      first = step('wide')
      with tf.control_dependencies([first]):
        return step('hidden|deep', count if counts else None)

    def uncounted(self, loss):
      return later(self, loss, counts=False)

    def step(self, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = self.tf2_loss(layer(inputs), labels)
      variables = layer.trainable_variables
      optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
      return loss

    schedules = keras.optimizers.schedules
    decay = schedules.PiecewiseConstantDecay([999], [0.1, 0.01])
    for train_op, rate, passes, said in (
      (constant, 0.1, True, ''),
      (constant, decay, False, 'the learning rates of TF1 are constant'),
      (later, decay, True, ''),
      (later, 0.1, False, 'end at different values: 0.01 in TF1 and 0.1'),
      (uncounted, 0.1, True, ''),
      (uncounted, decay, False, 'the steps of TF1 do not count'),
    ):
      hooks = {
        'make_tf1_train_op': train_op,
        'make_tf2_optimizer': lambda _, rate=rate: keras.optimizers.SGD(rate),
        'tf2_train_step': step,
      }
      verdict = tf2verify.verify(type('Case', (WideAndDeep,), hooks), stages=['training_steps'])
      with self.subTest(train_op=train_op.__name__, passes=passes):
        self.assertEqual(verdict.passed, passes, verdict.to_text())
        self.assertIn(said, ' '.join(verdict.to_text().split()))


if __name__ == '__main__':
  absltest.main()
