"""Tests of tf2verify.diagnosis.divergence.effects.cuts: mistakes amid unpaired operations."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tf2verify.diagnosis.divergence.effects import cuts

v1 = tf.compat.v1
BATCH, LENGTH, WIDTH = 2, 5, 6


def norm(x, name):
  """As written by hand in 2018."""
  with v1.variable_scope(name):
    gamma = v1.get_variable('gamma', [WIDTH], initializer=v1.ones_initializer())
    beta = v1.get_variable('beta', [WIDTH], initializer=v1.zeros_initializer())
  mean = tf.reduce_mean(x, -1, keepdims=True)
  variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
  return (x - mean) * tf.math.rsqrt(variance + 1e-5) * gamma + beta


def dense(x, name):
  """On rows, as `matmul` of TF1 wants them."""
  with v1.variable_scope(name):
    kernel = v1.get_variable('kernel', [WIDTH, WIDTH])
  return tf.reshape(tf.matmul(tf.reshape(x, [-1, WIDTH]), kernel), [BATCH, LENGTH, WIDTH])


def block(x):
  h = norm(x, 'norm_1')
  scores = tf.matmul(dense(h, 'query'), dense(h, 'key'), transpose_b=True)
  scores *= tf.math.rsqrt(tf.cast(tf.shape(h)[-1], tf.float32))
  x += dense(tf.matmul(tf.nn.softmax(scores), h), 'out')
  return x + tf.nn.relu(dense(norm(x, 'norm_2'), 'ffn'))


class Block(tf.keras.layers.Layer):
  """The same in other operations, of which hardly any goes together with one of TF1."""

  def __init__(self, mistake='', **arguments):
    super().__init__(**arguments)
    self.mistake = mistake

  def build(self, _):
    self.norms = {
      name: [
        self.add_weight(name=f'{name}/gamma', shape=[WIDTH], initializer='ones'),
        self.add_weight(name=f'{name}/beta', shape=[WIDTH], initializer='zeros'),
      ]
      for name in ('norm_1', 'norm_2')
    }
    self.kernels = {
      name: self.add_weight(name=f'{name}/kernel', shape=(WIDTH, WIDTH))
      for name in ('query', 'key', 'out', 'ffn')
    }

  def norm(self, x, name):
    gamma, beta = self.norms[name]
    mean = tf.einsum('bld->bl', x)[..., None] / WIDTH
    squares = tf.einsum('bld,bld->bl', x, x)[..., None] / WIDTH
    scale = gamma / tf.sqrt(squares - mean * mean + 1e-5)
    return x * scale + (beta - mean * scale)

  def dense(self, x, name):
    return tf.einsum('bld,de->ble', x, self.kernels[name])

  def call(self, x):
    h = self.norm(x, 'norm_1')
    query, key = self.dense(h, 'query'), self.dense(h, 'key')
    size = 2.0 * WIDTH if self.mistake == 'scale' else WIDTH
    scores = tf.einsum('bqd,bkd->bqk', query, key) / np.sqrt(size)  # the scale
    weights = tf.exp(scores)
    weights /= tf.einsum('bqk->bq', weights)[..., None]
    x += self.dense(tf.einsum('bqk,bkd->bqd', weights, h), 'out')
    h = self.norm(x, 'norm_2')
    if self.mistake == 'residual':
      x = h
    return x + tf.maximum(self.dense(h, 'ffn'), 0.0)  # the residual


class Declared:
  """Hooks of a case, which is made for each test."""

  mistakes = ('', '')

  def make_inputs(self):
    shape = (BATCH, LENGTH, WIDTH)
    return np.random.RandomState(3).standard_normal(shape).astype(np.float32)

  def build_tf1_graph(self, inputs, training):
    del training
    for number in range(len(self.mistakes)):
      with v1.variable_scope(f'block_{number}'):
        inputs = block(inputs)
    return inputs

  def make_tf2_layer(self):
    blocks = [Block(mistake, name=f'block_{n}') for n, mistake in enumerate(self.mistakes)]
    return tf.keras.Sequential(blocks)


def case_of(*mistakes):
  return type('Case', (Declared, tf2verify.EquivalenceCase), {'mistakes': mistakes})


class CutsTest(parameterized.TestCase):
  def failure(self, *mistakes):
    found = tf2verify.verify(case_of(*mistakes), stages=['zero_randomness']).first_failure
    self.assertIsNotNone(found)
    self.assertEqual(found.stage, 'zero_randomness', found.to_text())
    return found

  @parameterized.parameters(('scale', '# the scale'), ('residual', '# the residual'))
  def test_the_line_of_a_mistake_in_the_first_of_two_blocks(self, mistake, code):
    found = self.failure(mistake, '')
    (source,) = found.diagnosis.sources
    self.assertIn(code, source.tf2_source.code, found.to_text())
    self.assertEqual(source.experiment.outcome.name, 'PROVEN', found.to_text())

  def test_without_the_search_the_place_is_half_of_the_block(self):
    before = cuts._LONG
    lengths = []
    try:
      for cuts._LONG in (before, 10**6):
        (source,) = self.failure('scale', '').diagnosis.sources
        lengths.append((len(source.tf1_path), len(source.tf2_path)))
    finally:
      cuts._LONG = before
    self.assertEqual(lengths, [(4, 1), (10, 8)])

  def test_two_mistakes_are_two_places(self):
    found = self.failure('scale', 'scale')
    lines = [source.tf2_source.code for source in found.diagnosis.sources]
    self.assertLen([line for line in lines if '# the scale' in line], 2, found.to_text())

  def test_the_right_port_passes(self):
    verdict = tf2verify.verify(case_of('', ''), stages=['zero_randomness'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
