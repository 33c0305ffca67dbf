"""Right ports whose operations round otherwise, and ports that only look like it."""

import abc
import functools
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tf2verify import Status
from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.numerics.tolerance import Tolerance
from tf2verify.records.difference import Aspect, Difference
from tf2verify.stages.comparison.noise import double_precision
from tf2verify.stages.comparison.noise.double_precision import FACTOR
from tf2verify.stages.comparison.noise.rounding import Sorted, Suspect

v1 = tf.compat.v1
_EXPLAINED = 'computed with 64 bits, both sides agree'


def _logistic(x, mean, log_scale):
  """Of 256 grey values, as PixelCNN++ has it."""
  inverse = tf.exp(-log_scale)
  above = inverse * (x - mean + 1.0 / 255.0)
  below = inverse * (x - mean - 1.0 / 255.0)
  return -tf.reduce_sum(tf.math.log(tf.maximum(tf.sigmoid(above) - tf.sigmoid(below), 1e-12)))


class Likelihood(tiny_models.OneModel, abc.ABC):
  """A port that divides first: `z + half` loses digits of `half`."""

  width = 255.0

  def model(self, inputs, training):
    kernel = v1.get_variable('kernel', [3, 128])
    mean, log_scale = tf.split(tf.tanh(tf.matmul(inputs, kernel)), 2, axis=1)
    return {'mean': 0.5 * mean, 'log_scale': log_scale - 1.0}

  def make_labels(self):
    return np.round(np.clip(tf2verify.normal_inputs((4, 64)), -0.9, 0.9) * 127.5) / 127.5

  def tf1_loss(self, outputs, labels):
    return _logistic(labels, outputs['mean'], outputs['log_scale'])

  def tf2_loss(self, outputs, labels):
    z = (labels - outputs['mean']) / tf.exp(outputs['log_scale'])
    half = tf.exp(-outputs['log_scale']) / self.width
    mass = tf.sigmoid(z + half) - tf.sigmoid(z - half)
    return -tf.reduce_sum(tf.math.log(tf.maximum(mass, 1e-12)))


class AnotherWidth(Likelihood, abc.ABC):
  """A mistake: the grey values are 255 steps apart."""

  width = 256.0


class Distances(tiny_models.OneModel, abc.ABC):
  """Variances of numbers that are far from 0."""

  def make_inputs(self):
    return 60.0 + tf2verify.normal_inputs((4, 8))

  def model(self, inputs, training):
    scale = v1.get_variable('scale', [])
    return scale * tf.reduce_mean(tf.square(inputs - tf.reduce_mean(inputs, 1, keepdims=True)), 1)

  def port(self, inputs, training):
    scale = v1.get_variable('scale', [])
    squares = tf.reduce_mean(tf.square(inputs), 1)
    return scale * (squares - tf.square(tf.reduce_mean(inputs, 1)))


class WideInside(tiny_models.OneModel, abc.ABC):
  """TF1 computes with 64 bits on purpose, and the port has lost that."""

  def make_inputs(self):
    return 60.0 + tf2verify.normal_inputs((4, 8))

  def computed(self, inputs, dtype):
    wide = tf.cast(inputs, dtype)
    squares = tf.reduce_mean(tf.square(wide), 1)
    return tf.cast(squares - tf.square(tf.reduce_mean(wide, 1)), tf.float32)

  def model(self, inputs, training):
    return v1.get_variable('scale', []) * self.computed(inputs, tf.float64)

  def port(self, inputs, training):
    return v1.get_variable('scale', []) * self.computed(inputs, tf.float32)


class Slopes(tiny_models.OneModel, abc.ABC):
  """A gradient of normalized units, which are all the same where all weights are."""

  floor = 1e-8

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 6))

  def model(self, inputs, training):
    scores = self.scores(inputs, tf.nn.moments)
    return self.slopes(v1.gradients(scores, [inputs])[0], 1e-8)

  def port(self, inputs, training):
    def moments(h, axes, keepdims):
      mean = tf.reduce_mean(h, axes, keepdims=keepdims)
      return mean, tf.reduce_mean((h - mean) ** 2, axes, keepdims=keepdims)

    with tf.GradientTape(watch_accessed_variables=False) as tape:
      tape.watch(inputs)
      scores = self.scores(inputs, moments)
    return self.slopes(tape.gradient(scores, inputs), self.floor)

  def scores(self, inputs, moments):
    kernel, weights, gamma, beta = (
      v1.get_variable(name, shape)
      for name, shape in (
        ('kernel', [6, 12]),
        ('weights', [12, 1]),
        ('gamma', [12]),
        ('beta', [12]),
      )
    )
    h = tf.nn.softplus(tf.matmul(inputs, kernel))
    mean, variance = moments(h, [-1], keepdims=True)
    net = (h - mean) * tf.math.rsqrt(variance + 1e-12) * gamma + beta
    return tf.matmul(net, weights)[:, 0]

  def slopes(self, gradient, floor):
    return tf.sqrt(tf.reduce_sum(tf.square(gradient), 1) + floor)


