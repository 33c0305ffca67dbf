"""Two optimizers whose variables overlap on one side alone."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides.trained_sides import Trained

v1 = tf.compat.v1


class _TwoAdams(Trained, abc.ABC):
  """The kernel is trained by one loss, the bias by another."""

  twice = ''
  order = 1  # -1: the second optimizer updates first
  rates = (0.01, 0.03)
  training_steps_to_take = 2

  def make_tf1_train_op(self, loss):
    known = {variable.op.name: variable for variable in v1.trainable_variables()}
    names = {name.rpartition('/')[2]: name for name in known}
    kernel, bias = known[names['kernel']], known[names['bias']]
    penalty = tf.reduce_sum(tf.square(kernel)) + tf.reduce_sum(tf.square(bias))
    first = v1.train.AdamOptimizer(0.01).minimize(loss, var_list=[kernel])
    with tf.control_dependencies([first]):
      return v1.train.AdamOptimizer(0.03).minimize(penalty, var_list=[bias])

  def make_tf2_optimizer(self):
    return [tf.keras.optimizers.Adam(rate, epsilon=1e-8) for rate in self.rates]

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    kernel, bias = sorted(layer.trainable_variables, key=lambda v: -len(v.shape))
    with tf.GradientTape(persistent=True) as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
      penalty = tf.reduce_sum(tf.square(kernel)) + tf.reduce_sum(tf.square(bias))
    pairs = [
      ([kernel, bias] if self.twice == 'bias' else [kernel], loss),
      ([bias, kernel] if self.twice == 'kernel' else [bias], penalty),
    ]
    gradients = [tape.gradient(what, variables) for variables, what in pairs]
    updates = list(zip(optimizer, pairs, gradients, strict=True))
    for one, (variables, _), its in updates[:: self.order]:
      one.apply_gradients(zip(its, variables, strict=True))
    return loss


def _verdict(**members):
  case = type('Case', (_TwoAdams,), members)
  return tf2verify.verify(case, stages=['training_steps']).stages[-1]


class OverlappingOptimizersTest(parameterized.TestCase):
  def test_right_port(self):
    verdict = _verdict()
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_updates_in_the_other_order(self):
    verdict = _verdict(order=-1)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  @parameterized.parameters(1, -1)
  def test_another_rate(self, order):
    for rates in ((0.03, 0.01), (0.03, 0.03), (0.01, 0.01)):
      with self.subTest(rates=rates):
        verdict = _verdict(order=order, rates=rates)
        self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
        self.assertRegex(verdict.to_text(), 'learning.rate')

  @parameterized.parameters('kernel', 'bias')
  def test_one_more_variable_for_an_optimizer(self, name):
    """The bias has so few elements that a fitted weight decay explained any step of it."""
    verdict = _verdict(twice=name)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    first = next(line for line in verdict.to_text().splitlines() if 'cause' in line)
    self.assertRegex(first, f'{name}: the port updates it with one more of its optimizers')
    self.assertNotIn('weight_decay', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
