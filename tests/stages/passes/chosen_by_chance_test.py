"""Decisions of so few examples that another kind of operation fits them by chance."""

import abc
import types

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import causes_of
from tf2verify.diagnosis.proposals.code_lines import Line
from tf2verify.diagnosis.proposals.kinds import near_kinds
from tf2verify.records.op_graph import OpGraph, OpRecord

v1 = tf.compat.v1
_ACTIONS = 3


class _Double(keras.Model):
  """The value of the next action, which the online values choose; or by mistake the target's."""

  def __init__(self, mistaken):
    super().__init__(name='double')
    self.mistaken = mistaken
    self.online = keras.layers.Dense(_ACTIONS, name='online')
    self.target = keras.layers.Dense(_ACTIONS, name='target')

  def call(self, inputs):
    online, target = self.online(inputs), self.target(inputs)
    best = tf.argmax(target if self.mistaken else online, -1)
    return online, keras.ops.sum(target * keras.ops.one_hot(best, _ACTIONS), -1)


class _Case(tf2verify.EquivalenceCase, abc.ABC):
  mistaken = True
  other_sizes = ()

  def build_tf1_graph(self, inputs, training):
    online = v1.layers.dense(inputs, _ACTIONS, name='online')
    target = v1.layers.dense(inputs, _ACTIONS, name='target')
    chosen = tf.one_hot(tf.argmax(online, 1, output_type=tf.int32), _ACTIONS)
    return online, tf.reduce_sum(tf.multiply(chosen, target), axis=1)

  def make_tf2_layer(self):
    return _Double(self.mistaken)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3))

  def fill_values(self, name, shape, dtype):
    # The online values of all examples rank the actions as the target's do not.
    if name.endswith('bias'):
      return np.array([40.0, 0.0, -40.0] if 'online' in name else [-40.0, 0.0, 40.0], dtype)
    return tf2verify.distinct_values(name, shape, dtype)


class ChosenByChanceTest(absltest.TestCase):
  def test_other_tensor_that_is_read(self):
    (cause, *further), text = causes_of(self, _Case)
    self.assertEmpty(further)
    self.assertNotIn('ArgMin', cause)
    self.assertRegex(cause, r'ArgMax \(ArgMax\) reads .*target.* in the port, online', text)

  def test_the_least_for_the_greatest_only_where_tf1_has_it(self):
    values = OpRecord('values', 'Input', (), outputs=(('float32', (5, 3)),))
    chosen = OpRecord('best', 'ArgMax', ((0, 0),), outputs=(('int64', (5,)),))
    graph = OpGraph('tf2', (values, chosen))
    line = Line(graph, (1,))
    for further, count in (set(), 0), ({'ArgMin'}, 1):
      proposals = types.SimpleNamespace(further=further, like=lambda kind: 0)
      self.assertLen(list(near_kinds(line, proposals)), count)

  def test_right_port(self):
    verdict = tf2verify.verify(type('Case', (_Case,), {'mistaken': False}), ['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
