"""References whose graph leaves the order of reads and writes open."""

import abc

import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify import Status

v1 = tf.compat.v1
train = v1.train
_TRAINING = ['loss', 'training_steps', 'determinism']
_RACE = 'nothing in the graph of the reference orders these accesses to a variable'


class Schedule(tf.keras.optimizers.schedules.PolynomialDecay):
  """A rate that is read after so many counts of the step."""

  def __init__(self, rate=0.1, steps=8, late=0):
    super().__init__(rate, steps, 0.0)
    self.late = late

  def __call__(self, step):
    return super().__call__(step + self.late)


def sgd(*schedule, **options):
  return tf.keras.optimizers.legacy.SGD(Schedule(*schedule, **options))


class RacingRate(tiny_models.Affine, abc.ABC):
  """As in BERT's `create_optimizer`: the rate reads a step that is assigned in no order to it."""

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = train.get_or_create_global_step()
    optimizer = train.GradientDescentOptimizer(train.polynomial_decay(0.1, step, 8, 0.0))
    update = optimizer.minimize(loss)
    return tf.group(update, step.assign(step + 1))

  def make_tf2_optimizer(self):
    return sgd()


class OrdersTestCase(absltest.TestCase):
  def stage(self, case, name, stages=None):
    verdict = tf2verify.verify(case, stages=stages or [name])
    return next(stage for stage in verdict.stages if stage.stage == name)

  def assert_passes(self, case, name, *words):
    found = self.stage(case, name)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    for word in words:
      self.assertIn(word, '\n'.join(found.blind_spots))
    return found

  def assert_fails(self, case, name, *words):
    found = self.stage(case, name)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    for word in words:
      self.assertIn(word, found.to_text())
    return found


class TrainingTest(OrdersTestCase):
  def test_the_order_of_the_code(self):
    class Case(RacingRate):
      pass

    self.assert_passes(
      Case,
      'training_steps',
      _RACE,
      'of global_step: the read (ReadVariableOp',
      'train.polynomial_decay(0.1, step, 8, 0.0)',
      'return tf.group(update, step.assign(step + 1))',
      'those of a run in the order of the code',
    )

  def test_the_other_order(self):
    class Case(RacingRate):
      def make_tf2_optimizer(self):
        return sgd(late=1)

    self.assert_passes(Case, 'training_steps', _RACE, 'in the reverse order of the code')

  def test_another_rate(self):
    class Case(RacingRate):
      def make_tf2_optimizer(self):
        return sgd(0.09)

    found = self.assert_fails(Case, 'training_steps', 'agrees with none of the orders', _RACE)
    self.assertIn('the nearest, in the order of the code', found.to_text())

  def test_another_rate_in_the_other_order(self):
    class Case(RacingRate):
      def make_tf2_optimizer(self):
        return sgd(0.1, 16, late=1)

    self.assert_fails(Case, 'training_steps', 'agrees with none of the orders')

  def test_another_decay_is_judged_by_the_nearest_order(self):
    class Case(RacingRate):
      def make_tf2_optimizer(self):
        return sgd(0.1, 16)

    found = self.assert_fails(Case, 'training_steps', 'the nearest, in the order of the code')
    self.assertEqual({difference.run for difference in found.differences}, {'step 2'})

  def test_orders_are_not_mixed(self):
    class Case(RacingRate):
      training_steps_to_take = 2

      def make_tf2_optimizer(self):
        class Mixed(Schedule):
          def __call__(self, step):  # before the count at first, after it then
            return super().__call__(step + tf.cast(tf.cast(step, tf.int64) > 0, step.dtype))

        return tf.keras.optimizers.legacy.SGD(Mixed())

    self.assert_fails(Case, 'training_steps', 'agrees with none of the orders')

  def test_an_ordered_reference_says_nothing_of_it(self):
    class Case(RacingRate):
      def make_tf1_train_op(self, loss):
        step = train.get_or_create_global_step()
        rate = train.polynomial_decay(0.1, step, 8, 0.0)
        return train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)

    for name in _TRAINING:
      self.assertEmpty(self.assert_passes(Case, name).blind_spots)

  def test_references(self):
    class Case(RacingRate):
      def make_tf1_train_op(self, loss):
        with v1.variable_scope('', use_resource=False):
          step = v1.get_variable(
            'step', [], tf.int32, v1.zeros_initializer(), trainable=False, use_resource=False
          )
        rate = train.polynomial_decay(0.1, step, 8, 0.0)
        update = train.GradientDescentOptimizer(rate).minimize(loss)
        return tf.group(update, v1.assign(step, step + 1))

      def make_tf2_optimizer(self):
        return sgd(late=1)

    self.assert_passes(Case, 'training_steps', 'of step: the read', 'in the reverse order')


