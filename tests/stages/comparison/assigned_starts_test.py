"""Initial values that the port assigns while it is made, after its variables were created."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
_TABLE = np.random.RandomState(3).normal(size=(6, 5)).astype(np.float32)


class Agent(keras.Model):
  """Online and target network."""

  def __init__(self, starts_as_copy):
    super().__init__(name='agent')
    self.online, self.target = (keras.layers.Dense(4, name=name) for name in ('online', 'target'))
    for layer in (self.online, self.target):
      layer.build((None, 5))
    if starts_as_copy:
      self.target.set_weights(self.online.get_weights())

  def call(self, inputs):
    return self.online(inputs), self.target(inputs)


class Copying(tf2verify.EquivalenceCase, abc.ABC):
  tf1_copies = port_copies = True

  def build_tf1_graph(self, inputs, training):
    online = v1.layers.dense(inputs, 4, name='online')
    if not self.tf1_copies:
      return online, v1.layers.dense(inputs, 4, name='target')
    with v1.variable_scope('online', reuse=True):
      kernel = v1.get_variable('kernel', [5, 4])
    with v1.variable_scope('target'):
      copied = v1.get_variable('kernel', initializer=kernel.initial_value)
      bias = v1.get_variable('bias', [4], initializer=v1.zeros_initializer())
    return online, inputs @ copied + bias

  def make_tf2_layer(self):
    return Agent(self.port_copies)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5))


class Looking(tf2verify.EquivalenceCase, abc.ABC):
  table = _TABLE

  def build_tf1_graph(self, inputs, training):
    table = v1.get_variable('words', initializer=_TABLE)
    return tf.nn.embedding_lookup(table, inputs)

  def make_tf2_layer(self):
    words = keras.layers.Embedding(6, 5, name='words')
    words.build()
    words.set_weights([self.table])
    return keras.Sequential([words])

  def make_inputs(self):
    return np.array([[1, 2, 5], [0, 3, 4]], np.int32)


def verified(parent, **settings):
  case = type('Case', (parent,), settings)
  return tf2verify.verify(case, stages=['seeded_num_random_ops'])


class AssignedStartsTest(parameterized.TestCase):
  @parameterized.parameters(True, False)
  def test_both_sides_start_alike(self, copies):
    verdict = verified(Copying, tf1_copies=copies, port_copies=copies)
    self.assertTrue(verdict.passed, verdict.to_text())

  @parameterized.parameters(True, False)
  def test_one_side_starts_with_a_copy(self, in_port):
    verdict = verified(Copying, tf1_copies=not in_port, port_copies=in_port)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    self.assertRegex(verdict.to_text(), 'target/kernel')

  def test_a_table_that_is_set(self):
    verdict = verified(Looking)
    self.assertTrue(verdict.passed, verdict.to_text())

  def test_another_table_than_that_of_tf1(self):
    verdict = verified(Looking, table=_TABLE[::-1].copy())
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