class OtherFloor(Slopes, abc.ABC):
  """A mistake that is as small."""

  floor = 1.4e-8


class Halved(tiny_models.OneModel, abc.ABC):
  """A port that rounds to 16 bits on the way, in a part that is small."""

  def model(self, inputs, training):
    net = tf.matmul(inputs, v1.get_variable('kernel', [3, 5]))
    return net + 0.05 * self.part(net)

  def part(self, net):
    return tf.tanh(net)

  def port(self, inputs, training):
    net = tf.matmul(inputs, v1.get_variable('kernel', [3, 5]))
    return net + 0.05 * tf.cast(self.part(tf.cast(net, tf.float16)), tf.float32)


class StableForm(tiny_models.OneModel, abc.ABC):
  """A penalty that TF1 computes as `log(1 - exp(x))`, and the port without losing digits.

  It is no part of the loss of given outputs: totals and training steps alone show it.
  """

  rate = 1e-5

  def model(self, inputs, training):
    return tf.matmul(inputs, v1.get_variable('kernel', [3, 5]))

  def make_labels(self):
    return tf2verify.normal_inputs((4, 5), seed=3)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def tf1_total_loss(self, outputs, labels):
    (kernel,) = v1.trainable_variables()
    mass = 1.0 - tf.exp(-1e-5 * (1.0 + tf.square(kernel)))
    return self.tf1_loss(outputs, labels) + 0.1 * tf.reduce_sum(tf.math.log(mass))

  def tf2_total_loss(self, layer, outputs, labels):
    (kernel,) = layer.trainable_variables
    mass = -tf.math.expm1(-self.rate * (1.0 + tf.square(kernel)))
    return self.tf2_loss(outputs, labels) + 0.1 * tf.reduce_sum(tf.math.log(mass))

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(0.1)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1)


class AnotherRate(StableForm, abc.ABC):
  """A mistake, in the same place."""

  rate = 1.002e-5


def _stage(case, name):
  return tf2verify.verify(type('Case', (case,), {}), stages=[name]).stages[-1]


class BesideTheGraph(tf2verify.EquivalenceCase, abc.ABC):
  """The port changes its second step in Python: a trace of its step does not show that."""

  factor = 1.0

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 3, name='dense')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(3, name='dense')])

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(outputs**2)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.GradientDescentOptimizer(0.1)

  def make_tf2_optimizer(self):
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.steps = []
    return optimizer

  def tf2_train_step(self, layer, inputs, optimizer):
    optimizer.steps.append(None)
    with tf.GradientTape() as tape:
      loss = self.tf2_total_loss(layer, layer(inputs, training=True), None)
    gradients = tape.gradient(loss, layer.trainable_variables)
    factor = self.factor if len(optimizer.steps) == 2 and tf.executing_eagerly() else 1.0
    scaled = [factor * gradient for gradient in gradients]
    optimizer.apply_gradients(zip(scaled, layer.trainable_variables, strict=True))
    return loss


