"""Rates of a count that was raised before they are computed; in steps that do not all update."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.training.accumulated_in_python_test import Accumulated

v1 = tf.compat.v1
_EVERY = 2


class _Accumulating:
  """Adds up gradients, and applies them with momentum and a falling rate in every second step."""

  def __init__(self, less):
    self.count = tf.Variable(0, dtype=tf.int64, trainable=False)
    self.less = less
    self.sums, self.momentum = [], []

  def step(self, gradients, variables):
    if not self.sums:
      for slots, name in ((self.sums, 'sum'), (self.momentum, 'momentum')):
        slots += [tf.Variable(tf.zeros(v.shape), name=name, trainable=False) for v in variables]
    for known, gradient in zip(self.sums, gradients, strict=True):
      known.assign_add(gradient)
    self.count.assign_add(1)
    if self.count % _EVERY:
      return
    updates = self.count // _EVERY
    updates = updates - 1 if self.less else updates
    rate = 0.1 * tf.pow(0.8, tf.cast(updates, tf.float32))
    for variable, known, slot in zip(variables, self.sums, self.momentum, strict=True):
      slot.assign(0.9 * slot + known / _EVERY)
      variable.assign_sub(rate * slot)
      known.assign(tf.zeros(known.shape))


class Counted(Accumulated, abc.ABC):
  training_steps_to_take = 6
  less = 1

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    micro = v1.get_variable('micro', [], tf.int64, v1.zeros_initializer(), trainable=False)
    optimizer = v1.train.MomentumOptimizer(0.1 * tf.pow(0.8, tf.cast(step, tf.float32)), 0.9)
    trained = v1.trainable_variables()
    sums = [
      v1.get_variable(v.op.name + '/sum', v.shape, initializer=tf.zeros, trainable=False)
      for v in trained
    ]
    adds = [
      v1.assign_add(known, gradient)
      for known, gradient in zip(sums, tf.gradients(loss, trained), strict=True)
    ]

    def apply():
      means = [known.read_value() / _EVERY for known in sums]
      applied = optimizer.apply_gradients(zip(means, trained, strict=True), step)
      with tf.control_dependencies([applied]):
        return tf.group(*[v1.assign(known, tf.zeros(known.shape)) for known in sums])

    with tf.control_dependencies([*adds, v1.assign_add(micro, 1)]):
      return tf.cond(tf.equal(micro.read_value() % _EVERY, 0), apply, tf.no_op)

  def make_tf2_optimizer(self):
    return _Accumulating(self.less)


class FloatCount(Counted, abc.ABC):
  """Without accumulation: a rate and a correction of one count of floating type."""

  before = True

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.01, step, 1, 0.98)
    return v1.train.AdamOptimizer(rate, 0.9, 0.99).minimize(loss, step)

  def make_tf2_optimizer(self):
    return {'n': tf.Variable(0.0, trainable=False), 'm': [], 'v': []}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = [one.value for one in layer.trainable_variables]
    if not optimizer['m']:
      for key in 'mv':
        optimizer[key] += [tf.Variable(tf.zeros(v.shape), name=key) for v in variables]
    n = optimizer['n']
    rate = 0.01 * tf.pow(0.98, n)
    n.assign_add(1.0)
    if not self.before:
      rate = 0.01 * tf.pow(0.98, n)
    rate = rate * tf.sqrt(1.0 - tf.pow(0.99, n)) / (1.0 - tf.pow(0.9, n))
    gradients = tape.gradient(loss, variables)
    slots = zip(gradients, variables, optimizer['m'], optimizer['v'], strict=True)
    for gradient, variable, first, second in slots:
      first.assign(0.9 * first + 0.1 * gradient)
      second.assign(0.99 * second + 0.01 * gradient**2)
      variable.assign_sub(rate * first / (tf.sqrt(second) + 1e-8))
    return loss


def _training(parent, **hooks):
  verdict = tf2verify.verify(type('Case', (parent,), hooks), ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class CountedUpdatesTest(parameterized.TestCase):
  @parameterized.parameters(Counted, FloatCount)
  def test_right_ports_pass(self, parent):
    stage = _training(parent)
    self.assertTrue(stage.passed, stage.to_text())

  def test_a_count_of_updates_that_is_one_more(self):
    stage = _training(Counted, less=0)
    self.assertFalse(stage.passed)
    cause = stage.diagnosis.causes[0]
    self.assertTrue(cause.is_proven, stage.to_text())
    self.assertIn('and the count minus 1 in tf1', cause.text)

  def test_a_count_that_is_read_after_it_was_raised(self):
    stage = _training(FloatCount, before=False)
    self.assertFalse(stage.passed)
    cause = stage.diagnosis.causes[0]
    self.assertTrue(cause.is_proven, stage.to_text())
    self.assertIn('as it is after its update in the port; as it is before the update', cause.text)


if __name__ == '__main__':
  absltest.main()
