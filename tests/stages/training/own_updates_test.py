"""Mistakes in update rules that a port writes itself: each is proven, with what TF1 computes."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.sides.trained_sides import Trained

v1 = tf.compat.v1
STAGE = 'training_steps'
DECAY, MOMENTUM, EPSILON = 0.9, 0.8, 1e-6


class Rms:
  """RMSProp with momentum, as TF1 has it."""

  def __init__(self):
    self.count = tf.Variable(0, trainable=False)
    self.kept = []

  def rate(self):
    return 0.1 / (1.0 + tf.cast(self.count, tf.float32) / 2.0)

  def apply(self, gradients, variables):
    if not self.kept:
      for variable in variables:
        ones, zeros = tf.ones_like(variable), tf.zeros_like(variable)
        self.kept.append([tf.Variable(one, trainable=False) for one in (ones, zeros)])
    rate = self.rate()
    for gradient, variable, (square, mom) in zip(gradients, variables, self.kept, strict=True):
      self.update(rate, gradient, variable, square, mom)
    self.count.assign_add(1)

  def update(self, rate, gradient, variable, square, mom):
    square.assign(DECAY * square + (1 - DECAY) * gradient * gradient)
    mom.assign(MOMENTUM * mom + rate * gradient / tf.sqrt(square + EPSILON))
    variable.assign_sub(mom)


class RateOutside(Rms):
  def update(self, rate, gradient, variable, square, mom):
    square.assign(DECAY * square + (1 - DECAY) * gradient * gradient)
    mom.assign(MOMENTUM * mom + gradient / tf.sqrt(square + EPSILON))
    variable.assign_sub(rate * mom)


class SquareAfterUse(Rms):
  def update(self, rate, gradient, variable, square, mom):
    mom.assign(MOMENTUM * mom + rate * gradient / tf.sqrt(square + EPSILON))
    square.assign(DECAY * square + (1 - DECAY) * gradient * gradient)
    variable.assign_sub(mom)


class MomentumBefore(Rms):
  def update(self, rate, gradient, variable, square, mom):
    square.assign(DECAY * square + (1 - DECAY) * gradient * gradient)
    variable.assign_sub(mom)
    mom.assign(MOMENTUM * mom + rate * gradient / tf.sqrt(square + EPSILON))


class Written(Trained, abc.ABC):
  training_steps_to_take = 3
  optimizer = Rms

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.inverse_time_decay(0.1, step, 2, 1.0)
    optimizer = v1.train.RMSPropOptimizer(rate, DECAY, MOMENTUM, EPSILON)
    return optimizer.minimize(loss, step)

  def make_tf2_optimizer(self):
    return self.optimizer()

  def given(self, gradients):
    return gradients

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    optimizer.apply(self.given(tape.gradient(loss, variables)), variables)
    return loss


class Floored(Rms):
  """A rate that does not fall below a number, in a formula that is written differently."""

  floor = 0.06

  def rate(self):
    rate = super().rate()
    return tf.maximum(rate, self.floor) if self.floor else rate

  def update(self, rate, gradient, variable, square, mom):
    square.assign_add((1 - DECAY) * (gradient**2 - square))
    variable.assign_sub(rate * gradient / tf.sqrt(square + EPSILON))


class Unfloored(Floored):
  floor = 0.0


class WithFloor(Written, abc.ABC):
  optimizer = Floored

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = tf.maximum(v1.train.inverse_time_decay(0.1, step, 2, 1.0), Floored.floor)
    return v1.train.RMSPropOptimizer(rate, DECAY, 0.0, EPSILON).minimize(loss, step)


class Scaled(Written, abc.ABC):
  """Gradients are made smaller where their norm is above a bound, in some steps only."""

  bound = 0.9

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    optimizer = v1.train.GradientDescentOptimizer(0.25)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    scale = tf.minimum(1.0, self.bound / (tf.linalg.global_norm(gradients) + 1e-6))
    return optimizer.apply_gradients(
      [(g * scale, v) for g, v in zip(gradients, variables, strict=True)], step
    )

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.25)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, variables)
    scale = self.bounded(self.bound / (tf.linalg.global_norm(gradients) + 1e-6))
    optimizer.apply_gradients([(g * scale, v) for g, v in zip(gradients, variables, strict=True)])
    return loss

  def bounded(self, scale):
    return tf.minimum(1.0, scale)


class EverySecond:
  """Adds gradients up, and updates by Nesterov's momentum in every second step."""

  def __init__(self):
    self.count = tf.Variable(0, trainable=False)
    self.kept = []

  def apply(self, gradients, variables):
    if not self.kept:
      for variable in variables:
        zeros = [tf.zeros_like(variable)] * 2
        self.kept.append([tf.Variable(one, trainable=False) for one in zeros])
    for gradient, (total, _) in zip(gradients, self.kept, strict=True):
      total.assign_add(gradient)
    self.count.assign_add(1)
    if self.count % 2 == 0:
      for variable, (total, mom) in zip(variables, self.kept, strict=True):
        mom.assign(MOMENTUM * mom + total / 2.0)
        variable.assign_sub(0.25 * self.moved(mom, total / 2.0))
        total.assign(tf.zeros_like(total))

  def moved(self, mom, gradient):
    return gradient + MOMENTUM * mom


