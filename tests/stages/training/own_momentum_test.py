"""Momentum that a port writes itself, under whatever word and in whatever unit."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.trained_sides import RATE, Trained

v1 = tf.compat.v1
STAGE = 'training_steps'
MOMENTUM = 0.9


class Own:
  """Adds up gradients, times a factor, under a word."""

  def __init__(self, word='acc', unit=1.0, momentum=MOMENTUM):
    self.word, self.unit, self.momentum = word, unit, momentum
    self.count = tf.Variable(0, dtype=tf.int64, trainable=False)
    setattr(self, word, [])

  def rate(self):
    return RATE

  def apply(self, gradients, variables):
    kept = getattr(self, self.word)
    if not kept:
      kept.extend(tf.Variable(tf.zeros_like(v), trainable=False) for v in variables)
    rate = self.rate()
    for gradient, variable, one in zip(gradients, variables, kept, strict=True):
      one.assign(self.momentum * one + self.unit * gradient)
      variable.assign_sub(rate / self.unit * one)
    self.count.assign_add(1)


class TooEarly(Own):
  """Goes on to the next rate at a boundary, where TF1 does behind it."""

  def rate(self):
    return tf.where(self.count < 1, 0.1, tf.where(self.count < 3, 0.05, 0.01))


class InTime(Own):
  """Goes on to the next rate where TF1 does."""

  def rate(self):
    return tf.where(self.count <= 1, 0.1, tf.where(self.count <= 3, 0.05, 0.01))


class Momentum(Trained, abc.ABC):
  training_steps_to_take = 3

  def make_tf1_train_op(self, loss):
    return v1.train.MomentumOptimizer(RATE, MOMENTUM).minimize(
      loss, v1.train.get_or_create_global_step()
    )

  def make_tf2_optimizer(self):
    return Own()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


class NesterovLost(Momentum, abc.ABC):
  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.piecewise_constant(step, [1, 3], [0.1, 0.05, 0.01])
    optimizer = v1.train.MomentumOptimizer(rate, MOMENTUM, use_nesterov=True)
    return optimizer.minimize(loss, step)

  def make_tf2_optimizer(self):
    return InTime()


class Boundaries(Momentum, abc.ABC):
  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.piecewise_constant(step, [1, 3], [0.1, 0.05, 0.01])
    return v1.train.MomentumOptimizer(rate, MOMENTUM).minimize(loss, step)

  def make_tf2_optimizer(self):
    return TooEarly()


def case(*arguments):
  class Case(Momentum):
    def make_tf2_optimizer(self):
      return Own(*arguments)

  return Case


class WithoutOne(Trained, abc.ABC):
  """Whose port leaves one variable out of its step."""

  left_out = 'bias'

  def make_tf1_train_op(self, loss):
    return v1.train.AdamOptimizer(RATE).minimize(loss)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(RATE, epsilon=1e-8)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    kept = [v for v in layer.trainable_variables if self.left_out not in v.name]
    optimizer.apply_gradients(zip(tape.gradient(loss, kept), kept, strict=True))
    return loss


class WithoutAll(WithoutOne, abc.ABC):
  """Whose port keeps no moments at all."""

  left_out = 'nothing'

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(RATE)


def text_of(test, case_class, status):
  verdict = tf2verify.verify(type('Case', (case_class,), {}), stages=[STAGE])
  test.assertIs(verdict.stages[-1].status, status, verdict.to_text())
  return verdict.to_text()


class WordsTest(absltest.TestCase):
  """A word that other optimizers have for something else says nothing against the numbers."""

  def test_right_ports(self):
    passed = tf2verify.Status.PASSED
    for arguments in (('acc',), ('velocity',), ('v',), ('accumulator', -RATE), ('buf', RATE)):
      with self.subTest(str(arguments)):
        text = text_of(self, case(*arguments), passed)
        for note in ('only tf1', 'only tf2', 'do not show'):
          self.assertNotIn(note, text)

  def test_another_momentum(self):
    for arguments in (('acc', 1.0, 0.8), ('velocity', 1.0, 0.8)):
      with self.subTest(str(arguments)):
        text = text_of(self, case(*arguments), tf2verify.Status.FAILED)
        self.assertIn('slot momentum of kernel', text)
        self.assertNotIn('only tf', text)


class BoundariesTest(absltest.TestCase):
  def test_rates_are_those_of_the_port_as_it_is(self):
    """Not of a port that was edited, and goes wrong in a later step for that reason."""
    text = text_of(self, Boundaries, tf2verify.Status.FAILED)
    self.assertIn('update kernel [step 2]', text)
    self.assertIn('first divergence', text)
    self.assertNotIn('0.05 (tf1), 0.1 (tf2)', text)
    self.assertNotIn('the port has the values of tf1 times 2', text)
    self.assertIn('Less is Less in the port; with LessEqual it yields what tf1 does', text)
    self.assertIn('own_momentum_test.py:', text)


class NesterovTest(absltest.TestCase):
  def test_it_is_lost(self):
    """In the first step the momentum is the gradient, and in the third the rate is another one."""
    text = ' '.join(text_of(self, NesterovLost, tf2verify.Status.FAILED).split())
    self.assertIn('cause (proven: with it TF1 computes the updates of the port', text)
    self.assertIn("with the momentum itself, without Nesterov's", text)
    self.assertIn('tf1 computes Mul → Mul(y=0.9) → Mul → AddV2; the same at 1 more', text)
    self.assertNotIn('no known mistake', text)


class VariablesTest(absltest.TestCase):
  def test_slots_of_the_variable_that_the_port_leaves_out(self):
    text = text_of(self, WithoutOne, tf2verify.Status.FAILED)
    self.assertIn('only tf1 keeps first moment, second moment of bias: not compared', text)

  def test_of_all_variables(self):
    text = text_of(self, WithoutAll, tf2verify.Status.FAILED)
    self.assertIn('only tf1 keeps first moment, second moment: not compared', text)


if __name__ == '__main__':
  absltest.main()
