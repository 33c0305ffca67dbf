"""Ports of Keras 3 that return a variable: `keras.ops.convert_to_tensor` hands it on."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
Status = tf2verify.Status


class Tagger(keras.Model):
  """Scores, and a table of transitions."""

  factor = None

  def __init__(self):
    super().__init__(name='tagger')
    self.first = keras.layers.Dense(5, 'tanh', name='p')
    self.second = keras.layers.Dense(5, name='q')
    self.pairwise = self.add_weight(shape=(5, 5), initializer='zeros', name='pairwise')

  def call(self, inputs):
    table = keras.ops.convert_to_tensor(self.pairwise)
    return {
      'scores': self.second(self.first(inputs)),
      'transitions': table if self.factor is None else table * self.factor,
    }


class Returned(tf2verify.EquivalenceCase, abc.ABC):
  """The map has to be derived: no renaming explains the names."""

  port = Tagger

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('m'):
      net = v1.layers.dense(inputs, 5, tf.tanh, name='a')
      net = v1.layers.dense(net, 5, name='b')
      table = v1.get_variable('transitions', [5, 5], initializer=v1.zeros_initializer())
      return {'scores': net, 'transitions': table + 0.0}

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 5))


class VariableOutputTest(LadderTestCase):
  def test_right_where_the_map_is_derived(self):
    class Case(Returned):
      def make_labels(self):
        return tf2verify.normal_inputs((4, 5), seed=2)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(
          tf.square(outputs['scores'] @ outputs['transitions'] + outputs['scores'] - labels)
        )

      tf2_loss = tf1_loss

      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.1)

      def make_tf2_optimizer(self):
        return keras.optimizers.SGD(0.1)

    self.assert_passes(Case, 'determinism')

  def test_right_where_names_are_declared(self):
    names = {'transitions': 'pairwise', 'a': 'p', 'b': 'q'}

    class Case(Returned):
      def variable_names(self, name):
        _, layer, *rest = name.split('/')
        return '/'.join(['tagger', names[layer], *rest])

    self.assert_passes(Case, 'gradients')

  def test_wrong_value(self):
    class Case(Returned):
      port = type('Halved', (Tagger,), {'factor': 0.5})

    self.assert_first_failure(Case, 'zero_randomness', "output ['transitions']")

  def test_no_tensor_is_said_before_the_map_is_derived(self):
    class Case(Returned):
      def call_tf2_layer(self, layer, inputs, training):
        return {**layer(inputs), 'transitions': layer}

    verdict = tf2verify.verify(Case, stages=['no_new_variables', 'variable_inventory'])
    self.assertEqual(verdict.stages[0].stage, 'no_new_variables')
    self.assertIs(verdict.stages[0].status, Status.ERROR, verdict.to_text())
    self.assertIn('is of type Tagger', ' '.join(verdict.to_text().split()))


if __name__ == '__main__':
  absltest.main()
