import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.sides.trained_sides import RATE, Trained, by_name, prepared, updates
from tests.stages import tiny_models
from tf2verify.errors import CaseDefinitionError, NotApplicable, UserCodeError

v1 = tf.compat.v1
keras = tf.keras.optimizers
legacy = keras.legacy


def steps_of(case_class, count=2):
  with prepared(case_class) as (case, run):
    return observed(case, run, count)


def observed(case, run, count=1):
  steps = case.tf2_training.begin_steps(run, count)
  taken = tuple(steps.take() for _ in range(count))
  return dataclasses.replace(steps.run(), steps=taken)


def with_optimizer(make):
  return type('Case', (Trained,), {'make_tf2_optimizer': lambda self: make()})


class LossesTest(absltest.TestCase):
  def test_as_on_the_tf1_side(self):
    class Case(tiny_models.Regularized):
      pass

    with prepared(Case) as (case, run):
      tf1, tf2 = case.tf1_training.observe_losses(run), case.tf2_training.observe_losses(run)
    self.assertEqual(tf1.loss, tf2.loss)
    self.assertEqual(tf1.total_loss, tf2.total_loss)
    self.assertEqual(tf1.regularization_total, tf2.regularization_total)
    np.testing.assert_array_equal(tf1.outputs, tf2.outputs)

  def test_loss_that_is_a_number_of_python(self):
    class Case(Trained):
      def tf2_train_step(self, layer, inputs):
        return {'loss': 0.1}

    (step,) = steps_of(Case, 1).steps
    self.assertEqual(step.loss, np.float32(0.1))
    self.assertEqual(step.loss.dtype, np.float32)

  def test_what_is_no_loss(self):
    class Case(Trained):
      def tf2_loss(self, outputs, labels):
        pass

    with self.assertRaisesRegex(CaseDefinitionError, 'tf2_loss returned None.*missing `return`'):
      steps_of(Case)


class StepsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('keras', lambda: keras.SGD(RATE)),
    ('legacy', lambda: legacy.SGD(RATE)),
    ('v1', lambda: v1.train.GradientDescentOptimizer(RATE)),
  )
  def test_gradient_descent(self, make):
    taken = steps_of(with_optimizer(make))
    self.assertEqual([step.global_step for step in taken.steps], [1, 2])
    self.assertEqual(taken.steps[0].learning_rate, RATE)
    self.assertEqual([record.rule for record in taken.optimizers], ['sgd'])
    self.assertLess(taken.steps[1].loss, taken.steps[0].loss)
    gradients = by_name(taken.steps[1].gradients)
    for name, update in updates(taken, 2).items():
      np.testing.assert_allclose(update, -RATE * gradients[name], atol=1e-6)

  @parameterized.named_parameters(
    ('keras', lambda: keras.SGD(keras.schedules.InverseTimeDecay(1.0, 1, 1.0))),
    ('legacy', lambda: legacy.SGD(keras.schedules.InverseTimeDecay(1.0, 1, 1.0))),
    (
      'v1',
      lambda: v1.train.GradientDescentOptimizer(
        v1.train.inverse_time_decay(1.0, v1.train.get_or_create_global_step(), 1, 1.0)
      ),
    ),
  )
  def test_schedules(self, make):
    taken = steps_of(with_optimizer(make), 3)
    np.testing.assert_allclose([s.learning_rate for s in taken.steps], [1, 1 / 2, 1 / 3])

  @parameterized.named_parameters(
    ('keras', lambda: keras.SGD(RATE, global_clipnorm=0.1)),
    ('legacy', lambda: legacy.SGD(RATE, global_clipnorm=0.1)),
  )
  def test_clipping_inside_the_optimizer(self, make):
    (step,) = steps_of(with_optimizer(make), 1).steps
    raw, applied = by_name(step.gradients), by_name(step.applied_gradients)
    norm = np.sqrt(sum(np.sum(np.square(value)) for value in raw.values()))
    np.testing.assert_allclose(applied['bias'], raw['bias'] * 0.1 / norm, rtol=1e-5)

  @parameterized.named_parameters(
    ('keras_adam', lambda: keras.Adam(), ['first moment', 'second moment']),
    ('legacy_adam', lambda: legacy.Adam(), ['first moment', 'second moment']),
    ('v1_adam', lambda: v1.train.AdamOptimizer(), ['first moment', 'second moment']),
    ('keras_sgd', lambda: keras.SGD(0.1, 0.9), ['velocity']),
    ('legacy_sgd', lambda: legacy.SGD(0.1, 0.9), ['velocity']),
    ('v1_momentum', lambda: v1.train.MomentumOptimizer(0.1, 0.9), ['momentum']),
    ('plain_sgd', lambda: keras.SGD(0.1), []),
    ('averaged', lambda: keras.SGD(0.1, use_ema=True), ['shadow']),
    ('keras_ftrl', lambda: keras.Ftrl(), ['squared gradient', 'linear']),
    ('legacy_ftrl', lambda: legacy.Ftrl(), ['squared gradient', 'linear']),
    ('adadelta', lambda: keras.Adadelta(), ['squared gradient', 'squared update']),
    ('adamax', lambda: keras.Adamax(), ['first moment', 'infinity norm']),
  )
  def test_slots(self, make, roles):
    (step,) = steps_of(with_optimizer(make), 1).steps
    found = [slot.role for slot in step.slots if slot.variable == 'kernel']
    self.assertCountEqual(found, roles)

  def test_slots_before_the_first_step(self):
    taken = steps_of(with_optimizer(lambda: keras.Adagrad(RATE)), 1)
    before = next(slot for slot in taken.slots_before if slot.variable == 'bias')
    np.testing.assert_array_equal(before.value, np.full(3, 0.1, np.float32))

  def test_fresh_layer_and_optimizer_for_every_run(self):
    with prepared(Trained) as (case, run):
      first, again = (observed(case, run) for _ in range(2))
    self.assertEqual(first.steps[0].loss, again.steps[0].loss)
    self.assertEqual(again.steps[0].global_step, 1)


