"""Losses and gradients that the count of steps has a part in, after the steps that are taken."""

import abc
from unittest import mock

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify import Status
from tf2verify.sides.graphs.counted_steps import CountedStep

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Annealed(tf2verify.EquivalenceCase, abc.ABC):
  """A dense layer, the second part of whose loss gains weight over a hundred steps."""

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='logits')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='logits')])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))

  def tf1_weight(self):
    step = v1.train.get_or_create_global_step()
    return tf.minimum(1.0, 0.1 + tf.cast(step, tf.float32) / 100.0)

  def tf2_weight(self, step):
    return tf.minimum(1.0, 0.1 + step / 100.0)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2) + self.tf1_weight() * tf.reduce_mean(tf.abs(outputs))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2) + self.tf2_weight(0.0) * tf.reduce_mean(tf.abs(outputs))

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return keras.optimizers.Adam(0.01, epsilon=1e-8)

  def count(self, optimizer):
    return tf.cast(optimizer.iterations.value, tf.float32)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    weight = self.tf2_weight(self.count(optimizer))
    with tf.GradientTape() as tape:
      outputs = layer(inputs)
      loss = tf.reduce_mean(outputs**2) + weight * tf.reduce_mean(tf.abs(outputs))
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


class Branching(Annealed, abc.ABC):
  """Whose second part has another weight after a thousand steps."""

  def tf1_weight(self):
    step = v1.train.get_or_create_global_step()
    return tf.cond(step < 1000, lambda: 0.5, lambda: 0.25)


class LaterCountsTest(parameterized.TestCase):
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
      self.assertIn(word, ' '.join(found.to_text().split()))

  def test_the_same(self):
    class Case(Annealed):
      pass

    self.assertEmpty(self.assert_passes(Case).blind_spots)

  def test_a_bound_that_no_step_reaches(self):
    class Case(Annealed):
      def tf2_weight(self, step):
        return 0.1 + step / 100.0

    self.assert_fails(
      Case, 'had 1,000 steps been taken before', 'TF1 has 1 (Minimum', '10.1 (AddV2'
    )

  @parameterized.named_parameters(
    ('bound', lambda step: tf.minimum(0.9, 0.1 + step / 100.0), 'the port has 0.9 (Minimum'),
    (
      'jump',
      lambda step: tf.where(step < 5000.0, tf.minimum(1.0, 0.1 + step / 100.0), 0.5),
      'the port has 0.5 (Select',
    ),
  )
  def test_what_comes_later(self, weight, words):
    class Case(Annealed):
      def tf2_weight(self, step):
        return weight(step)

    self.assert_fails(Case, words)

  @parameterized.named_parameters(
    ('clip', lambda step: tf.clip_by_value(0.01 * (step + 10.0), 0.0, 1.0)),
    ('where', lambda step: tf.where(step >= 90.0, 1.0, 0.1 + 0.01 * step)),
  )
  def test_other_spellings(self, weight):
    class Case(Annealed):
      def tf2_weight(self, step):
        return weight(step)

    self.assert_passes(Case)

  def test_a_count_of_its_own_that_starts_at_one(self):
    class Case(Annealed):
      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        self.step = tf.Variable(1, trainable=False, dtype=tf.int64)
        return layer

      def count(self, optimizer):
        before = tf.cast(self.step, tf.float32) - 1.0
        self.step.assign_add(1)
        return before

    self.assert_passes(Case)

  def test_a_weight_that_each_step_multiplies(self):
    class Case(Annealed):
      def tf1_weight(self):
        step = v1.train.get_or_create_global_step()
        return tf.maximum(0.05, 0.5 * 0.999 ** tf.cast(step, tf.float32))

      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        self.power = tf.Variable(1.0, trainable=False)
        return layer

      def tf2_weight(self, step):
        return tf.maximum(0.05, 0.5 * step)

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(outputs**2) + 0.5 * tf.reduce_mean(tf.abs(outputs))

      def count(self, optimizer):
        power = self.power.read_value()
        self.power.assign(power * 0.999)
        return power

    class Unbounded(Case):
      def tf2_weight(self, step):
        return 0.5 * step

    self.assert_passes(Case)
    self.assert_fails(Unbounded)

  @parameterized.parameters((0.25, True), (0.3, False))
  def test_branches(self, later, is_right):
    class Case(Branching):
      def tf2_weight(self, step):
        return tf.cond(tf.less(step, 1000.0), lambda: 0.5, lambda: later)

    if is_right:
      self.assert_passes(Case)
    else:
      self.assert_fails(Case)

  def test_a_boundary_between_the_counts_that_are_asked_for(self):
    class Case(Annealed):
      def tf1_weight(self):
        step = v1.train.get_or_create_global_step()
        return tf.where(step < 1100, 0.5, 0.25)

      def tf2_weight(self, step):
        return tf.where(step < 1400.0, 0.5, 0.25)

    self.assert_fails(Case, 'had 1,')

    class Right(Case):
      def tf2_weight(self, step):
        return tf.where(step < 1100.0, 0.5, 0.25)

    self.assert_passes(Right)

  @parameterized.parameters(3.0, 4.0)
  def test_a_cycle_is_not_followed_through_all_counts(self, length):
    class Case(Annealed):
      def tf1_weight(self):
        step = v1.train.get_or_create_global_step()
        return 0.1 + tf.cast(step % 3, tf.float32)

      def tf2_weight(self, step):
        return 0.1 + tf.math.floormod(step, length)

    known = CountedStep.from_count_alone
    asked = []

    def counted(step, counts, names):
      asked.append(len(counts))
      return known(step, counts, names)

    with mock.patch.object(CountedStep, 'from_count_alone', counted):
      if length == 3.0:
        self.assert_passes(Case)
      else:
        self.assert_fails(Case, 'had 1,000 steps been taken before')
    self.assertLess(sum(asked), 500)

  def test_python_counts(self):
    class Case(Annealed):
      def count(self, optimizer):
        optimizer.taken = getattr(optimizer, 'taken', -1) + 1
        return float(optimizer.taken)

    spots = self.assert_passes(Case).blind_spots
    self.assertIn('computed from the step count', ' '.join(spots))


