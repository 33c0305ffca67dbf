"""Activations in front of a normalization for behind it, or the reverse; bounds elsewhere."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


def _normalized(net, gain):
  mean = keras.ops.mean(net, -1, keepdims=True)
  variance = keras.ops.mean((net - mean) ** 2, -1, keepdims=True)
  return (net - mean) * keras.ops.rsqrt(variance + 1e-6) * gain


class _Port(keras.layers.Layer):
  """Two blocks of one helper, each a dense layer with an activation and a normalization."""

  def __init__(self, before, activation):
    super().__init__(name='port')
    self.before, self.activation = before, activation
    self.denses = [keras.layers.Dense(5, name=f'dense_{n}') for n in range(2)]
    self.gains = [self.add_weight(name=f'gain_{n}', shape=(5,)) for n in range(2)]

  def block(self, net, dense, gain):
    net = dense(net)
    if self.before:
      return _normalized(self.activation(net), gain)
    return self.activation(_normalized(net, gain))

  def call(self, inputs):
    net = inputs
    for dense, gain in zip(self.denses, self.gains, strict=True):
      net = self.block(net, dense, gain)
    return keras.ops.sum(net, -1)


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  is_before = False
  before = False
  kind = 'relu'

  def build_tf1_graph(self, inputs, training):
    activation = getattr(tf.nn, self.kind)
    net = inputs
    for number in range(2):
      net = v1.layers.dense(net, 5, name=f'dense_{number}')
      net = activation(net) if self.is_before else net
      mean, variance = tf.nn.moments(net, [-1], keepdims=True)
      gain = v1.get_variable(f'gain_{number}', [5])
      net = tf.nn.batch_normalization(net, mean, variance, None, gain, 1e-6)
      net = net if self.is_before else activation(net)
    return tf.reduce_sum(net, axis=-1)

  def variable_names(self, name):
    return f'port/{name}'

  def make_tf2_layer(self):
    return _Port(self.before, getattr(keras.ops, self.kind))

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 4))


class _Target(tf2verify.EquivalenceCase, abc.ABC):
  """The loss of a value that is to be near a reward and a discounted, clipped value."""

  clips_the_sum = False  # in TF1
  port_clips_the_sum = False

  def build_tf1_graph(self, inputs, training):
    return {name: v1.layers.dense(inputs, 1, name=name) for name in ('value', 'following')}

  def make_tf2_layer(self):
    features = keras.Input((3,))
    names = ('value', 'following')
    return keras.Model(features, {n: keras.layers.Dense(1, name=n)(features) for n in names})

  def make_inputs(self):
    return tf2verify.normal_inputs((6, 3))

  def make_labels(self):
    reward = np.linspace(-2, 2, 6).reshape(6, 1).astype(np.float32)
    return {'reward': reward, 'done': np.eye(6, dtype=np.float32)[:, :1]}

  def tf1_loss(self, outputs, labels):
    following = outputs['following']
    if not self.clips_the_sum:
      following = tf.clip_by_value(following, -0.5, 0.5)
    target = 0.5 * labels['reward'] + (1.0 - labels['done']) * 0.9 * following
    if self.clips_the_sum:
      target = tf.clip_by_value(target, -0.5, 0.5)
    return tf.reduce_mean(tf.square(outputs['value'] - tf.stop_gradient(target)))

  def tf2_loss(self, outputs, labels):
    following = outputs['following']
    if not self.port_clips_the_sum:
      following = tf.clip_by_value(following, -0.5, 0.5)
    target = 0.5 * labels['reward'] + 0.9 * tf.where(labels['done'] > 0.5, 0.0, following)
    if self.port_clips_the_sum:
      target = tf.clip_by_value(target, -0.5, 0.5)
    squares = tf.math.squared_difference(outputs['value'], tf.stop_gradient(target))
    return tf.reduce_sum(squares) / tf.cast(tf.size(squares), tf.float32)


class ElementwiseMovesTest(parameterized.TestCase):
  @parameterized.parameters(('relu', 'Relu'), ('tanh', 'Tanh'))
  def test_before_the_normalization(self, kind, op_type):
    causes, text = causes_of(self, _Case, before=True, kind=kind)
    self.assertLen(causes, 1, text)
    self.assertRegex(causes[0], rf'\({op_type}\) is done to .* in the port; done to .* instead')

  def test_behind_the_normalization(self):
    causes, text = causes_of(self, _Case, is_before=True, kind='elu')
    self.assertLen(causes, 1, text)
    self.assertRegex(causes[0], r'\(Elu\) is done to .* in the port; done to .*BiasAdd.* instead')

  @parameterized.parameters((False, 'add', 'SelectV2'), (True, 'SelectV2|following', 'add'))
  def test_both_bounds_of_a_clipped_value(self, clips_the_sum, read, to):
    wrong = {'clips_the_sum': clips_the_sum, 'port_clips_the_sum': not clips_the_sum}
    causes, text = causes_of(self, _Target, 'loss', **wrong)
    self.assertLen(causes, 1, text)
    said = rf'\(Minimum → Maximum\) is done to .*({read}).* in the port; done to .*{to}.* instead'
    self.assertRegex(causes[0], said)

  @parameterized.parameters(False, True)
  def test_right_port_with_bounds(self, clips):
    hooks = {'clips_the_sum': clips, 'port_clips_the_sum': clips}
    verdict = tf2verify.verify(type('Case', (_Target,), hooks), ['zero_randomness', 'loss'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())

  @parameterized.parameters(False, True)
  def test_right_port(self, before):
    hooks = {'before': before, 'is_before': before}
    verdict = tf2verify.verify(type('Case', (_Case,), hooks), ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