class OwnStepTest(absltest.TestCase):
  def test_loop_with_an_optimizer_and_a_moving_average(self):
    class Case(Trained):
      def tf2_train_step(self, layer, inputs, labels, optimizer):
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
        variables = layer.trainable_variables
        pairs = zip(tape.gradient(loss, variables), variables, strict=True)
        optimizer.apply_gradients(pairs)
        if not hasattr(optimizer, 'average'):
          optimizer.average = tf.train.ExponentialMovingAverage(0.5)
        optimizer.average.apply(variables)
        return loss

    taken, framework = steps_of(Case), steps_of(Trained)
    self.assertEqual(taken.steps[1].loss, framework.steps[1].loss)
    self.assertEqual(set(by_name(taken.steps[0].gradients)), {'kernel', 'bias'})
    shadow = next(s for s in taken.steps[0].slots if (s.role, s.variable) == ('shadow', 'bias'))
    # Made in the first step, it starts with the value of then.
    np.testing.assert_array_equal(shadow.value, by_name(taken.steps[0].variables)['bias'])

  def test_takes_what_it_asks_for(self):
    class Case(Trained):
      def tf2_train_step(self, layer, inputs):
        with tf.GradientTape() as tape:
          loss = tf.reduce_sum(layer(inputs, training=True))
        variables = layer.trainable_variables
        for gradient, variable in zip(tape.gradient(loss, variables), variables, strict=True):
          variable.assign_sub(RATE * gradient)

    (step,) = steps_of(Case, 1).steps
    self.assertIsNone(step.loss)
    self.assertIsNone(step.learning_rate)
    self.assertEqual(set(by_name(step.gradients)), {'kernel', 'bias'})

  def test_train_step_of_a_keras_model(self):
    class Model(tf.keras.Model):
      def __init__(self, forward):
        super().__init__()
        self._forward = forward

      @tiny_models.under_shim
      def call(self, inputs, training=False):
        return self._forward(inputs, training)

    class Case(Trained):
      def make_tf2_layer(self):
        model = Model(self.model)
        model.compile(keras.SGD(RATE), 'mse')
        return model

      def tf2_train_step(self, layer, inputs, labels):
        return layer.train_step((inputs, labels))

    taken, framework = steps_of(Case), steps_of(Trained)
    for step, expected in zip(taken.steps, framework.steps, strict=True):
      np.testing.assert_allclose(step.loss, expected.loss, rtol=1e-6)
      self.assertEqual(step.global_step, expected.global_step)

  def test_what_is_no_loss(self):
    class Case(Trained):
      def tf2_train_step(self, layer, inputs):
        return self.returned

    for returned, words in (({'accuracy': 1.0}, "without 'loss'"), ('done', 'of type str')):
      with self.subTest(words), self.assertRaisesRegex(CaseDefinitionError, words):
        steps_of(type('Wrong', (Case,), {'returned': returned}))


class WrongHooksTest(absltest.TestCase):
  def test_optimizers(self):
    shared = keras.SGD()
    for make, words in (
      (lambda: None, 'missing `return`'),
      (lambda: keras.SGD, 'it is the class'),
      (lambda: 'sgd', "tf.keras.optimizers.get\\('sgd'\\)"),
    ):
      with self.subTest(words), self.assertRaisesRegex(CaseDefinitionError, words):
        steps_of(with_optimizer(make))
    with self.assertRaisesRegex(CaseDefinitionError, 'the same tf.keras.optimizers.SGD twice'):
      steps_of(with_optimizer(lambda: shared))
    used = keras.SGD()
    used.iterations.assign(3)
    with self.assertRaisesRegex(CaseDefinitionError, 'used before'):
      steps_of(with_optimizer(lambda: used))

  def test_code_that_raises(self):
    with self.assertRaisesRegex(UserCodeError, 'make_tf2_optimizer raised ZeroDivisionError'):
      steps_of(with_optimizer(lambda: 1 / 0))

  def test_no_hook(self):
    class Case(tiny_models.Affine):
      pass

    with self.assertRaisesRegex(NotApplicable, 'neither make_tf2_optimizer nor'):
      steps_of(Case)


if __name__ == '__main__':
  absltest.main()