class EverySecondPlain(EverySecond):
  def moved(self, mom, gradient):
    return mom


class Accumulated(Written, abc.ABC):
  training_steps_to_take = 5
  optimizer = EverySecond

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    variables = v1.trainable_variables()
    totals = [
      v1.get_variable(f'total_{n}', v.shape, initializer=v1.zeros_initializer(), trainable=False)
      for n, v in enumerate(variables)
    ]
    gradients = tf.gradients(loss, variables)
    added = [v1.assign_add(t, g) for t, g in zip(totals, gradients, strict=True)]
    with tf.control_dependencies(added):
      count = v1.assign_add(step, 1)
    optimizer = v1.train.MomentumOptimizer(0.25, MOMENTUM, use_nesterov=True)

    def update():
      given = [(t.read_value() / 2.0, v) for t, v in zip(totals, variables, strict=True)]
      with tf.control_dependencies([optimizer.apply_gradients(given)]):
        return tf.group([v1.assign(t, tf.zeros_like(t)) for t in totals])

    with tf.control_dependencies([count]):
      return tf.cond(tf.equal(count % 2, 0), update, tf.no_op)


def _text(test, status, base, **members):
  verdict = tf2verify.verify(type('Case', (base,), members), stages=[STAGE])
  test.assertIs(verdict.stages[-1].status, status, verdict.to_text())
  return ' '.join(verdict.to_text().split())


class WrittenTest(absltest.TestCase):
  def test_right(self):
    _text(self, tf2verify.Status.PASSED, Written)

  def test_rate_outside_of_the_momentum(self):
    text = _text(self, tf2verify.Status.FAILED, Written, optimizer=RateOutside)
    self.assertIn('cause (proven: with it both sides agree to', text)
    self.assertIn('the port computes Mul (mul_9) after AddV2 (add_6); tf1 computes it before', text)
    self.assertIn('variable.assign_sub(rate * mom)', text)

  def test_squares_after_their_use(self):
    text = _text(self, tf2verify.Status.FAILED, Written, optimizer=SquareAfterUse)
    self.assertRegex(text, r'cause \(proven: [^)]*\): TF1 computes the update of ')
    self.assertIn('squared gradient of kernel after the update of the same step', text)
    self.assertIn('compute it from the values after the update in the port', text)

  def test_momentum_before_its_update(self):
    text = _text(self, tf2verify.Status.FAILED, Written, optimizer=MomentumBefore)
    self.assertRegex(text, r'cause \(proven: [^)]*\): TF1 computes the update of ')
    self.assertIn('scaled momentum of kernel', text)
    self.assertNotIn('calls no apply_gradients', text)


class WithFloorTest(absltest.TestCase):
  def test_right(self):
    _text(self, tf2verify.Status.PASSED, WithFloor)

  def test_one_operation_before_the_updates_of_all_variables(self):
    text = _text(self, tf2verify.Status.FAILED, WithFloor, optimizer=Unfloored)
    self.assertRegex(text, r'cause \(proven: [^)]*\): the port lacks Maximum\(y=0.06\) first')


class ScaledTest(absltest.TestCase):
  def test_right(self):
    _text(self, tf2verify.Status.PASSED, Scaled)

  def test_without_the_bound(self):
    """In a step without an effect of it, the gradient that is given is the gradient itself."""
    text = _text(self, tf2verify.Status.FAILED, Scaled, bounded=lambda _, scale: scale)
    self.assertIn("cause (proven: with tf1's operations in place of the port's", text)
    self.assertIn('the port lacks Minimum(x=1)', text)


class AccumulatedTest(absltest.TestCase):
  def test_right(self):
    _text(self, tf2verify.Status.PASSED, Accumulated)

  def test_in_a_branch_that_some_steps_take(self):
    text = _text(self, tf2verify.Status.FAILED, Accumulated, optimizer=EverySecondPlain)
    self.assertIn('cause (proven: with it TF1 computes the updates of the port', text)
    self.assertIn("with the momentum itself, without Nesterov's", text)
    self.assertIn('the port lacks Mul(y=0.25) → Mul(y=0.25) → AddV2; the same at 1 more', text)


if __name__ == '__main__':
  absltest.main()
