"""Mistakes in an update that float32 hides in the first step at some of the variables."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify.records.experiment import Outcome

v1 = tf.compat.v1


class RMSProp(tf.Module):
  """RMSProp of TF1, by hand."""

  def __init__(self):
    super().__init__()
    self.means, self.momenta = {}, {}

  def divided(self, gradient, mean):
    return gradient / tf.sqrt(mean + 1e-3)

  def apply(self, gradients, variables):
    for gradient, variable in zip(gradients, variables, strict=True):
      name = variable.name
      if name not in self.means:
        self.means[name] = tf.Variable(tf.ones_like(variable), name=f'{name[:-2]}/means')
        self.momenta[name] = tf.Variable(tf.zeros_like(variable), name=f'{name[:-2]}/momenta')
      mean, momentum = self.means[name], self.momenta[name]
      mean.assign(0.9 * mean + (1 - 0.9) * tf.square(gradient))
      momentum.assign(0.9 * momentum + 0.01 * self.divided(gradient, mean))
      variable.assign_sub(momentum)


class EpsilonOutside(RMSProp):
  def divided(self, gradient, mean):
    return gradient / (tf.sqrt(mean) + 1e-3)


class Unrooted(RMSProp):
  def divided(self, gradient, mean):
    return gradient / (mean + 1e-3)


class _Case(tiny_models.Affine, abc.ABC):
  training_steps_to_take = 4

  def fill_values(self, name, shape, dtype):
    del dtype
    # Beside which a step is small.
    return tf2verify.normal_inputs(shape, seed=3) + (3.0 if 'bias' in name else 0.0)

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.RMSPropOptimizer(0.01, decay=0.9, momentum=0.9, epsilon=1e-3)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    variables = layer.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


def steps_of(make):
  class Case(_Case):
    def make_tf2_optimizer(self):
      return make()

  return tf2verify.verify(Case, stages=['training_steps']).stages[-1]


class EditsOfAllVariablesTest(absltest.TestCase):
  def test_another_last_operation_is_replaced_with_what_leads_to_it(self):
    verdict = steps_of(EpsilonOutside)
    self.assertLen(verdict.diagnosis.causes, 1, verdict.to_text())
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    self.assertRegex(
      cause.text,
      r'the port computes AddV2\(y=0.001\) \(add_1\) after Sqrt \(Sqrt\); tf1 computes it before',
    )

  def test_a_root_that_is_missing(self):
    verdict = steps_of(Unrooted)
    self.assertLen(verdict.diagnosis.causes, 1, verdict.to_text())
    [cause] = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, verdict.to_text())
    self.assertIn('Rsqrt', cause.text)

  def test_right_port_passes(self):
    verdict = steps_of(RMSProp)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