class TargetNetwork(tf2verify.EquivalenceCase, abc.ABC):
  """A network whose copy follows it softly, and averages of its variables."""

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('online'):
      values = v1.layers.dense(inputs, 3, name='fc')
    with v1.variable_scope('target'):
      later = v1.layers.dense(inputs, 3, name='fc', trainable=False)
    return {'values': values, 'later': tf.stop_gradient(later)}

  def make_tf2_layer(self):
    class Agent(keras.Model):
      def __init__(self):
        super().__init__(name='agent')
        self.online = keras.layers.Dense(3, name='online')
        self.target = keras.layers.Dense(3, name='target', trainable=False)

      def call(self, inputs):
        later = keras.ops.stop_gradient(self.target(inputs))
        return {'values': self.online(inputs), 'later': later}

    return Agent()

  variable_names = {
    f'{scope}/fc/{name}': f'agent/{scope}/{name}'
    for scope in ('online', 'target')
    for name in ('kernel', 'bias')
  }

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean((0.9 * outputs['later'] + 1.0 - outputs['values']) ** 2)

  tf2_loss = tf1_loss
  rate = 0.1

  def make_tf1_train_op(self, loss):
    online, target = (
      v1.get_collection(v1.GraphKeys.GLOBAL_VARIABLES, scope) for scope in ('online', 'target')
    )
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(self.rate, step, 100, 0.5)
    train = v1.train.AdamOptimizer(rate).minimize(loss, step, var_list=online)
    with tf.control_dependencies([train]):
      share = self.share(tf.cast(step, tf.float32))
      return tf.group(
        *(t.assign((1 - share) * t + share * o) for o, t in zip(online, target, strict=True))
      )

  def share(self, step):
    return tf.minimum(0.05, 1.0 / (1.0 + step))

  port_share = share

  def make_tf2_optimizer(self):
    schedule = keras.optimizers.schedules.ExponentialDecay(self.rate, 100, 0.5)
    return keras.optimizers.Adam(schedule, epsilon=1e-8)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    gradients = tape.gradient(loss, layer.trainable_variables)
    before = tf.cast(tf.convert_to_tensor(optimizer.iterations), tf.float32)
    optimizer.apply_gradients(zip(gradients, layer.trainable_variables, strict=True))
    share = self.port_share(before)
    for own, copy in zip(layer.online.weights, layer.target.weights, strict=True):
      copy.assign((1 - share) * copy + share * own)
    return loss


class _Averages:
  """Gradient descent with averages, and a count of its own."""

  def __init__(self):
    self.descent = keras.optimizers.SGD(0.1)
    self.of = {}
    self.step = tf.Variable(0, dtype=tf.int64, trainable=False)


class Averaged(Annealed, abc.ABC):
  """Averages whose decay grows with the count of steps, up to a bound."""

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - 1.0))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    applied = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    with tf.control_dependencies([applied]):
      return v1.train.ExponentialMovingAverage(0.99, step).apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    return _Averages()

  def decay(self, count):
    return tf.minimum(0.99, (1 + count) / (10 + count))

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    variables = layer.trainable_variables
    for one in variables:
      if one.path not in optimizer.of:
        start = tf.convert_to_tensor(one)
        optimizer.of[one.path] = tf.Variable(start, trainable=False, name='ema')
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    gradients = tape.gradient(loss, variables)
    optimizer.descent.apply_gradients(zip(gradients, variables, strict=True))
    decay = self.decay(tf.cast(optimizer.step.assign_add(1), tf.float32))
    for one in variables:
      average = optimizer.of[one.path]
      average.assign(decay * average + (1 - decay) * tf.convert_to_tensor(one))
    return loss