class Averaged(RacingRate, abc.ABC):
  """A moving average of the weights, in no order to their update."""

  decay = 0.9
  averages_first = False

  def make_tf1_train_op(self, loss):
    update = train.GradientDescentOptimizer(0.1).minimize(loss)
    return tf.group(update, train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables()))

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.legacy.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    if not hasattr(layer, 'average'):
      layer.average = tf.train.ExponentialMovingAverage(self.decay)
      layer.average.apply(layer.trainable_variables)  # it starts where the weights do
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, variables)
    if self.averages_first:
      layer.average.apply(variables)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    if not self.averages_first:
      layer.average.apply(variables)
    return loss


class AveragesTest(OrdersTestCase):
  def test_after_the_update(self):
    class Case(Averaged):
      pass

    words = 'minimize(loss)', 'ExponentialMovingAverage', 'in the order of the code'
    self.assert_passes(Case, 'training_steps', *words)

  def test_before_the_update(self):
    class Case(Averaged):
      averages_first = True

    self.assert_passes(Case, 'training_steps', 'in the reverse order of the code')

  def test_another_decay(self):
    class Case(Averaged):
      decay = 0.8

    found = self.assert_fails(Case, 'training_steps', 'agrees with none of the orders')
    self.assertEqual({difference.quantity for difference in found.differences}, {'shadow'})

  def test_two_races(self):
    class Case(Averaged):
      averages_first = True

      def make_tf1_train_op(self, loss):
        step = train.get_or_create_global_step()
        optimizer = train.GradientDescentOptimizer(train.polynomial_decay(0.1, step, 8, 0.0))
        update = optimizer.minimize(loss)
        average = train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables())
        return tf.group(update, average, step.assign(step + 1))

      def make_tf2_optimizer(self):
        return sgd()

    self.assert_passes(Case, 'training_steps', 'every read before every write', 'global_step')


class Centered(RacingRate, abc.ABC):
  """The train op writes what the forward pass reads, and nothing orders the two."""

  centers_first = False
  decay = 0.9

  def model(self, inputs, training):
    with v1.variable_scope('', reuse=v1.AUTO_REUSE):
      center = v1.get_variable('center', [3], trainable=False)
    return super().model(inputs, training) - center

  def make_tf1_train_op(self, loss, outputs):
    [center] = [v for v in v1.global_variables() if v.op.name == 'center']
    update = train.GradientDescentOptimizer(0.1).minimize(loss)
    # The outputs without their centre, so that no path leads from its read to the write.
    raw = tf.stop_gradient(outputs.op.inputs[0])
    return tf.group(update, center.assign(0.9 * center + 0.1 * tf.reduce_mean(raw, 0)))

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.legacy.SGD(0.1)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    [center] = [v for v in layer.variables if 'center' in v.name]
    before = tf.identity(center)
    with tf.GradientTape() as tape:
      raw = layer(inputs, training=True) + before
      mean = tf.stop_gradient(tf.reduce_mean(raw, 0))
      after = self.decay * before + (1.0 - self.decay) * mean
      loss = self.tf2_loss(raw - (after if self.centers_first else before), labels)
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, variables)
    center.assign(after)
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return loss


class ForwardReadTest(OrdersTestCase):
  def test_the_read_comes_first(self):
    class Case(Centered):
      pass

    self.assert_passes(Case, 'training_steps', _RACE, 'of center: the read', 'order of the code')

  def test_the_write_comes_first(self):
    class Case(Centered):
      centers_first = True

    self.assert_passes(Case, 'training_steps', _RACE, 'in the reverse order of the code')

  def test_another_decay(self):
    class Case(Centered):
      decay = 0.8

    self.assert_fails(Case, 'training_steps', 'agrees with none of the orders', _RACE)


