"""NaN on both sides is no agreement: no stage passes on it, and the report says where it begins."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.tiny_models import kernel

v1 = tf.compat.v1
Status = tf2verify.Status


def frequency():
  """A positive average, of which the check makes one of both signs."""
  start = v1.constant_initializer(0.25)
  return v1.get_variable('frequency', [3], initializer=start, trainable=False)


class LogInLoss(tiny_models.OneModel, abc.ABC):
  """The outputs are numbers, and the loss is the logarithm of one of them."""

  rate = 0.1

  def model(self, inputs, training):
    return {'logits': tf.matmul(inputs, kernel()), 'prior': frequency() * 1.0}

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    prior = tf.reduce_sum(tf.math.log(outputs['prior']))
    return tf.reduce_mean(tf.square(outputs['logits'] - labels)) * prior

  def tf2_loss(self, outputs, labels):
    return self.tf1_loss(outputs, labels)

  def make_tf1_optimizer(self):
    return v1.train.MomentumOptimizer(0.1, 0.9)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(self.rate, momentum=0.9)


class LogBesideAverage(LogInLoss, abc.ABC):
  """Parts of the loss and an average of the step are numbers, whatever the loss is."""

  def tf1_loss(self, outputs, labels):
    return {'loss': super().tf1_loss(outputs, labels), 'size': tf.reduce_mean(outputs['logits'])}

  def model(self, inputs, training):
    seen = v1.get_variable('seen', [3], initializer=v1.ones_initializer(), trainable=False)
    if training:
      update = v1.assign(seen, 0.9 * seen + 0.1 * tf.reduce_mean(inputs, 0))
      v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
    return super().model(inputs, training)


class LogInModel(LogInLoss, abc.ABC):
  """The output itself is NaN."""

  def model(self, inputs, training):
    return tf.matmul(inputs, kernel()) * tf.reduce_sum(tf.math.log(frequency()))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))


class NanInOneOutput(LogInModel, abc.ABC):
  """One of two outputs is NaN for variables of either sign, the other one holds numbers."""

  def model(self, inputs, training):
    net = tf.matmul(inputs, kernel())
    return {'net': net, 'log': net * tf.math.log(-tf.abs(frequency()) - 1.0)}

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs['net'] - labels))


def stage_of(case, stage):
  return tf2verify.verify(case, stages=[stage]).stages[-1]


class NanTest(parameterized.TestCase):
  def assert_inconclusive(self, verdict, *words):
    self.assertIs(verdict.status, Status.INCONCLUSIVE, verdict.to_text())
    for word in words:
      self.assertIn(word, verdict.reason)

  @parameterized.parameters(
    ('loss', 'model loss total loss'),
    ('training_steps', 'every gradient'),
    ('training_steps', 'update'),
  )
  def test_a_loss_that_is_nan(self, stage, quantity):
    class Case(LogBesideAverage):
      pass

    self.assert_inconclusive(
      stage_of(Case, stage),
      f'{quantity} is NaN on both sides in every run',
      'tf1 first computes NaN in Log at ',
      'first_nan_test.py',
      'which depends on frequency',
      'override fill_values',
    )

  def test_training_that_ends_in_nan(self):
    class Case(tiny_models.Affine):
      def tf1_loss(self, outputs, labels):
        return tf.reduce_sum(tf.exp(tf.square(outputs)))

      def tf2_loss(self, outputs, labels):
        return self.tf1_loss(outputs, labels)

      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(1e20)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(1e20)

    verdict = stage_of(Case, 'training_steps')
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    self.assertIn('from step 3 on', '; '.join(verdict.blind_spots))

  def test_a_wrong_learning_rate_does_not_pass(self):
    class WrongCase(LogInLoss):
      rate = 0.2

      def tf2_train_step(self, layer, inputs, labels, optimizer):
        # Keeps its rate for itself, and gradients that are NaN are all that is seen.
        with tf.GradientTape() as tape:
          loss = self.tf2_loss(layer(inputs, training=True), labels)
        weights = layer.trainable_variables
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
          weight.assign_sub(0.3 * gradient)
        return loss

    verdict = stage_of(WrongCase, 'training_steps')
    self.assertIsNot(verdict.status, Status.PASSED, verdict.to_text())

  def test_the_declared_remedy_is_one(self):
    class Case(LogInLoss):
      def fill_values(self, name, shape, dtype):
        found = tf2verify.distinct_values(name, shape, dtype)
        return np.abs(found) if name == 'frequency' else found

    for stage in ('loss', 'training_steps', 'checkpoint'):
      verdict = stage_of(Case, stage)
      self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
      self.assertEmpty(verdict.blind_spots)

  def test_outputs_that_are_nan(self):
    class Case(LogInModel):
      pass

    words = 'every output is NaN on both sides in inference, distinct values', 'NaN in Log at '
    self.assert_inconclusive(stage_of(Case, 'zero_randomness'), *words)

  def test_gradients_that_are_nan(self):
    class Case(LogInModel):
      def loss(self, outputs):
        return tf.reduce_sum(outputs * outputs)

    self.assert_inconclusive(
      stage_of(Case, 'gradients'), 'gradient kernel is NaN', 'NaN in Log at '
    )

  def test_one_output_that_is_nan_is_a_blind_spot(self):
    class Case(NanInOneOutput):
      pass

    verdict = stage_of(Case, 'zero_randomness')
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    spots = '; '.join(verdict.blind_spots)
    self.assertIn("output ['log'] is NaN on both sides", spots)
    self.assertIn('tf1 first computes NaN in Log at ', spots)
    self.assertIn('depends on frequency', spots)

  def test_a_checkpoint_after_steps_that_made_nan(self):
    class Case(LogInLoss):
      pass

    verdict = stage_of(Case, 'checkpoint')
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    spots = '; '.join(verdict.blind_spots)
    self.assertIn('after 2 training steps of tf1 kernel hold NaN', spots)
    self.assertNotIn('output', spots)  # which are numbers at the values before the steps

  def test_a_checkpoint_whose_outputs_are_nan(self):
    class Case(LogInModel):
      pass

    verdict = stage_of(Case, 'checkpoint')
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())
    self.assertIn('is NaN on both sides', '; '.join(verdict.blind_spots))

  def test_a_checkpoint_of_nothing_but_nan_tells_nothing(self):
    class Case(LogInModel):
      def fill_values(self, name, shape, dtype):
        return np.full(shape, np.nan, dtype)

    self.assert_inconclusive(stage_of(Case, 'checkpoint'), 'restored values are NaN on both sides')

  def test_an_infinity_that_becomes_nan_is_named(self):
    class Case(LogInLoss):
      def fill_values(self, name, shape, dtype):
        found = tf2verify.distinct_values(name, shape, dtype)
        return np.zeros(shape, dtype) if name == 'frequency' else found

      def tf1_loss(self, outputs, labels):
        return super().tf1_loss(outputs, labels) + tf.reduce_sum(
          0.0 * tf.math.log(outputs['prior'])
        )

    verdict = stage_of(Case, 'loss')
    self.assert_inconclusive(verdict, 'infinities, which become NaN later, in Log at ')


if __name__ == '__main__':
  absltest.main()
