"""Tests of stages.training.graphs.step_graphs: which line of a training step a report names."""

import abc
import inspect
from unittest import mock

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.losses.loss_lines_test import line_of
from tf2verify.sides.tf1.training import Tf1Training
from tf2verify.stages.training import training_steps

v1 = tf.compat.v1


class _Case(tiny_models.Affine, abc.ABC):
  training_steps_to_take = 2

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))


def _slot(variable, name):
  return v1.get_variable(
    f'{variable.op.name}/{name}',
    variable.shape,
    trainable=False,
    initializer=v1.zeros_initializer(),
  )


def decayed_adam(loss):
  """Adam with weight decay and averages of the weights, all by hand."""
  variables = v1.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
  updates = []
  for gradient, variable in zip(gradients, variables, strict=True):
    m, v = _slot(variable, 'adam_m'), _slot(variable, 'adam_v')
    next_m = 0.9 * m + 0.1 * gradient
    next_v = 0.99 * v + 0.01 * tf.square(gradient)
    step = next_m / (tf.sqrt(next_v) + 1e-3) + 0.01 * variable
    updates += [variable.assign(variable - 0.05 * step), m.assign(next_m), v.assign(next_v)]
  with tf.control_dependencies(updates):
    averages = [
      v1.get_variable(f'{v.op.name}/ema', initializer=v.initial_value, trainable=False)
      for v in variables
    ]
    averaged = [a.assign(0.9 * a + 0.1 * v) for a, v in zip(averages, variables, strict=True)]
  return tf.group(*averaged)


class DecayedAdam:
  """The port of it; a mistake is a subclass that overrides one line."""

  def __init__(self):
    self.m, self.v, self.averages = {}, {}, {}

  def clipped(self, gradients):
    return tf.clip_by_global_norm(gradients, 0.5)[0]

  def direction(self, m, v):
    return m / (tf.sqrt(v) + 1e-3)

  def decay(self, variable):
    return 0.01 * variable

  def average(self, variables):
    for variable in variables:
      average = self.averages[variable.name]
      average.assign(0.9 * average + 0.1 * variable)

  def update(self, gradients, variables):
    for gradient, variable in zip(gradients, variables, strict=True):
      m, v = self.m[variable.name], self.v[variable.name]
      m.assign(0.9 * m + 0.1 * gradient)
      v.assign(0.99 * v + 0.01 * gradient**2)
      variable.assign_sub(0.05 * (self.direction(m, v) + self.decay(variable)))

  def create(self, variables):
    for variable in variables if not self.m else ():
      self.m[variable.name] = tf.Variable(tf.zeros_like(variable))
      self.v[variable.name] = tf.Variable(tf.zeros_like(variable))
      name = f'{variable.name.split(":")[0]}/ema'
      self.averages[variable.name] = tf.Variable(variable, name=name)

  def apply(self, gradients, variables):
    self.create(variables)
    self.update(self.clipped(gradients), variables)
    self.average(variables)


class ByHand(_Case, abc.ABC):
  optimizer: type[DecayedAdam] = DecayedAdam

  def make_tf1_train_op(self, loss):
    return decayed_adam(loss)

  def make_tf2_optimizer(self):
    return self.optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


class EpsilonUnderRoot(DecayedAdam):
  def direction(self, m, v):
    return m / tf.sqrt(v + 1e-3)


class OtherDecay(DecayedAdam):
  def decay(self, variable):
    return 0.02 * variable


class EachClipped(DecayedAdam):
  def clipped(self, gradients):
    return [tf.clip_by_norm(gradient, 0.5) for gradient in gradients]


class AveragedFirst(DecayedAdam):
  def apply(self, gradients, variables):
    self.create(variables)
    self.average(variables)
    self.update(self.clipped(gradients), variables)


class WithNumpy(DecayedAdam):
  def decay(self, variable):
    return 0.02 * (variable + 0.0).numpy()  # no number, and no variable either


def diagnosis_of(test, case):
  verdict = tf2verify.verify(case, stages=['training_steps']).stages[-1]
  test.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
  assert verdict.diagnosis is not None
  return verdict.diagnosis, verdict.to_text()


