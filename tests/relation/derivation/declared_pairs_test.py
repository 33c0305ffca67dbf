"""Names that a case declares for some variables, and a map that is derived for the others."""

import abc

import keras
from absl.testing import absltest

import tf2verify
from tf2verify import VariableMap

# isort: split
import tensorflow as tf

v1 = tf.compat.v1
_UNIFORM = {'minval': -0.5, 'maxval': 0.5}


def scored(inputs):
  """Two layers of one shape, and a score of which the port finds another spelling."""
  uniform = v1.random_uniform_initializer(**_UNIFORM)
  net = v1.layers.dense(inputs, 3, tf.nn.relu, name='one', kernel_initializer=uniform)
  net = v1.layers.dense(net, 3, tf.nn.tanh, name='two', kernel_initializer=uniform)
  with v1.variable_scope('attention', initializer=uniform):
    return tf.reduce_sum(net * v1.get_variable('v', [3]), -1)


class Scores(keras.Model):
  """The same with other names, where the score is a product of matrices."""

  def __init__(self, factor=1.0):
    super().__init__(name='scores')
    uniform = keras.initializers.RandomUniform(-0.5, 0.5)
    self.layers_of_it = [
      keras.layers.Dense(3, activation, name=name, kernel_initializer=uniform)
      for name, activation in (('first', 'relu'), ('second', 'tanh'))
    ]
    self.v = self.add_weight(name='weight_of_scores', shape=(3,), initializer=uniform)
    self.factor = factor

  def call(self, x):
    for layer in self.layers_of_it:
      x = layer(x)
    return self.factor * keras.ops.matmul(x, self.v)


class ScoresCase(tf2verify.EquivalenceCase, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return scored(inputs)

  def make_tf2_layer(self):
    return Scores()

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))


def verified(stage, case=ScoresCase, **hooks):
  """Returns the verdicts up to a stage of the case with further hooks, by stage."""
  cls = type('Other', (case,), {'__module__': __name__, **hooks})
  verdict = tf2verify.verify(cls, stages=[stage])
  return {one.stage: one for one in verdict.stages}


NAMES = {'attention/v': 'scores/weight_of_scores'}


def _entries():
  case = type('Other', (ScoresCase,), {'__module__': __name__})
  return tf2verify.derive_variable_map(case).entries


class DeclaredPairsTest(absltest.TestCase):
  """Some names are declared, and the others are derived as before."""

  def test_without_a_name_it_is_paired_by_its_place(self):
    stage = verified('variable_inventory')['variable_inventory']
    self.assertIs(stage.status, tf2verify.Status.PASSED, stage.to_text())
    (derived,) = [one for one in _entries() if one.tf1 == ('attention/v',)]
    self.assertEqual(derived.tf2, ('scores/weight_of_scores',))
    self.assertIn('the only place of its kind', derived.reason)

  def test_a_name_for_one_variable(self):
    stages = verified('gradients', variable_names=NAMES)
    inventory = stages['variable_inventory']
    self.assertIs(inventory.status, tf2verify.Status.PASSED, inventory.to_text())
    self.assertEqual(inventory.compared.tensors, 5)
    self.assertIn('1 of them declared by variable_names', ' '.join(inventory.notes))
    self.assertIs(stages['gradients'].status, tf2verify.Status.PASSED, inventory.to_text())

  def test_the_same_where_the_map_is_asked_for(self):
    stages = verified('zero_randomness', variable_names=NAMES, variable_map='derive')
    self.assertIs(stages['zero_randomness'].status, tf2verify.Status.PASSED)

  def test_a_declared_pair_is_not_derived_otherwise(self):
    names = {**NAMES, 'one/kernel': 'scores/second/kernel'}
    stages = verified('zero_randomness', variable_names=names)
    notes = ' '.join(stages['variable_inventory'].notes)
    self.assertIn("another variable's partner by variable_names", notes)
    self.assertNotEqual(stages['zero_randomness'].status, tf2verify.Status.PASSED)

  def test_a_declared_name_that_the_port_has_not(self):
    stage = verified('variable_inventory', variable_names={'one/kernel': 'scores/none'})
    failed = [d.tf1_subject for d in stage['variable_inventory'].differences]
    self.assertIn('one/kernel', failed)

  def test_a_wrong_port_fails_with_declared_names(self):
    class WrongCase(ScoresCase):
      def make_tf2_layer(self):
        return Scores(factor=2.0)

    stages = verified('zero_randomness', WrongCase, variable_names=NAMES)
    self.assertIs(stages['variable_inventory'].status, tf2verify.Status.PASSED)
    self.assertIs(stages['zero_randomness'].status, tf2verify.Status.FAILED)

  def test_no_names_switch_it_off(self):
    stage = verified('variable_inventory', variable_names={})['variable_inventory']
    self.assertLen(stage.differences, 10)

  def test_what_a_map_of_the_case_lacks(self):
    known = VariableMap.of_names(
      {
        f'{one}/{part}': f'scores/{other}/{part}'
        for one, other in (('one', 'first'), ('two', 'second'))
        for part in ('kernel', 'bias')
      }
    )
    stage = verified('variable_inventory', variable_map=known)['variable_inventory']
    hint = stage.differences[0].hint
    self.assertIn(
      'the variable map of the case lacks `attention/v -> scores/weight_of_scores`', hint
    )


if __name__ == '__main__':
  absltest.main()
