"""Tests of stages.passes.further_runs.wider_gradients, by the stage that asks for them."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.tiny_models import kernel

_STAGES = ['no_new_variables', 'variable_inventory', 'zero_randomness', 'seeded_constant']


@tf.custom_gradient
def rounded(net):
  return tf.math.rint(4.0 * net) / 4.0, lambda upstream: upstream


@tf.custom_gradient
def rounded_within(net):
  within = tf.cast(tf.abs(net) <= 40.0, net.dtype)
  return tf.math.rint(4.0 * net) / 4.0, lambda upstream: upstream * within


class StraightThrough(tiny_models.OneModel, abc.ABC):
  """A straight-through estimator of TF1."""

  def model(self, inputs, training):
    net = inputs @ kernel()
    return net + tf.stop_gradient(tf.round(net * 4.0) / 4.0 - net)


class Within(StraightThrough, abc.ABC):
  """The port's gradient is zero far out, which no input of the case reaches."""

  def port(self, inputs, training):
    return rounded_within(inputs @ kernel())


class WithinByVariables(Within, abc.ABC):
  """Inputs that may be bounded."""

  def make_inputs(self):
    return np.clip(super().make_inputs(), -1, 1)


class Clipped(StraightThrough, abc.ABC):
  """The same without an operation of its own: outputs are proven to be the same."""

  def port(self, inputs, training):
    net = inputs @ kernel()
    near = tf.clip_by_value(net, -40.0, 40.0)
    return near + tf.stop_gradient(tf.round(net * 4.0) / 4.0 - near)


class Right(StraightThrough, abc.ABC):
  def port(self, inputs, training):
    return rounded(inputs @ kernel())


class RightStop(tiny_models.OneModel, abc.ABC):
  """A softmax that saturates, of a target that is stopped, in two spellings."""

  def model(self, inputs, training):
    logits = inputs @ kernel()
    target = tf.stop_gradient(tf.one_hot(tf.argmax(inputs, 1), 3))
    return tf.nn.softmax_cross_entropy_with_logits(labels=target, logits=logits)

  def port(self, inputs, training):
    logits = inputs @ kernel()
    target = tf.stop_gradient(tf.one_hot(tf.argmax(inputs, 1), 3))
    return -tf.reduce_sum(target * tf.nn.log_softmax(logits), 1)


class WiderGradientsTest(parameterized.TestCase):
  @parameterized.parameters(
    (Within, 'floating inputs times 100'),
    (WithinByVariables, 'variables times 50'),
    (Clipped, 'floating inputs times 100'),
  )
  def test_told_apart(self, case, size):
    found = _verdict(case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    (spot,) = (spot for spot in found.blind_spots if 'by hand' in spot)
    self.assertStartsWith(spot, f'at {size} the outputs of both sides agree, and the gradient of ')
    self.assertIn('the gradient of kernel does not', spot)
    self.assertIn('wider_gradients_test.py', spot)

  @parameterized.parameters(Right, RightStop, StraightThrough)
  def test_right_port(self, case):
    found = _verdict(case)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertFalse([spot for spot in found.blind_spots if 'by hand' in spot])


def _verdict(case):
  return tf2verify.verify(case, stages=[*_STAGES, 'gradients']).stages[-1]


if __name__ == '__main__':
  absltest.main()