class ByHandTest(parameterized.TestCase):
  @parameterized.parameters(
    (EpsilonUnderRoot, EpsilonUnderRoot.direction, 'sqrt(v + 1e-3)', 'next_v) + 1e-3'),
    (OtherDecay, OtherDecay.decay, '0.02', '0.01 * variable'),
    (EachClipped, EachClipped.clipped, 'clip_by_norm', 'clip_by_global_norm'),
    (AveragedFirst, DecayedAdam.average, 'assign', 'a.assign'),
  )
  def test_mistake(self, optimizer, method, ported, original):
    class Case(ByHand):
      pass

    Case.optimizer = optimizer
    diagnosis, text = diagnosis_of(self, Case)
    source = diagnosis.sources[0]
    self.assertIsNotNone(source.tf2_source, text)
    self.assertEqual(source.tf2_source.line, line_of(method, ported), text)
    self.assertEqual(source.tf1_source.line, line_of(decayed_adam, original), text)
    self.assertEqual(diagnosis.run, 'step 1')

  def test_right_port_is_not_looked_into(self):
    class Case(ByHand):
      relate_graphs = False  # which looks at the step of a right port as well

    # So does what asks whether the step depends on the count.
    later = mock.patch.object(training_steps, 'compare_later_counts', return_value=())
    with later, mock.patch.object(Tf1Training, 'inspectable_step') as looked:
      verdict = tf2verify.verify(Case, stages=['training_steps']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    looked.assert_not_called()

  def test_step_that_cannot_be_traced(self):
    class Case(ByHand):
      optimizer = WithNumpy

    diagnosis, text = diagnosis_of(self, Case)
    self.assertEqual(diagnosis.sources, ())
    self.assertIn('the training step of the port cannot be traced as a graph', text)
    self.assertIn('training, step by step', text)

  def test_fault_of_the_search_costs_no_verdict(self):
    class Case(ByHand):
      optimizer = OtherDecay

    with mock.patch.object(Tf1Training, 'inspectable_step', side_effect=KeyError('planted')):
      diagnosis, _ = diagnosis_of(self, Case)
    self.assertEqual(diagnosis.notes, ("the diagnosis was abandoned: KeyError: 'planted'",))


class OptimizerTest(parameterized.TestCase):
  @parameterized.parameters(
    (lambda: tf.keras.optimizers.Adam(0.01, epsilon=1e-2), 'y 0.001 (tf1), 0.01 (tf2)'),
    (lambda: tf.keras.optimizers.legacy.Adam(0.01, epsilon=1e-2), 'y 0.001 (tf1), 0.01 (tf2)'),
    (lambda: v1.train.AdamOptimizer(0.01, epsilon=1e-2), 'y 0.001 (tf1), 0.01 (tf2)'),
  )
  def test_setting(self, make, words):
    class Case(_Case):
      def make_tf1_optimizer(self):
        return v1.train.AdamOptimizer(0.01, epsilon=1e-3)

      def make_tf2_optimizer(self):
        return make()

    diagnosis, text = diagnosis_of(self, Case)
    self.assertNotEmpty(diagnosis.sources, text)
    source = diagnosis.sources[0]
    self.assertIn(words, text)
    # An optimizer of a library is mended where it is made.
    self.assertEqual(source.tf1_source.line, line_of(Case.make_tf1_optimizer, '1e-3'), text)
    self.assertEqual(source.tf2_source.line, inspect.getsourcelines(make)[1], text)

  def test_slot_that_starts_otherwise(self):
    class Case(_Case):
      def make_tf1_optimizer(self):
        return v1.train.RMSPropOptimizer(0.01)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.legacy.RMSprop(0.01, rho=0.9, epsilon=1e-10)

    diagnosis, text = diagnosis_of(self, Case)
    source = diagnosis.sources[0]
    self.assertTrue(source.is_initial_value, text)
    self.assertStartsWith(source.tf1_op, 'squared gradient of ')
    self.assertEqual(source.absolute, 1.0)
    self.assertEqual(source.tf1_source.line, line_of(Case.make_tf1_optimizer, '0.01'), text)
    self.assertEqual(source.tf2_source.line, line_of(Case.make_tf2_optimizer, '0.01'), text)


if __name__ == '__main__':
  absltest.main()
