import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
keras = tf.keras.optimizers
STAGE = 'training_steps'
RATE = 0.05


class Trained(tiny_models.Affine, abc.ABC):
  """An affine map, trained towards labels by squared errors."""

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(RATE)

  def make_tf2_optimizer(self):
    return keras.SGD(RATE)


class OwnLoop(Trained, abc.ABC):
  """A loop around a tape on the port's side."""

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    self.update(optimizer, tape.gradient(loss, variables), variables)
    return loss

  def update(self, optimizer, gradients, variables):
    optimizer.apply_gradients(zip(gradients, variables, strict=True))


def last(verdict):
  return verdict.stages[-1]


class TrainingStepsTestCase(LadderTestCase):
  def verdict(self, case):
    return tf2verify.verify(case, stages=[STAGE])

  def assert_right(self, case):
    verdict = self.verdict(case)
    self.assertIs(last(verdict).status, tf2verify.Status.PASSED, verdict.to_text())
    return last(verdict)

  def assert_parts(self, case, *words):
    return self.assert_first_failure(case, STAGE, *words)


class RightTest(TrainingStepsTestCase):
  def test_gradient_descent(self):
    class Case(Trained):
      pass

    found = self.assert_right(Case)
    # Loss, learning rate, count, and gradient and update of two variables; three times.
    self.assertEqual(found.compared.tensors, 21)
    self.assertEqual(found.compared.blind_spots, 0)
    self.assertEqual(found.tables[0].columns[1:3], ('loss tf1', 'loss tf2'))
    self.assertLen(found.tables[0].rows, 3)

  def test_optimizers_with_the_same_rule(self):
    train = v1.train
    pairs = {
      'momentum': (lambda: train.MomentumOptimizer(RATE, 0.9), lambda: keras.SGD(RATE, 0.9)),
      'adam': (lambda: train.AdamOptimizer(RATE), lambda: keras.Adam(RATE, epsilon=1e-8)),
      'legacy adam': (
        lambda: train.AdamOptimizer(RATE),
        lambda: keras.legacy.Adam(RATE, epsilon=1e-8),
      ),
      'slow adam': (
        lambda: train.AdamOptimizer(1e-5, beta2=0.9999),
        lambda: keras.Adam(1e-5, beta_2=0.9999, epsilon=1e-8),
      ),
      'ftrl': (lambda: train.FtrlOptimizer(RATE), lambda: keras.Ftrl(RATE)),
    }
    for name, (tf1, tf2) in pairs.items():
      with self.subTest(name):
        case = type(
          'Case',
          (Trained,),
          {
            'make_tf1_optimizer': lambda self, make=tf1: make(),
            'make_tf2_optimizer': lambda self, make=tf2: make(),
          },
        )
        self.assert_right(case)

  def test_one_optimizer_in_a_graph_and_eagerly(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        step = v1.train.get_or_create_global_step()
        rate = v1.train.exponential_decay(RATE, step, 1, 0.5)
        return v1.train.RMSPropOptimizer(rate, momentum=0.5)

      make_tf2_optimizer = make_tf1_optimizer

    self.assert_right(Case)

  def test_an_optimizer_that_counts_in_a_variable_of_its_own(self):
    class Case(OwnLoop):
      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(RATE, 0.9)

      def make_tf2_optimizer(self):
        optimizer = v1.train.MomentumOptimizer(RATE, 0.9)
        optimizer.own_count = tf.Variable(0, dtype=tf.int64)
        return optimizer

      def update(self, optimizer, gradients, variables):
        pairs = zip(gradients, variables, strict=True)
        optimizer.apply_gradients(pairs, global_step=optimizer.own_count)

    notes = self.assert_right(Case).notes
    self.assertIn('global_step is not compared', ' '.join(notes))

  def test_in_float64(self):
    class Case(Trained):
      def model(self, inputs, training):
        return inputs @ v1.get_variable('kernel', [3, 3], tf.float64)

      def make_tf2_layer(self):  # a Keras layer casts its inputs
        return tiny_models.ShimModule(self.port)

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)).astype(np.float64)

      def make_labels(self):
        return super().make_labels().astype(np.float64)

      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(RATE)

      def make_tf2_optimizer(self):
        return keras.Adam(RATE, epsilon=1e-8)

    self.assert_right(Case)

  def test_dropout_and_moving_averages(self):
    class Case(Trained):
      def model(self, inputs, training):
        net = v1.layers.batch_normalization(inputs @ kernel(), training=training, name='norm')
        return v1.nn.dropout(net, rate=0.2) if training else net

    self.assert_right(Case)

  def test_renamed_variables(self):
    class Case(Trained):
      variable_names = {'kernel': 'port/kernel', 'bias': 'port/bias'}

      def port(self, inputs, training):
        with v1.variable_scope('port'):
          return self.model(inputs, training)

    self.assert_right(Case)

  def test_what_rounding_makes_of_a_gradient_that_is_zero(self):
    class Case(Trained):
      """A bias in front of a batch norm: Adam moves it by the sign of rounding errors."""

      def model(self, inputs, training):
        net = inputs @ kernel() + bias()
        net = v1.layers.batch_normalization(net, training=training, name='norm')
        return net @ v1.get_variable('last', [3, 3])

      def port(self, inputs, training):
        net = tf.add(bias(), inputs @ kernel())
        norm = v1.layers.batch_normalization(net, training=training, name='norm')
        return tf.transpose(tf.transpose(v1.get_variable('last', [3, 3])) @ tf.transpose(norm))

      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(RATE)

      def make_tf2_optimizer(self):
        return keras.Adam(RATE, epsilon=1e-8)

    found = self.assert_right(Case)
    self.assertGreater(found.compared.inconclusive + found.compared.rounding, 0)


