"""Tests of stages.failures.exchanged_variables: variables that a port uses for each other."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'zero_randomness'
EXCHANGED = 'the port exchanges variables'


class Port(keras.Model):
  def __init__(self, names, order):
    super().__init__(name='port')
    layers = [keras.layers.Dense(4, use_bias=False, name=name) for name in names]
    self.parts = [layers[n] for n in order]
    self.last = keras.layers.Dense(2, name='last')

  def call(self, inputs):
    first, second = self.parts
    return self.last(tf.tanh(first(inputs)) + 0.5 * tf.sin(second(inputs)))


class Branches(tf2verify.EquivalenceCase, abc.ABC):
  names = ('first_branch', 'second_branch')
  order = (0, 1)

  def build_tf1_graph(self, inputs, training):
    first, second = (
      v1.layers.dense(inputs, 4, use_bias=False, name=name)
      for name in ('first_branch', 'second_branch')
    )
    return v1.layers.dense(tf.tanh(first) + 0.5 * tf.sin(second), 2, name='last')

  def make_tf2_layer(self):
    return Port(self.names, self.order)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


class Tower(keras.layers.Layer):
  def __init__(self, order, **settings):
    super().__init__(**settings)
    self.dense = [keras.layers.Dense(4, use_bias=False, name=f'd{n}') for n in (0, 1)]
    self.norms = [keras.layers.LayerNormalization(epsilon=1e-3, name=f'n{n}') for n in (0, 1)]
    self.order = order

  def call(self, inputs):
    for dense, n in zip(self.dense, self.order, strict=True):
      inputs = tf.tanh(self.norms[n](dense(inputs)))
    return inputs


class TowersPort(keras.Model):
  def __init__(self, exchanged, order):
    super().__init__(name='port')
    self.towers = [
      Tower((0, 1), name='candidate_tower'),
      Tower(order, name='query_tower'),
    ]
    self.exchanged = exchanged

  def call(self, inputs):
    candidate, query = self.towers[::-1] if self.exchanged else self.towers
    return query(inputs) + 0.5 * tf.sin(candidate(inputs))


class Towers(tf2verify.EquivalenceCase, abc.ABC):
  variable_map = 'derive'
  exchanged = False
  order = (0, 1)

  def build_tf1_graph(self, inputs, training):
    outputs = []
    for name in ('query', 'candidate'):
      found = inputs
      with v1.variable_scope(name):
        for n in (0, 1):
          found = v1.layers.dense(found, 4, use_bias=False, name=f'fc{n}')
          mean, variance = tf.nn.moments(found, [-1], keepdims=True)
          with v1.variable_scope(f'norm{n}'):
            gamma = v1.get_variable('gamma', [4], initializer=v1.ones_initializer())
            beta = v1.get_variable('beta', [4], initializer=v1.zeros_initializer())
          found = tf.nn.batch_normalization(found, mean, variance, beta, gamma, 1e-3)
          found = tf.tanh(found)
      outputs.append(found)
    return outputs[0] + 0.5 * tf.sin(outputs[1])

  def make_tf2_layer(self):
    return TowersPort(self.exchanged, self.order)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


class ExchangedScopesTest(LadderTestCase):
  """What a derived map would hide: whole towers, and layers of one tower."""

  def test_right(self):
    class Case(Towers):
      pass

    self.assert_passes(Case, STAGE)

  def test_exchanged_towers(self):
    class Case(Towers):
      exchanged = True

    self.assert_first_failure(Case, STAGE, EXCHANGED, 'proven: with them exchanged')

  def test_exchanged_layers_of_one_tower(self):
    class Case(Towers):
      order = (1, 0)

    self.assert_first_failure(Case, STAGE, EXCHANGED, 'query_tower/n0/gamma is query/norm0/gamma')

  def test_a_layer_of_each_tower(self):
    class Case(Towers):
      def make_tf2_layer(self):
        port = super().make_tf2_layer()
        port(tf.zeros([1, 4]))  # its variables have their names from now on
        one, other = port.towers
        one.norms[0], other.norms[0] = other.norms[0], one.norms[0]
        return port

    self.assert_first_failure(Case, STAGE, EXCHANGED, 'query_tower/n0/gamma is query/norm0/gamma')


class ExchangedVariablesTest(LadderTestCase):
  def test_right(self):
    for names in (Branches.names, ('one', 'other'), ('branch_first', 'branch_second')):
      with self.subTest(names):
        self.assert_passes(type('Case', (Branches,), {'names': names}), STAGE)

  def test_exchanged_by_names_of_tf1(self):
    class Case(Branches):
      order = (1, 0)

    self.assert_first_failure(Case, STAGE, EXCHANGED, 'proven: with them exchanged')

  def test_exchanged_by_names_that_the_case_declares(self):
    class Case(Branches):
      names = ('one', 'other')
      order = (1, 0)

      def variable_names(self, name):
        scope, _, last = name.rpartition('/')
        known = {'first_branch': 'one', 'second_branch': 'other'}
        return f'port/{known.get(scope, scope)}/{last}'

    self.assert_first_failure(Case, STAGE, EXCHANGED, 'port/one/kernel is first_branch/kernel')

  def test_exchanged_by_words(self):
    class Case(Branches):
      names = ('branch_first', 'branch_second')
      order = (1, 0)

    self.assert_first_failure(Case, STAGE, EXCHANGED, 'branch_first/kernel is first_branch/kernel')

  def test_branches_of_a_sum_beside_a_fixed_size_are_no_exchange(self):
    class Sum(Port):
      def call(self, inputs):
        first, second = self.parts
        return self.last(tf.reshape(first(inputs) + second(inputs), [5, 4]))

    class Case(Branches):
      def build_tf1_graph(self, inputs, training):
        first, second = (
          v1.layers.dense(inputs, 4, use_bias=False, name=name) for name in self.names
        )
        return v1.layers.dense(first + second, 2, name='last')

      def make_tf2_layer(self):
        return Sum(self.names, (1, 0))

    text = self.assert_first_failure(Case, STAGE, 'inputs')
    self.assertNotIn(EXCHANGED, text)

  def test_another_mistake_is_no_exchange(self):
    class Case(Branches):
      def make_tf2_layer(self):
        port = super().make_tf2_layer()
        port.last = keras.layers.Dense(2, activation='relu', name='last')
        return port

    text = self.assert_first_failure(Case, STAGE, 'Relu')
    self.assertNotIn(EXCHANGED, text)


class MapByHandPort(keras.Model):
  transposes = False

  def __init__(self):
    super().__init__(name='port')
    self.first = keras.layers.Dense(4, name='first')
    self.last = keras.layers.Dense(4, name='last')

  def build(self, shape):
    self.first.build(shape)
    self.last.build(shape)

  def call(self, inputs):
    hidden = tf.matmul(inputs, self.first.kernel, transpose_b=self.transposes) + self.first.bias
    return self.last(tf.tanh(hidden))


class MapByHand(tf2verify.EquivalenceCase, abc.ABC):
  port = MapByHandPort

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(v1.layers.dense(inputs, 4, tf.tanh, name='one'), 4, name='two')

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


def map_of(first='one/kernel', second='two/kernel', layout='', added=()):
  entry = tf2verify.MapEntry
  return tf2verify.VariableMap(
    (
      entry((first,), ('port/first/kernel',), layout),
      entry((second,), ('port/last/kernel',)),
      entry(('one/bias',), ('port/first/bias',), 'b -> b' if added else '', added=added),
      entry(('two/bias',), ('port/last/bias',)),
    )
  )


class MapByHandTest(LadderTestCase):
  def test_a_right_map(self):
    class Case(MapByHand):
      variable_map = map_of()

    self.assert_passes(Case, STAGE)

  def test_a_transposed_entry(self):
    class Case(MapByHand):
      variable_map = map_of(layout='i o -> o i')

    self.assert_first_failure(
      Case,
      STAGE,
      'variable_map has `one/kernel -> port/first/kernel` (layout i o -> o i), and the graphs tell '
      '`one/kernel -> port/first/kernel`: correct the map',
    )

  def test_exchanged_entries(self):
    class Case(MapByHand):
      variable_map = map_of('two/kernel', 'one/kernel')

    self.assert_first_failure(
      Case, STAGE, 'the graphs tell `one/kernel -> port/first/kernel`, `two/kernel -> port/last'
    )

  def test_an_added_number(self):
    class Case(MapByHand):
      variable_map = map_of(added=(('b', 1.0),))

    self.assert_first_failure(Case, STAGE, 'port/first/bias` (layout b -> b) (add b=1), and the')

  def test_a_port_that_transposes_is_blamed_itself(self):
    class Transposing(MapByHandPort):
      transposes = True

    class Case(MapByHand):
      variable_map = map_of()
      port = Transposing

    text = self.assert_first_failure(Case, STAGE, 'transpose_b of one/MatMul')
    self.assertNotIn('variable_map has', text)

  def test_a_transposed_entry_for_a_port_that_transposes(self):
    class Transposing(MapByHandPort):
      transposes = True

    class Case(MapByHand):
      variable_map = map_of(layout='i o -> o i')
      port = Transposing

    self.assert_passes(Case, STAGE)


if __name__ == '__main__':
  absltest.main()
