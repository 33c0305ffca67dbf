"""Random numbers that the port draws from another distribution than TF1, or another sample."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.stages import tiny_models
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_STAGE = 'seeded_constant'
_CLASSES, _WIDTH = 30, 8


class Noisy(tiny_models.OneModel, abc.ABC):
  """Adds noise, and drops elements besides."""

  draw = staticmethod(tf.random.truncated_normal)

  def model(self, inputs, training):
    net = v1.layers.dense(inputs, _WIDTH, name='hidden')
    if training:
      net = v1.nn.dropout(net + 0.3 * v1.truncated_normal([4, _WIDTH]), rate=0.3)
    return v1.layers.dense(tf.tanh(net), 3, name='out')

  def port(self, inputs, training):
    net = v1.layers.dense(inputs, _WIDTH, name='hidden')
    if training:
      net = tf.nn.dropout(net + 0.3 * self.draw([4, _WIDTH]), 0.3)
    return v1.layers.dense(tf.tanh(net), 3, name='out')


class Sampled(tiny_models.OneModel, abc.ABC):
  """A sampled softmax, which the port writes out."""

  sampler = staticmethod(tf.random.log_uniform_candidate_sampler)
  sampled = 7

  def model(self, inputs, training):
    net = v1.layers.dense(inputs['x'], _WIDTH, name='hidden')
    table, bias = v1.get_variable('w', [_CLASSES, _WIDTH]), v1.get_variable('b', [_CLASSES])
    if training:
      return v1.nn.sampled_softmax_loss(table, bias, inputs['target'], net, 7, _CLASSES)
    return tf.matmul(net, table, transpose_b=True) + bias

  def port(self, inputs, training):
    net = v1.layers.dense(inputs['x'], _WIDTH, name='hidden')
    table, bias = v1.get_variable('w', [_CLASSES, _WIDTH]), v1.get_variable('b', [_CLASSES])
    if not training:
      return tf.matmul(net, table, transpose_b=True) + bias
    found = self.sampler(inputs['target'], 1, self.sampled, True, _CLASSES)
    sampled, true_count, count = found
    target = inputs['target'][:, 0]
    true = tf.reduce_sum(net * tf.gather(table, target), 1) + tf.gather(bias, target)
    true -= tf.math.log(true_count[:, 0])
    others = tf.matmul(net, tf.gather(table, sampled), transpose_b=True) + tf.gather(bias, sampled)
    others -= 3.4e38 * tf.cast(target[:, None] == sampled[None, :], tf.float32)
    others -= tf.math.log(count)
    return tf.reduce_logsumexp(tf.concat([true[:, None], others], 1), 1) - true

  def make_inputs(self):
    numbers = np.random.default_rng(3)
    x = numbers.standard_normal((6, 5)).astype(np.float32)
    return {'x': x, 'target': numbers.integers(0, _CLASSES, (6, 1))}


class OtherDrawsTest(parameterized.TestCase):
  @parameterized.parameters(Noisy, Sampled)
  def test_right(self, case):
    found, text = causes_of(self, case, _STAGE)
    self.assertEmpty(found, text)
    self.assertNotIn('FAILED', text)

  @parameterized.parameters(
    (tf.random.normal, 'tf.random.normal'),
    # Of these the dropout has some as well.
    (tf.random.uniform, 'tf.random.uniform'),
  )
  def test_noise_of_another_distribution(self, draw, name):
    [found], text = causes_of(self, Noisy, _STAGE, draw=staticmethod(draw))
    self.assertIn(f'{name} at other_draws_test.py:', found)
    self.assertIn('in tf1 that of tf.random.truncated_normal', found)
    self.assertNotIn('tf1 draws none', text)
    self.assertIn('proven', text)

  def test_negatives_of_another_distribution(self):
    sampler = staticmethod(tf.random.uniform_candidate_sampler)
    [found], _ = causes_of(self, Sampled, _STAGE, sampler=sampler)
    self.assertIn('tf.random.uniform_candidate_sampler at other_draws_test.py:', found)
    self.assertIn('in tf1 that of tf.random.log_uniform_candidate_sampler', found)

  def test_more_negatives(self):
    [found], text = causes_of(self, Sampled, _STAGE, sampled=9)
    self.assertIn('num_sampled=9', found)
    self.assertIn('proven', text)


if __name__ == '__main__':
  absltest.main()