class WrongTest(TrainingStepsTestCase):
  def test_learning_rate(self):
    class Case(Trained):
      def make_tf2_optimizer(self):
        return keras.SGD()

    text = self.assert_parts(
      Case,
      'learning rate (of the step) [step 1]',
      "the port's learning rate is 0.2 of TF1's",
      'tensors that differ',
      'steps 2 to 3 continue from',
    )
    self.assertNotIn('[step 2]', text)
    # What follows from it comes behind it.
    self.assertLess(text.index('learning rate (of'), text.index('update kernel [step 1]'))

  def test_schedule_that_parts_at_the_third_step(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        step = v1.train.get_or_create_global_step()
        rate = v1.train.piecewise_constant(step, [1], [RATE, RATE / 10])
        return v1.train.GradientDescentOptimizer(rate)

      def make_tf2_optimizer(self):
        return keras.SGD(RATE)

    self.assert_parts(Case, 'learning rate (of the step) [step 3]')

    class Earlier(Case):
      def make_tf1_optimizer(self):
        step = v1.train.get_or_create_global_step()
        rate = v1.train.piecewise_constant(step, [0], [RATE, RATE / 10])
        return v1.train.GradientDescentOptimizer(rate)

    self.assert_parts(Earlier, 'step 3 continues from the difference of step 2')

  def test_epsilon(self):
    class Case(Trained):
      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)) * np.array([1, 1, 1e-4], np.float32)

      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(RATE)

      def make_tf2_optimizer(self):
        return keras.Adam(RATE)

    text = self.assert_parts(Case, 'update kernel [step 1]', 'pass epsilon=1e-08')
    self.assertNotIn('gradient kernel', text)

  def test_start_of_the_accumulator(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        return v1.train.RMSPropOptimizer(RATE)

      def make_tf2_optimizer(self):
        return keras.RMSprop(RATE, epsilon=1e-10)

    self.assert_parts(
      Case,
      'slot squared gradient of kernel [step 1]',
      'update kernel [step 1]',
      'accumulated squared gradient starts at 0',
    )

  def test_clipping(self):
    class Case(Trained):
      def make_tf2_optimizer(self):
        return keras.SGD(RATE, global_clipnorm=0.1)

    text = self.assert_parts(Case, 'applied gradient kernel [step 1]')
    self.assertNotIn('\n  gradient kernel', text)

  def test_a_variable_that_is_not_trained(self):
    class Case(OwnLoop):
      def update(self, optimizer, gradients, variables):
        pairs = zip(gradients, variables, strict=True)
        optimizer.apply_gradients(pair for pair in pairs if 'bias' not in pair[1].name)

    text = self.assert_parts(Case, 'update bias [step 1]')
    self.assertNotIn('update kernel', text)

  def test_moving_averages_of_a_batch_norm(self):
    class Case(Trained):
      def model(self, inputs, training, trained=True):
        return v1.layers.batch_normalization(inputs @ kernel(), training=training, name='norm')

    class Forgets(Case, OwnLoop):
      def update(self, optimizer, gradients, variables):
        super().update(optimizer, gradients, variables)
        self.average.assign(tf.zeros_like(self.average))

      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        case, call = self, layer.call

        def remembering(inputs, training=False):
          outputs = call(inputs, training=training)
          case.average = next(v for v in layer.variables if 'moving_mean' in v.name)
          return outputs

        layer.call = remembering
        return layer

    class Right(Case):
      pass

    self.assert_right(Right)
    self.assert_parts(Forgets, 'state norm/moving_mean [step 1]')

  def test_decay_of_averaged_weights(self):
    class Case(OwnLoop):
      decay = 0.5

      def make_tf1_train_op(self, loss):
        optimizer = v1.train.GradientDescentOptimizer(RATE)
        train_op = optimizer.minimize(loss, v1.train.get_or_create_global_step())
        with tf.control_dependencies([train_op]):
          return tf.train.ExponentialMovingAverage(0.5).apply(v1.trainable_variables())

      def make_tf2_optimizer(self):
        return keras.SGD(RATE)

      def update(self, optimizer, gradients, variables):
        if not hasattr(optimizer, 'averages'):
          optimizer.averages = {
            v.ref(): tf.Variable(v, name=f'{v.name[:-2]}/ExponentialMovingAverage')
            for v in variables
          }
        super().update(optimizer, gradients, variables)
        for variable in variables:
          average = optimizer.averages[variable.ref()]
          average.assign_sub((1 - self.decay) * (average - variable))

    class Wrong(Case):
      decay = 0.9

    class Without(Case):
      def update(self, optimizer, gradients, variables):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))

    self.assert_right(Case)
    self.assert_parts(Wrong, 'shadow kernel [step 1]')
    self.assert_parts(Without, 'shadow kernel [step 1]: presence differs')


