"""Numbers and operations that one side alone has, and bounds in another spelling."""

import abc
import types
from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.stages.comparison.proof.idle_bounds_test import Quantized
from tf2verify import Status, verify
from tf2verify.records.op_graph import CONSTANT, OpGraph, OpRecord
from tf2verify.stages.comparison.proof.one_sided_numbers import one_sided_numbers
from tf2verify.stages.comparison.proof.tried_bounds import TriedBounds

v1 = tf.compat.v1
_NOT_PROVEN = 'and not all operations are proven'


def _said(tf1_end, port_end):
  hooks = {'tf1_end': lambda self, net: tf1_end(net), 'port_end': lambda self, net: port_end(net)}
  verdict = verify(type('Case', (Quantized,), hooks), ['zero_randomness'])
  stage = next(one for one in verdict.stages if one.stage == 'zero_randomness')
  assert stage.status is Status.PASSED, stage.to_text()
  return ' '.join(stage.blind_spots)


def _inverse(epsilon):
  return lambda net: net / (tf.square(net) + 1.0 + epsilon)


def _slope_of_a_bound(net):
  with tf.GradientTape() as tape:
    tape.watch(net)
    total = tf.reduce_sum(tf.minimum(net, 100.0))
  return net * tape.gradient(total, net)


def _kept(is_kept):
  return lambda net: net * tf.cast(is_kept(net), tf.float32)


class OneSidedNumbersTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('epsilon', _inverse(1e-10), _inverse(1e-12), 'tf1 has AddV2 with 1e-10 at', 'with 1e-12 at'),
    (
      'strict',
      _kept(lambda net: net < 100.0),
      _kept(lambda net: net <= 100.0),
      'tf1 has the comparison < 100 at',
      'the port has <= 100 at',
    ),
    (
      'finite',
      lambda net: tf.where(tf.math.is_finite(net), net, tf.zeros_like(net)),
      lambda net: tf.where(tf.math.is_nan(net), tf.zeros_like(net), net),
      'tf1 has the operation IsFinite at',
      'the port has IsNan at',
    ),
    (
      'rounding',
      lambda net: tf.cast(tf.cast(tf.abs(net) * 40.0 + 0.5, tf.int32), tf.float32),
      lambda net: tf.round(tf.abs(net) * 40.0),
      'the port has the operation Round at',
      'tf1 does not have it',
    ),
    (
      'epsilon_beside_a_root',
      lambda net: net / (tf.square(net) + 1.0 + 1e-8) ** 0.5,
      lambda net: net / (tf.sqrt(tf.square(net) + 1.0) + 1e-8),
      'tf1 has the epsilon 1e-08 under a root at',
      'the port has 1e-08 beside a root at',
    ),
    (
      'epsilon_under_a_root',
      lambda net: net / (1e-7 + tf.sqrt(tf.square(net) + 1.0)),
      lambda net: net * tf.math.rsqrt(tf.square(net) + 1.0 + 1e-7),
      'tf1 has the epsilon 1e-07 beside a root at',
      'the port has 1e-07 under a root at',
    ),
  )
  def test_of_one_side(self, tf1_end, port_end, *words):
    said = _said(tf1_end, port_end)
    for word in (*words, _NOT_PROVEN):
      self.assertIn(word, said)

  @parameterized.named_parameters(
    ('epsilon', _inverse(1e-10), lambda net: net / (1.0 + net * net + 1e-10)),
    ('negated', _kept(lambda net: net < 100.0), _kept(lambda net: ~(net >= 100.0))),
    (
      'epsilon_under_a_root',
      lambda net: net / (tf.square(net) + 1.0 + 1e-8) ** 0.5,
      lambda net: net * tf.math.rsqrt(1e-8 + (1.0 + net * net)),
    ),
    ('comparison_of_a_gradient', _kept(lambda net: net < 100.0), _slope_of_a_bound),
    ('alone', _inverse(1e-10), _inverse(0.0)),
    (
      'rest',
      lambda net: net - tf.floor(net * 3.0) / 3.0,
      lambda net: tf.math.floormod(net * 3.0, 1.0) / 3.0,
    ),
    ('hard_sigmoid', lambda net: tf.nn.relu6(net + 3.0) / 6.0, lambda net: _clip(net / 6.0 + 0.5)),
    (
      'choice',
      lambda net: tf.where(net < 50.0, net, tf.zeros_like(net)),
      _kept(lambda net: net < 50.0),
    ),
  )
  def test_spelled_differently(self, tf1_end, port_end):
    said = _said(tf1_end, port_end)
    self.assertNotIn('has the ', said)
    self.assertNotIn('has no such', said)

  def test_beside_another_difference_of_the_graphs(self):
    """Which is known, with both lines, and explains nothing of what comes elsewhere."""

    class Two(Quantized, abc.ABC):
      def tf1_end(self, net):
        return tf.cast(tf.cast(tf.abs(net) * 40.0 + 0.5, tf.int32), tf.float32)

      def port_end(self, net):
        return tf.round(tf.abs(net) * 40.0)

      def build_tf1_graph(self, inputs, training):
        kept = tf.minimum(inputs, 5e4)
        return {'codes': super().build_tf1_graph(inputs, training), 'kept': kept}

      def make_tf2_layer(self):
        port = super().make_tf2_layer()
        call = port.call
        port.call = lambda inputs: {'codes': call(inputs), 'kept': tf.minimum(inputs, 4e4)}
        return port

    verdict = verify(Two, ['zero_randomness'])
    stage = next(one for one in verdict.stages if one.stage == 'zero_randomness')
    self.assertIs(stage.status, Status.PASSED, stage.to_text())
    said = ' '.join(stage.blind_spots)
    self.assertIn('the constant of Minimum is ', said)
    self.assertIn('the port has the operation Round at', said)

  def test_of_several_bounds_that_are_alike_one_is_left_out(self):
    def tf1_end(net):
      return tf.nn.relu6(1.5 * net) + tf.nn.relu6(-0.7 * net) + tf.nn.relu6(0.3 * net)

    def port_end(last):
      return lambda net: tf.add_n(
        [tf.nn.relu6(0.3 * net), last(-0.7 * net), tf.nn.relu6(1.5 * net)]
      )

    self.assertIn('tf1 has Minimum with 6 at', _said(tf1_end, port_end(tf.nn.relu)))
    self.assertNotIn('has no such', _said(tf1_end, port_end(tf.nn.relu6)))

  def test_bounds_of_comparisons(self):
    for bounds, is_said in ((-0.99, -0.999), True), ((0.5, 0.2), False), ((7.0, 7.0), False):
      proof = types.SimpleNamespace(
        tf1=_compared_with(bounds[0]), tf2=_compared_with(bounds[1]), targets=()
      )
      said = one_sided_numbers(proof, mock.create_autospec(TriedBounds))
      self.assertEqual(' < -0.99 at' in ' '.join(said), is_said, said)
      self.assertLen(said, int(is_said))

  def test_masks_that_round_random_numbers_are_compared(self):
    def masked(keep):
      return lambda net: net / 0.6 * tf.floor(keep + v1.random_uniform([tf.shape(net)[0], 1]))

    def all_kept(net):
      return net * tf.floor(1.0 + v1.random_uniform([tf.shape(net)[0], 1]))

    cases = (
      (masked(0.6), lambda net: tf.nn.dropout(net, 0.4, noise_shape=[tf.shape(net)[0], 1]), 0),
      (all_kept, lambda net: net, 0),
      (lambda net: net + tf.floor(tf.abs(net) * 1e-3), lambda net: net, 1),
    )
    for tf1_end, port_end, count in cases:
      with self.subTest(count):
        self.assertEqual(_said_of_loss(tf1_end, port_end).count('has the operation Floor'), count)


class _Lossy(Quantized, abc.ABC):
  def make_labels(self):
    return np.ones((6, 3), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean((outputs - labels) ** 2)

  tf2_loss = tf1_loss


def _said_of_loss(tf1_end, port_end):
  hooks = {'tf1_end': lambda self, net: tf1_end(net), 'port_end': lambda self, net: port_end(net)}
  verdict = verify(type('Case', (_Lossy,), hooks), ['loss'])
  stage = next(one for one in verdict.stages if one.stage == 'loss')
  assert stage.status is Status.PASSED, stage.to_text()
  return ' '.join(stage.blind_spots)


def _clip(net):
  return tf.clip_by_value(net, 0.0, 1.0)


def _compared_with(number):
  """Returns a side of a proof: a comparison of which nothing is proven."""
  values = OpRecord('x', 'Input', (), outputs=(('float32', (3,)),))
  bound = OpRecord('c', CONSTANT, (), outputs=(('float32', ()),), constant=np.float32(number))
  less = OpRecord('less', 'Less', ((0, 0), (1, 0)), outputs=(('bool', (3,)),))
  return types.SimpleNamespace(graph=OpGraph('tf1', (values, bound, less)), tested={2})


if __name__ == '__main__':
  absltest.main()
