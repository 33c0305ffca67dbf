"""Choices of tf1 of which the port computes one branch for all elements."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


class _Port(keras.layers.Layer):
  def __init__(self, chooses, first):
    super().__init__(name='port')
    self.chooses, self.first = chooses, first
    self.dense = keras.layers.Dense(6, name='dense')

  def call(self, inputs):
    net = self.dense(inputs)
    low = keras.ops.sigmoid(3.0 * net - 0.6)
    high = 0.7 * keras.ops.exp(-keras.ops.square(net + inputs[:, :1]))
    chosen = keras.ops.where(net > 0.1, low, high) if self.chooses else None
    alone = low if self.first else high
    return keras.ops.sum(alone if chosen is None else chosen, axis=0)


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  chooses, first = False, True

  def build_tf1_graph(self, inputs, training):
    net = v1.layers.dense(inputs, 6, name='dense')
    shifted = net + tf.slice(inputs, [0, 0], [-1, 1])
    low, high = 1.0 / (1.0 + tf.exp(0.6 - 3.0 * net)), 0.7 * tf.exp(-shifted * shifted)
    return tf.reduce_sum(tf.where(tf.less(0.1, net), low, high), 0)

  def variable_names(self, name):
    return f'port/{name}'

  def make_tf2_layer(self):
    return _Port(self.chooses, self.first)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


class ChosenBranchesTest(absltest.TestCase):
  def test_one_branch_for_all_elements(self):
    for first, where in ((True, 'true'), (False, 'false')):
      causes, text = causes_of(self, _Case, first=first)
      self.assertLen(causes, 1, text)
      self.assertRegex(
        causes[0],
        r'the port takes .*chosen_branches_test.py:\d+\) for all elements; tf1 takes that only '
        rf'where Less \(chosen_branches_test.py:\d+\) is {where}, and elsewhere, in \d+ % of the',
      )

  def test_right_port(self):
    verdict = tf2verify.verify(type('Case', (_Case,), {'chooses': True}), ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