class StateTest(OrdersTestCase):
  """Writes in the forward pass."""

  def test_a_batch_norm_that_is_used_twice(self):
    def normalized(inputs, training, reuse=None):
      return slim.batch_norm(
        inputs,
        decay=0.9,
        updates_collections=None,
        is_training=training,
        scope='bn',
        reuse=reuse,
      )

    class Twice(tiny_models.OneImageModel, abc.ABC):
      def model(self, inputs, training):
        one = normalized(inputs, training)
        return one + normalized(inputs * 2, training, reuse=True)

    class Case(Twice):
      pass

    class Reversed(Twice):
      def port(self, inputs, training):
        one = normalized(inputs * 2, training)
        return one + normalized(inputs, training, reuse=True)

    class Once(Twice):
      def port(self, inputs, training):
        one = normalized(inputs, training)
        return one + normalized(inputs, training, reuse=True)

    for name in ('seeded_constant', 'seeded_num_random_ops'):
      self.assert_passes(Case, name, 'of bn/moving_', 'in the order of the code')
      self.assert_passes(Reversed, name, 'in the reverse order of the code')
    found = self.stage(Case, 'determinism')
    self.assertIs(found.status, Status.PASSED)
    self.assertIn('may not repeat itself', ' '.join(found.blind_spots))
    self.assert_fails(Once, 'zero_randomness')

  def test_a_batch_norm_that_is_used_three_times(self):
    class Thrice(tiny_models.OneImageModel, abc.ABC):
      order, decay = (0, 1, 2), 0.9

      def model(self, inputs, training):
        return self.thrice(inputs, training, (0, 1, 2), 0.9)

      def port(self, inputs, training):
        return self.thrice(inputs, training, self.order, self.decay)

      def thrice(self, inputs, training, order, decay):
        given = [inputs, inputs * 2.0, inputs * 3.0]
        found = {
          n: slim.batch_norm(
            given[n],
            decay=decay,
            updates_collections=None,
            is_training=training,
            scope='bn',
            reuse=bool(position) or None,
          )
          for position, n in enumerate(order)
        }
        return found[0] + found[1] + found[2]

    for order in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
      with self.subTest(order=order):
        self.assert_passes(type('Case', (Thrice,), {'order': order}), 'seeded_constant')
    other = type('Case', (Thrice,), {'order': (1, 2, 0), 'decay': 0.85})
    self.assert_fails(other, 'seeded_constant')

  def test_state_that_another_operation_reads(self):
    class Power(tiny_models.OneModel, abc.ABC):
      """An estimate that the forward pass writes, and also reads, in no order."""

      def model(self, inputs, training, writes_first=False, factor=0.5):
        kernel = v1.get_variable('kernel', [3, 3])
        scale = v1.get_variable('scale', [], initializer=v1.ones_initializer(), trainable=False)
        new = scale * factor
        if writes_first:
          with tf.control_dependencies([scale.assign(new)]):
            return tf.matmul(inputs, kernel) * scale.read_value()
        outputs = tf.matmul(inputs, kernel) * scale
        v1.add_to_collection('update_ops', scale.assign(new))
        return outputs

    class Case(Power):
      pass

    class WritesFirst(Power):
      def port(self, inputs, training):
        return self.model(inputs, training, writes_first=True)

    class Wrong(Power):
      def port(self, inputs, training):
        return self.model(inputs, training, factor=0.6)

    self.assert_passes(Case, 'seeded_constant', 'of scale: the read', 'in the order of the code')
    self.assert_passes(WritesFirst, 'seeded_constant', 'in the reverse order of the code')
    self.assert_passes(WritesFirst, 'gradients', 'in the reverse order of the code')
    self.assert_fails(Wrong, 'seeded_constant', 'agrees with none of the orders', 'scale')


class DeterminismTest(OrdersTestCase):
  def test_names_the_race(self):
    class Case(RacingRate):
      pass

    found = self.stage(Case, 'determinism')
    self.assertIs(found.status, Status.PASSED, found.to_text())
    for words in (
      'may not repeat itself, which is not the fault of the port',
      _RACE,
      'of global_step: the read (ReadVariableOp',
      'step.assign(step + 1)',
      'in the reverse order of the code',
    ):
      self.assertIn(words, ' '.join(found.blind_spots))
    self.assertNotIn('not found', found.to_text())

  def test_a_port_that_varies_is_still_found(self):
    class Case(RacingRate):
      def port(self, inputs, training):
        return super().port(inputs, training) + 1e-6 * tf.cast(tf.timestamp() % 1, tf.float32)

    self.assert_fails(Case, 'determinism', 'Timestamp')

  def test_a_race_without_an_effect(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        same = v1.get_variable('same', [], initializer=v1.ones_initializer(), trainable=False)
        v1.add_to_collection('update_ops', same.assign(same.read_value()))
        return super().model(inputs, training) * same

    self.assert_passes(Case, 'determinism', 'of same: the write', 'give the same bits')


if __name__ == '__main__':
  absltest.main()