class OfPieces(Averaged, abc.ABC):
  """The same with a rate that is chosen by the count."""

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.piecewise_constant(step, [1, 3], [0.1, 0.05, 0.01])
    applied = v1.train.GradientDescentOptimizer(rate).minimize(loss, step)
    with tf.control_dependencies([applied]):
      return v1.train.ExponentialMovingAverage(0.99, step).apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    optimizer = _Averages()
    rate = keras.optimizers.schedules.PiecewiseConstantDecay([1, 3], [0.1, 0.05, 0.01])
    optimizer.descent = keras.optimizers.SGD(rate)
    return optimizer


class OfTowers(Averaged, abc.ABC):
  """A decaying rate; the gradients are means over towers, and TF1 knows no other ones."""

  def make_tf1_train_op(self, loss, outputs):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.exponential_decay(0.1, step, 2, 0.3, staircase=True)
    optimizer = v1.train.GradientDescentOptimizer(rate)
    towers = [
      optimizer.compute_gradients(self.tf1_loss(part, None)) for part in tf.split(outputs, 2)
    ]
    means = [
      (tf.add_n([g for g, _ in known]) / 2.0, known[0][1]) for known in zip(*towers, strict=True)
    ]
    with tf.control_dependencies([optimizer.apply_gradients(means, step)]):
      return v1.train.ExponentialMovingAverage(0.99, step).apply(v1.trainable_variables())

  def make_tf2_optimizer(self):
    optimizer = _Averages()
    rate = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.3, staircase=True)
    optimizer.descent = keras.optimizers.SGD(rate)
    return optimizer


class OwnRate(Annealed, abc.ABC):
  """A rate that the port computes itself, in no optimizer."""

  bound = 50.0

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - 1.0))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.cosine_decay(0.1, step, 50)
    return v1.train.GradientDescentOptimizer(rate).minimize(loss, step)

  def make_tf2_optimizer(self):
    return tf.Variable(0, dtype=tf.int64, trainable=False)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    done = tf.minimum(tf.cast(optimizer, tf.float32), self.bound) / 50.0
    rate = 0.05 * (1.0 + tf.cos(3.1415927 * done))
    variables = layer.trainable_variables
    for one, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
      one.assign_sub(rate * gradient)
    optimizer.assign_add(1)
    return loss


class AveragesTest(absltest.TestCase):
  def _found(self, base=Averaged, **hooks):
    verdict = tf2verify.verify(type('Case', (base,), hooks), [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_right_port(self):
    found = self._found()
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertEmpty([one for one in found.blind_spots if 'step count' in one], found.to_text())

  def test_without_the_bound(self):
    found = self._found(decay=lambda _, count: (1 + count) / (10 + count))
    self.assertIs(found.status, Status.FAILED, found.to_text())
    text = found.to_text()
    self.assertIn('update shadow of logits/kernel [had 1,000 steps been taken before]', text)
    self.assertIn('(RealDiv', text)

  def test_a_rate_in_branches(self):
    found = self._found(OfPieces)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    found = self._found(
      OfPieces, decay=lambda _, count: tf.minimum(0.999, (1 + count) / (10 + count))
    )
    self.assertIs(found.status, Status.FAILED, found.to_text())
    text = found.to_text()
    self.assertIn('update shadow of logits/kernel [had 1,000 steps been taken before]', text)
    self.assertRegex(text, r'the port has\s+0\.99\d+\s+\(Minimum')
    self.assertNotRegex(text, r'the port has\s+0\.01\s')

  def test_means_over_towers(self):
    found = self._found(OfTowers)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    found = self._found(OfTowers, decay=lambda _, count: (1 + count) / (10 + count))
    self.assertIs(found.status, Status.FAILED, found.to_text())

  def test_a_rate_that_nobody_tells(self):
    found = self._found(OwnRate)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    found = self._found(OwnRate, bound=1e9)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('update logits/kernel [had 1,000 steps been taken before]', found.to_text())


class UpdatesTest(absltest.TestCase):
  def _stage(self, port_share=None, count=lambda step: step):
    class Case(TargetNetwork):
      def port_share(self, step):
        return (port_share or self.share)(count(step))

    verdict = tf2verify.verify(Case, [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_right_port(self):
    # `minimize` adds 1 before the copies are written.
    found = self._stage(count=lambda step: step + 1)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    self.assertEmpty(found.blind_spots, found.to_text())

  def test_an_update_that_stops(self):
    found = self._stage(
      lambda step: tf.where(step > 1000, 0.0, tf.minimum(0.05, 1 / (1 + step))),
      lambda step: step + 1,
    )
    self.assertIs(found.status, Status.FAILED, found.to_text())
    text = found.to_text()
    self.assertIn('update target/fc/kernel [had 1,000 steps been taken before]', text)
    self.assertIn('the port has 0 (SelectV2', text)
    self.assertNotIn('online', text.partition('training, step by step')[0])

  def test_a_bound_that_no_step_reaches(self):
    found = self._stage(lambda step: tf.clip_by_value(1 / (1 + step), 1e-3, 0.05), lambda n: n + 1)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('the port has 0.001', found.to_text())


if __name__ == '__main__':
  absltest.main()
