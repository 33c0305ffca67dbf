"""Schedules that differ after the steps that are taken, and steps after the rate changes."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import parameterized

import tf2verify
from tests.stages.first_failure import LadderTestCase
from tf2verify import Status
from tf2verify.diagnosis.rules.updates.later_rates import COUNTS, first_apart, later_rates, told

v1 = tf.compat.v1
schedules = keras.optimizers.schedules
_STAGE = 'training_steps'


def staircase():
  step = v1.train.get_or_create_global_step()
  return v1.train.exponential_decay(0.1, step, 1000, 0.9, staircase=True)


class Decaying(tf2verify.EquivalenceCase, abc.ABC):
  """A dense layer, trained at a rate that stays as it is for a thousand steps."""

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(staircase())

  def rate(self):
    return schedules.ExponentialDecay(0.1, 1000, 0.9, staircase=True)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(self.rate())


class TwoOptimizers(Decaying, abc.ABC):
  """One for the kernel, with a schedule, and one for the bias."""

  tf1_rate = staticmethod(staircase)

  def make_tf1_train_op(self, loss):
    kernel, bias = v1.trainable_variables()
    step = v1.train.get_or_create_global_step()
    ones = v1.train.GradientDescentOptimizer(self.tf1_rate())
    others = v1.train.GradientDescentOptimizer(0.05)
    gradients = tf.gradients(loss, [kernel, bias])
    return tf.group(
      ones.apply_gradients([(gradients[0], kernel)], step),
      others.apply_gradients([(gradients[1], bias)]),
    )

  make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    kernel, bias = layer.trainable_variables
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    gradients = tape.gradient(loss, [kernel, bias])
    optimizer['kernel'].apply_gradients([(gradients[0], kernel)])
    optimizer['bias'].apply_gradients([(gradients[1], bias)])
    return loss


class LaterStepsTest(LadderTestCase, parameterized.TestCase):
  def stage(self, case):
    verdict = tf2verify.verify(case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def assert_passes(self, case):
    found = self.stage(case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    return found

  def assert_fails(self, case, *words):
    found = self.stage(case)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    for word in words:
      self.assertIn(word, found.to_text())

  def test_the_same_schedule(self):
    class Case(Decaying):
      pass

    self.assertEmpty(self.assert_passes(Case).blind_spots)

  def test_updates_of_tf1_by_hand(self):
    class Case(Decaying):
      make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer

      def make_tf1_train_op(self, loss):
        rate, variables = staircase(), v1.trainable_variables()
        pairs = zip(tf.gradients(loss, variables), variables, strict=True)
        with tf.control_dependencies([v.assign_sub(rate * g) for g, v in pairs]):
          return v1.train.get_global_step().assign_add(1).op

    spots = ' '.join(self.assert_passes(Case).blind_spots)
    self.assertIn('is not known there: the train op of TF1 tells no learning rate', spots)

  def test_adam(self):
    class Case(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(staircase(), epsilon=1e-7)

      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(self.rate())

    self.assert_passes(Case)

  @parameterized.named_parameters(
    ('rate', schedules.ExponentialDecay(0.1, 1000, 0.8, True), 'a factor of 0.9 in TF1 and 0.8'),
    ('steps', schedules.ExponentialDecay(0.1, 2000, 0.9, True), 'at 2,000 and 4,000 in the port'),
    ('smooth', schedules.ExponentialDecay(0.1, 1000, 0.9), 'pass staircase=True'),
    ('boundary', schedules.PiecewiseConstantDecay([1000], [0.1, 0.09]), 'end at different values'),
  )
  def test_another_schedule(self, schedule, words):
    class Case(Decaying):
      def rate(self):
        return schedule

    self.assert_fails(Case, words)

  def test_a_schedule_where_tf1_has_a_constant(self):
    class Plain(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.1)

    class Adam(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.1, epsilon=1e-7)

      def make_tf2_optimizer(self):
        return keras.optimizers.Adam(self.rate())

    for case in (Plain, Adam):
      self.assert_fails(case, 'likely cause', 'step counts up to 10,000,000')

  @parameterized.named_parameters(
    ('the schedule', schedules.ExponentialDecay(0.1, 1000, 0.9, True), 0.05, ''),
    ('another one', schedules.ExponentialDecay(0.1, 1000, 0.8, True), 0.05, 'a factor of 0.9 in'),
    ('none', 0.1, 0.05, 'the learning rates'),
    (
      'one for the other optimizer, too',
      schedules.ExponentialDecay(0.1, 1000, 0.9, True),
      schedules.PiecewiseConstantDecay([1000], [0.05, 0.01]),
      'no optimizer of TF1 has that',
    ),
  )
  def test_two_optimizers(self, kernel, bias, words):
    class Case(TwoOptimizers):
      def make_tf2_optimizer(self):
        return {'bias': keras.optimizers.SGD(bias), 'kernel': keras.optimizers.SGD(kernel)}

    if words:
      self.assert_fails(Case, words)
    else:
      self.assertNotIn('not known', ' '.join(self.assert_passes(Case).blind_spots))

  def test_an_optimizer_that_keeps_its_rate_elsewhere(self):
    class Own(tf.keras.optimizers.legacy.Optimizer):
      def __init__(self):
        super().__init__('own')
        self._set_hyper('pace', 0.1)

      def _resource_apply_dense(self, grad, var, apply_state=None):
        return var.assign_sub(self._get_hyper('pace', tf.float32) * grad)

      def get_config(self):
        return super().get_config()

    class Case(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.1)

      def make_tf2_layer(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(3, name='logits')])

      def make_tf2_optimizer(self):
        return Own()

    self.assert_passes(Case)

  def test_two_optimizers_of_constant_rates(self):
    class Case(TwoOptimizers):
      tf1_rate = staticmethod(lambda: 0.1)
      later = 0.05

      def make_tf2_optimizer(self):
        rate = schedules.PiecewiseConstantDecay([1000], [0.05, self.later])
        return {'bias': keras.optimizers.SGD(rate), 'kernel': keras.optimizers.SGD(0.1)}

    self.assert_passes(Case)
    Case.later = 0.005
    self.assert_fails(
      Case, 'one of the port is 0.05 in the last step', 'and 0.005 at step count 1,'
    )

  def test_momentum_that_holds_steps(self):
    class Case(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(staircase(), 0.9)

      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(self.rate(), momentum=0.9)

    self.assert_fails(Case, 'a further step, at half the learning rate', 'MomentumOptimizer')

  def test_the_momentum_of_tf1(self):
    class Case(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(staircase(), 0.9)

      make_tf2_optimizer = make_tf1_optimizer

    found = self.assert_passes(Case)
    self.assertIn('0.09 at step count 1,000', ' '.join(found.blind_spots))

  def test_a_port_that_never_tells_its_rate(self):
    class Case(Decaying):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(staircase())

      def make_tf2_optimizer(self):
        found = tf.Module()
        found.step = tf.Variable(0, dtype=tf.int64)
        return found

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs), labels)
        variables = layer.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
          count = tf.cast(optimizer.step // 1000, tf.float32)
          variable.assign_sub(0.1 * 0.9**count * gradient)
        optimizer.step.assign_add(1)
        return loss

    spots = [spot for spot in self.assert_passes(Case).blind_spots if 'rate' in spot]
    self.assertLen(spots, 1)
    self.assertStartsWith(spots[0], 'the learning rate is not known on the tf2 side')
    self.assertIn('; the learning rate of TF1 is 0.1 in the steps that were taken and ', spots[0])
    self.assertEndsWith(spots[0], 'at step count 1,000; training_steps_to_take takes more steps')

  def test_a_schedule_that_counts_on_the_dtype_of_the_count(self):
    class Strict(schedules.LearningRateSchedule):
      def __call__(self, step):
        return 0.1 * 0.9 ** tf.cast(tf.convert_to_tensor(step) // 1000, tf.float32)

    class Case(Decaying):
      def rate(self):
        return Strict()

    self.assert_passes(Case)

  def test_a_schedule_that_raises_beyond_its_end(self):
    class Short(schedules.LearningRateSchedule):
      def __call__(self, step):
        if int(step) > 100:
          raise IndexError('planted')
        return 0.1

    class Case(Decaying):
      def rate(self):
        return Short()

    found = self.stage(Case)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertIn('planted', ' '.join(found.blind_spots))

  def test_a_constant_rate_is_named(self):
    class Case(Decaying):
      def rate(self):
        return 0.1

    found = self.assert_passes(Case)
    self.assertIn("the learning rate of the port's optimizer is no", ' '.join(found.blind_spots))

  def test_the_counts_are_put_back(self):
    class Case(Decaying):
      def make_tf1_optimizer(self):
        step = v1.train.get_or_create_global_step()
        return v1.train.GradientDescentOptimizer(v1.train.inverse_time_decay(0.1, step, 1, 0.5))

      def rate(self):
        return schedules.InverseTimeDecay(0.1, 1, 0.5)

    verdict = tf2verify.verify(Case, [_STAGE, 'checkpoint'])
    self.assertTrue(all(stage.status is Status.PASSED for stage in verdict.stages))


def _stairs(length, factor, start=0.1):
  return lambda n: start * factor ** (n // length)


def _after_warmup(n, counted, length=3):
  return min(1.0, (n + 1) / 4) * _stairs(length, 0.9)(counted)


def _rates(tf1, tf2):
  return lambda counts: ([tf1(n) for n in counts], [tf2(n) for n in counts])


class LaterRatesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('port_in_steps', lambda n: 0.1 * 0.9 ** (n / 700), _stairs(700, 0.9), 'staircase=False'),
    ('tf1_in_steps', _stairs(700, 0.9), lambda n: 0.1 * 0.9 ** (n / 700), 'staircase=True'),
    (
      'boundaries',
      lambda n: 0.1 if n <= 1 else 0.05 if n <= 3 else 0.01,
      lambda n: 0.1 if n <= 0 else 0.05 if n <= 2 else 0.01,
      'from 2, 4 in TF1, and from 1, 3 in the port: pass the boundaries of TF1',
    ),
    ('lengths', _stairs(300, 0.5), _stairs(400, 0.5), 'step counts 300 and 600 in TF1'),
    (
      'later',
      lambda n: _after_warmup(n, n),
      lambda n: _after_warmup(n, max(n - 4, 0)),
      "the port's learning rate changes 4 steps later than that of TF1, every 3 steps on both",
    ),
    (
      'earlier',
      lambda n: _after_warmup(n, max(n - 100, 0), 30),
      lambda n: _after_warmup(n, n, 30),
      "TF1's learning rate changes 100 steps later than that of the port, every 30 steps",
    ),
    (
      'as_often_and_otherwise',
      _stairs(300, 0.5),
      lambda n: _stairs(300, 0.7)(n + 100),
      'compare what their schedules count, and from where',
    ),
    ('pace', lambda n: 1 / (1 + n / 500), lambda n: 1 / (1 + n / 1000), "TF1's at 0.5·n"),
    (
      'exponential_pace',
      lambda n: 0.1 * 0.9 ** (n / 700),
      lambda n: 0.1 * 0.9 ** (n / 350),
      'in 1,000 steps the learning rate falls to 0.8603 of itself in TF1 and to 0.7401',
    ),
    (
      'end',
      lambda n: max(1 - n / 5000, 0.1),
      lambda n: max(1 - n / 5000, 0.2),
      'end at different values: 0.1 in TF1 and 0.2 in the port',
    ),
  )
  def test_texts(self, tf1, tf2, words):
    self.assertIn(words, later_rates(_rates(tf1, tf2)))

  def test_rounding_at_great_counts_makes_no_stairs(self):
    def rate(shift):
      return lambda n: float(np.float32(1.0) / np.sqrt(np.float32(n + shift)))

    self.assertNotIn('staircase', later_rates(_rates(rate(1), rate(2))))

  def test_the_same(self):
    self.assertEqual(later_rates(_rates(_stairs(300, 0.5), _stairs(300, 0.5))), '')

  def test_rounding_of_many_steps_is_no_difference(self):
    def rounded(n):
      return float(np.float32(0.1) * np.power(np.float32(0.96), np.float32(n / 1000)))

    self.assertEqual(later_rates(_rates(lambda n: 0.1 * 0.96 ** (n / 1000), rounded)), '')

  def test_first_count_that_differs(self):
    found = first_apart(_rates(lambda n: 1.0, lambda n: 1.0 if n < 1234 else 0.5))
    self.assertIn('the same up to step count 1,233', found)
    self.assertIn('1 in TF1 and 0.5 in the port at step count 1,234', found)

  def test_a_cycle_that_ends_at_round_counts_is_seen(self):
    def cycle(n):
      return 1 - (n % 1000) / 1000

    self.assertNotEqual(*told(*_rates(lambda n: 1.0, cycle)(COUNTS)))
    self.assertTrue(any(n % 1000 for n in COUNTS if n > 1000))
