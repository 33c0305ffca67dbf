"""Mistakes of a name, a comparison or a mean, in ports that are written differently than TF1."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_WIDTH, _STEPS = 4, 5


def leaky(slope):
  return keras.layers.LeakyReLU(negative_slope=slope)


class Part(keras.layers.Layer):
  """Attention of normalized queries to what comes before them, and a dense layer."""

  def __init__(self, wrong, **settings):
    super().__init__(**settings)
    self.wrong = wrong
    self.q = keras.layers.Dense(_WIDTH, use_bias=False, name='q')
    self.k = keras.layers.Dense(_WIDTH, use_bias=False, name='k')
    self.out = keras.layers.Dense(_WIDTH, use_bias=False, name='out')
    self.leaky = leaky(0.2 if wrong == 'slope' else 0.1)

  def build(self, shape):
    for layer in (self.q, self.k, self.out):
      layer.build(shape)

  def normalized(self, net):
    mean, variance = tf.nn.moments(net, -1, keepdims=True)
    return tf.nn.batch_normalization(net, mean, variance, None, None, 1e-3)

  def call(self, net):
    queries = self.normalized(net)
    scores = tf.einsum('bqd,bkd->bqk', self.q(queries), self.k(net))
    steps = tf.range(tf.shape(net)[1])
    if self.wrong == 'strict':
      seen = steps[:, None] > steps[None, :]
    else:
      seen = steps[:, None] >= steps[None, :]
    weights = tf.nn.softmax(tf.where(seen, scores, -1e9))
    attended = tf.einsum('bqk,bkd->bqd', weights, net)
    net = net + attended if self.wrong == 'residual' else queries + attended
    net = self.leaky(self.out(net))
    if self.wrong == 'mean':
      return net, tf.reduce_mean(weights * weights)
    return net, tf.reduce_mean(tf.reduce_sum(weights * weights, -1))


class Parts(keras.Model):
  def __init__(self, wrong):
    super().__init__(name='parts')
    self.parts = [Part(wrong, name=f'part_{n}') for n in range(2)]

  def call(self, net):
    sharpness = []
    for part in self.parts:
      net, sharp = part(net)
      sharpness.append(sharp)
    return {'net': net, 'sharpness': tf.add_n(sharpness)}


class Attending(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  wrong = ''

  def build_tf1_graph(self, inputs, training):
    net, sharpness = inputs, 0.0
    for n in range(2):
      with v1.variable_scope(f'part_{n}'):
        mean = tf.reduce_mean(net, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(net - mean), -1, keepdims=True)
        queries = (net - mean) / (variance + 1e-3) ** 0.5
        q, k = (
          v1.layers.dense(one, _WIDTH, use_bias=False, name=name)
          for one, name in ((queries, 'q'), (net, 'k'))
        )
        scores = tf.matmul(q, tf.transpose(k, [0, 2, 1]))
        lower = tf.linalg.band_part(tf.ones_like(scores[0]), -1, 0)
        masks = tf.tile(lower[None], [tf.shape(net)[0], 1, 1])
        scores = tf.where(tf.equal(masks, 0), tf.ones_like(scores) * -1e9, scores)
        weights = tf.nn.softmax(scores)
        sharpness += tf.reduce_mean(tf.reduce_sum(tf.square(weights), axis=2))
        net = v1.layers.dense(tf.matmul(weights, net) + queries, _WIDTH, use_bias=False, name='out')
        net = 0.55 * net + 0.45 * tf.abs(net)
    return {'net': net, 'sharpness': sharpness}

  def make_tf2_layer(self):
    return Parts(self.wrong)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, _STEPS, _WIDTH))


def mixed(gate, state, new):
  return gate * state + (1.0 - gate) * new


def exchanged(gate, state, new):
  return (1.0 - gate) * state + gate * new


class Gates(keras.Model):
  """A state that is kept or renewed, by a gate, in a loop of Python."""

  def __init__(self, mixed):
    super().__init__(name='gates')
    self.mixed = mixed
    self.gate = keras.layers.Dense(_WIDTH, name='gate')
    self.new = keras.layers.Dense(_WIDTH, name='new')

  def call(self, net):
    state = keras.ops.zeros_like(net[:, 0])
    for step in range(3):
      gate, new = keras.ops.sigmoid(self.gate(net[:, step])), self.new(net[:, step])
      state = self.mixed(gate, state, new)
    return state


class Gated(tf2verify.EquivalenceCase, abc.ABC):
  """TF1 moves the new state towards the old one."""

  variable_map = 'derive'
  wrong = ''

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('gates', reuse=v1.AUTO_REUSE):
      both = [v1.layers.dense(inputs, _WIDTH, name=name) for name in ('gate', 'new')]
    gates, new = tf.transpose(tf.sigmoid(both[0]), [1, 0, 2]), tf.transpose(both[1], [1, 0, 2])
    state = tf.zeros_like(inputs[:, 0])
    for step in range(3):
      state = new[step] + gates[step] * (state - new[step])
    return state

  def make_tf2_layer(self):
    return Gates(exchanged if self.wrong else mixed)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, _STEPS, _WIDTH))


class OtherOperandsTest(absltest.TestCase):
  def test_right(self):
    found, text = causes_of(self, Attending)
    self.assertEmpty(found, text)
    self.assertNotIn('FAILED', text)

  def test_the_keys_are_added_in_place_of_the_queries(self):
    [found], text = causes_of(self, Attending, wrong='residual')
    self.assertRegex(found, r'AddV2\) reads .* as x in the port; with .*batchnorm/')
    self.assertIn('each of the 2 times that it runs', found)
    self.assertIn('proven', text)

  def test_a_comparison_is_strict(self):
    [found], text = causes_of(self, Attending, wrong='strict')
    self.assertRegex(found, r'is Greater in the port; with GreaterEqual it yields what tf1 does')
    self.assertIn('proven', text)

  def test_a_mean_goes_over_an_axis_that_tf1_sums(self):
    [found], text = causes_of(self, Attending, wrong='mean')
    self.assertRegex(
      found, r'Mean over axes 0, 1, 2 in the port; with Mean over axes 0, 1 and Sum over axis 2'
    )
    self.assertIn('proven', text)

  def test_a_slope_that_tf1_writes_with_two_numbers(self):
    [found], text = causes_of(self, Attending, wrong='slope')
    self.assertIn('the slope of the leaky relu is 0.1 in tf1 and 0.2 in the port', found)
    self.assertIn('proven', text)

  def test_a_gate_and_its_rest_are_exchanged(self):
    found, text = causes_of(self, Gated)
    self.assertEmpty(found, text)
    [found], text = causes_of(self, Gated, wrong='gate')
    self.assertIn('with the two exchanged it yields what tf1 does, each of the 3 times', found)
    self.assertIn('proven', text)


if __name__ == '__main__':
  absltest.main()
