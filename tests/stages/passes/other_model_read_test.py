"""A model whose output the port takes from another one, which draws nothing."""

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


def _q(obs, scope, training):
  with v1.variable_scope(scope, reuse=v1.AUTO_REUSE):
    net = tf.nn.relu(v1.layers.dense(obs, 6, name='one'))
    net = v1.layers.dense(net, 6, name='two')
    return net + tf.random.normal([6]) if training else net


class _Network(keras.layers.Layer):
  def __init__(self, name):
    super().__init__(name=name)
    self.one = keras.layers.Dense(6, 'relu', name='one')
    self.two = keras.layers.Dense(6, name='two')

  def call(self, obs, training=False):
    net = self.two(self.one(obs))
    return net + tf.random.normal([6]) if training else net


class _Agent(keras.Model):
  def __init__(self, is_double):
    super().__init__(name='agent')
    self.is_double = is_double
    self.online, self.target = _Network('online'), _Network('target')

  def call(self, inputs, training=False):
    now = self.online(inputs['now'], training=training)
    of_target = self.target(inputs['next'], training=False)
    chosen = self.online(inputs['next'], training=training) if self.is_double else of_target
    best = tf.argmax(chosen, -1)
    return {'now': now, 'next': tf.gather(of_target, best, batch_dims=1)}


def _verdict(is_double):
  class Case(tf2verify.EquivalenceCase):
    def variable_names(self, name):
      return f'agent/{name}'

    def build_tf1_graph(self, inputs, training):
      now = _q(inputs['now'], 'online', training)
      of_target = _q(inputs['next'], 'target', False)
      best = tf.argmax(_q(inputs['next'], 'online', training), -1)
      return {'now': now, 'next': tf.gather(of_target, best, batch_dims=1)}

    def make_tf2_layer(self):
      return _Agent(is_double)

    def make_inputs(self):
      return {
        'now': tf2verify.normal_inputs((9, 4)),
        'next': tf2verify.normal_inputs((9, 4), seed=2),
      }

  return tf2verify.verify(Case, ['zero_randomness', 'seeded_constant'])


class OtherModelReadTest(absltest.TestCase):
  def test_right(self):
    self.assertIsNone(_verdict(is_double=True).first_failure)

  def test_target_chooses(self):
    verdict = _verdict(is_double=False)
    self.assertIsNotNone(verdict.first_failure)
    text = ' '.join(verdict.to_text().split())
    self.assertNotIn('it was left out', text)
    self.assertIn('best = tf.argmax(chosen, -1)', text)


if __name__ == '__main__':
  absltest.main()