class DoublePrecisionTest(LadderTestCase):
  def test_a_step_that_differs_beside_its_graph(self):
    for factor, status in ((1.0, Status.PASSED), (1.0005, Status.FAILED)):

      class Case(BesideTheGraph):
        pass

      Case.factor = factor
      with self.subTest(factor):
        found = tf2verify.verify(Case, ['training_steps']).stages[-1]
        self.assertIs(found.status, status, found.to_text())

  def test_another_order_of_operations(self):
    stage = _stage(Likelihood, 'loss')
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())
    self.assertIn(_EXPLAINED, ' '.join(stage.notes))

  def test_another_constant(self):
    stage = _stage(AnotherWidth, 'loss')
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    self.assertNotIn(_EXPLAINED, ' '.join(stage.notes))

  def test_a_form_that_is_more_exact_than_tf1_in_the_totals_and_in_training(self):
    verdict = self.assert_passes(type('Case', (StableForm,), {}), 'training_steps')
    for stage in verdict.stages[-2:]:
      self.assertIn(_EXPLAINED, ' '.join(stage.notes), stage.to_text())
    self.assert_first_failure(type('Case', (AnotherRate,), {}), 'loss')

  def test_slots_that_follow_from_a_gradient(self):
    """Momentum of Keras is another multiple than that of TF1: no graph has one for the other."""
    keras = tf.keras.optimizers.legacy

    class Case(StableForm):
      training_steps_to_take = 1

      def make_tf1_optimizer(self):
        return v1.train.MomentumOptimizer(1e-3, 0.9)

      def make_tf2_optimizer(self):
        return keras.SGD(1e-3, momentum=0.9)

    self.assert_passes(Case, 'training_steps')

    class Other(Case):
      def make_tf2_optimizer(self):
        return keras.SGD(1.0002e-3, momentum=0.9)

    self.assert_first_failure(Other, 'training_steps', 'learning rate')

  def test_training_alone(self):
    """A gradient by another formula is as right, and one of another factor is not."""

    def training_alone(factor):
      class Case(StableForm):
        def tf1_total_loss(self, outputs, labels):
          return self.tf1_loss(outputs, labels)

        def tf2_total_loss(self, layer, outputs, labels):
          return self.tf2_loss(outputs, labels)

        def make_tf1_train_op(self, loss):
          (kernel,) = v1.trainable_variables()
          x = -1e-5 * (1.0 + tf.square(kernel))
          return kernel.assign_sub(1e-7 * kernel * tf.exp(x) / (1.0 - tf.exp(x)))

        def tf2_train_step(self, layer, inputs, labels, optimizer):
          (kernel,) = layer.trainable_variables
          x = -1e-5 * (1.0 + tf.square(kernel))
          kernel.assign_sub(factor * 1e-7 * kernel * tf.exp(x) / -tf.math.expm1(x))

      Case.make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
      return Case

    verdict = self.assert_passes(training_alone(1.0), 'training_steps')
    self.assertIn(_EXPLAINED, ' '.join(verdict.stages[-1].notes), verdict.to_text())
    self.assert_first_failure(training_alone(1.002), 'training_steps')

  def test_more_rounding_than_in_tf1_is_said(self):
    for case in (Distances, WideInside):
      stage = _stage(case, 'zero_randomness')
      self.assertIs(stage.status, tf2verify.Status.FAILED, stage.to_text())
      (note,) = (note for note in stage.notes if _EXPLAINED in note)
      times = float(note.partition('which is ')[2].partition(' times')[0])
      self.assertGreater(times, FACTOR)

  def test_nothing_but_rounding_in_tf1(self):
    stage = _stage(Slopes, 'zero_randomness')
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())
    self.assertIn(_EXPLAINED, ' '.join(stage.notes), stage.to_text())
    stage = _stage(OtherFloor, 'zero_randomness')
    self.assertIs(stage.status, tf2verify.Status.FAILED)

  def test_rounding_to_fewer_bits_is_none_of_32(self):
    stage = _stage(Halved, 'zero_randomness')
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    self.assertNotIn(_EXPLAINED, ' '.join(stage.notes))

  def _judged(self, *tensors, size=2.0, difference=None, lined_up=False):
    """Returns the kinds of tensors, each given by the errors of both sides and the noise of TF1."""
    suspects, judged, errors = [], [], {}
    for number, (tf1, tf2, noise) in enumerate(tensors):
      found = Difference('gradient', f'w{number}', Aspect.VALUES)
      suspects.append(Suspect(found, *[np.float32([1.0, 2.0])] * 2, Tolerance(1e-6, 1e-6)))
      judged.append((found, NoiseVerdict(Kind.DIFFERENT, difference or tf2, noise, size)))
      errors[found.key] = double_precision._Errors(apart=1e-14, tf1=tf1, tf2=tf2)
    with mock.patch.object(double_precision, '_errors', return_value=errors):
      after = double_precision.explained(suspects, Sorted(tuple(judged)), list, lined_up=lined_up)
    self.assertIn(_EXPLAINED, after.notes[0])
    return [noise.kind for _, noise in after.judged]

  def test_one_run_of_tf1_that_rounds_little_by_chance(self):
    """The port's error is set beside the noise of several runs of TF1, too."""
    self.assertEqual(self._judged((3e-7, 1e-5, 5e-6)), [Kind.ROUNDING])
    for noise in (2e-6, 0.0, np.nan):
      self.assertEqual(self._judged((3e-7, 1e-5, noise)), [Kind.DIFFERENT], noise)
    with self.subTest('large'):
      self.assertEqual(self._judged((3e-3, 1e-1, 5e-2)), [Kind.DIFFERENT])

  def test_values_of_tf1_that_are_nothing_but_rounding(self):
    """A gradient that is zero in exact arithmetic, below a root: the port's is."""
    judged = functools.partial(self._judged, difference=1.2, lined_up=True)
    self.assertEqual(judged((0.6, 1e-7, 1e-9)), [Kind.ROUNDING])
    self.assertEqual(judged((1e-7, 0.6, 1e-9)), [Kind.DIFFERENT])

  def test_each_tensor_has_to_be_rounding(self):
    """One that noise excuses, and is further from TF1's own error, hides no other one."""
    excused, beyond = (3e-7, 1e-4, 5e-5), (3e-7, 2e-6, 2e-7)
    self.assertEqual(self._judged(excused), [Kind.ROUNDING])
    for tensors in ((excused, beyond), (beyond, excused)):
      self.assertEqual(self._judged(*tensors), [Kind.DIFFERENT] * 2)


if __name__ == '__main__':
  absltest.main()