class UndecidedTest(TrainingStepsTestCase):
  def test_reference_that_never_runs_its_updates(self):
    class Case(Trained):
      run_update_ops = False

      def model(self, inputs, training):
        return v1.layers.batch_normalization(inputs @ kernel(), training=training, name='norm')

    class AndAFault(Case):
      def make_tf2_optimizer(self):
        return keras.SGD(2 * RATE)

    found = last(self.verdict(Case))
    self.assertIs(found.status, tf2verify.Status.INCONCLUSIVE, found.to_text())
    self.assertIn('the reference never runs 2 of its UPDATE_OPS', found.reason)
    self.assert_parts(AndAFault, 'learning rate (of the step) [step 1]')

  def test_a_tolerance_that_every_update_passes(self):
    class Case(Trained):
      training_tolerance = tf2verify.Tolerance(rtol=1e3, atol=0.0)

      def make_tf2_optimizer(self):
        return keras.SGD(2 * RATE)

    found = last(self.verdict(Case))
    self.assertIs(found.status, tf2verify.Status.INCONCLUSIVE, found.to_text())
    self.assertIn('no step moves a variable by more than the tolerance', found.reason)

  def test_a_learning_rate_of_zero(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.0)

      def make_tf2_optimizer(self):
        return keras.SGD(0.0)

    found = last(self.verdict(Case))
    self.assertIs(found.status, tf2verify.Status.INCONCLUSIVE, found.to_text())
    self.assertIn('no step moves a variable', found.reason)

  def test_what_is_not_told_is_counted(self):
    class Case(Trained):
      def make_tf1_train_op(self, loss):
        variables = v1.trainable_variables()
        pairs = zip(tf.gradients(loss, variables), variables, strict=True)
        return tf.group([v1.assign_sub(variable, RATE * grad) for grad, variable in pairs])

    found = self.assert_right(Case)
    self.assertEqual(found.compared.blind_spots, 1)
    self.assertIn('the learning rate is not known on the tf1 side', ' '.join(found.notes))

  def test_an_update_that_is_lost_in_rounding(self):
    class Case(Trained):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(1e-7)

      def make_tf2_optimizer(self):
        return keras.SGD(1e-7)

    found = self.assert_right(Case)
    self.assertIn('little more than the rounding', ' '.join(found.notes))


class NotApplicableTest(TrainingStepsTestCase):
  def assert_not_applicable(self, case, *words):
    found = last(self.verdict(case))
    self.assertIs(found.status, tf2verify.Status.NOT_APPLICABLE, found.to_text())
    for word in words:
      self.assertIn(word, found.reason)
    return found

  def test_no_hooks(self):
    class Case(tiny_models.Affine):
      pass

    class OneSide(tiny_models.Affine):
      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(RATE)

    found = self.assert_not_applicable(Case, 'make_tf1_optimizer', 'make_tf2_optimizer')
    self.assertEqual(found.blind_spots, ())
    found = self.assert_not_applicable(OneSide, 'make_tf2_optimizer (or tf2_train_step)')
    (blind_spot,) = found.blind_spots
    self.assertIn('declares make_tf1_optimizer, but neither make_tf2_optimizer', blind_spot)

  def test_number_of_steps(self):
    class Case(Trained):
      training_steps_to_take = 0

    found = last(self.verdict(Case))
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertIn('training_steps_to_take is 0', found.to_text())

  def test_an_optimizer_shared_by_both_sides(self):
    shared = v1.train.GradientDescentOptimizer(RATE)

    class Case(Trained):
      def make_tf1_optimizer(self):
        return shared

      make_tf2_optimizer = make_tf1_optimizer

    found = last(self.verdict(Case))
    self.assertIs(found.status, tf2verify.Status.ERROR)
    self.assertIn('made before the hook was called', found.to_text())


if __name__ == '__main__':
  absltest.main()
