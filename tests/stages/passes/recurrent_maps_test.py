"""Variables of a hand-written cell whose names tell nothing are paired by what each round does."""

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tf2verify.commands.variable_map import derived_of

v1 = tf.compat.v1
_STAGE = 'zero_randomness'
# In the port `m_a` is `wz`, `m_b` is `uz` and so on.
_WANTED = {
  f'rnn/cell/{one}': f'm_{other}'
  for one, other in zip(('wz', 'uz', 'wr', 'ur', 'wh', 'uh'), 'abcdef', strict=True)
}


class _Cell(v1.nn.rnn_cell.RNNCell):
  @property
  def state_size(self):
    return 4

  @property
  def output_size(self):
    return 4

  def __call__(self, inputs, state, scope=None):
    uniform = v1.random_uniform_initializer(-0.5, 0.5)
    with v1.variable_scope('cell'):
      names = ('wz', 'uz', 'wr', 'ur', 'wh', 'uh')
      wz, uz, wr, ur, wh, uh = (v1.get_variable(n, (4, 4), initializer=uniform) for n in names)
    update = tf.sigmoid(inputs @ wz + state @ uz)
    reset = tf.sigmoid(inputs @ wr + state @ ur)
    new = (1 - update) * state + update * tf.tanh(inputs @ wh + (reset * state) @ uh)
    return new, new


class PortCell(keras.layers.Layer):
  """The same cell, whose variables are made in another order."""

  state_size = 4

  def __init__(self, made='cafbed', candidate=tf.tanh):
    super().__init__()
    self._made_in = made
    self._candidate = candidate

  def build(self, shape=None):
    uniform = keras.initializers.RandomUniform
    self.m = {
      n: self.add_weight(shape=(4, 4), initializer=uniform(-0.5, 0.5), name=f'm_{n}')
      for n in self._made_in
    }
    self.built = True

  def call(self, inputs, states):
    state, m = states[0], self.m
    update = tf.sigmoid(inputs @ m['a'] + state @ m['b'])
    reset = tf.sigmoid(inputs @ m['c'] + state @ m['d'])
    candidate = self._candidate(inputs @ m['e'] + (reset * state) @ m['f'])
    new = (1 - update) * state + update * candidate
    return new, [new]


class Written(keras.layers.Layer):
  def __init__(self, cell):
    super().__init__()
    self._cell = cell

  def call(self, inputs):
    state, found = tf.zeros((tf.shape(inputs)[0], 4)), []
    for step in range(inputs.shape[1]):
      state, _ = self._cell(inputs[:, step], [state])
      found.append(state)
    return tf.stack(found, 1)


class Scanned(Written):
  def call(self, inputs):
    if not self._cell.built:
      self._cell.build()
    steps = tf.transpose(inputs, [1, 0, 2])
    states = tf.scan(
      lambda state, step: self._cell.call(step, [state])[0], steps, tf.zeros_like(steps[0])
    )
    return tf.transpose(states, [1, 0, 2])


def _looped(cell):
  return keras.layers.RNN(cell, return_sequences=True)


def _case(make, end=lambda outputs: outputs):
  class Case(tiny_models.OneModel):
    variable_map = 'derive'

    def model(self, inputs, training):
      outputs, _ = v1.nn.dynamic_rnn(_Cell(), inputs, dtype=tf.float32)
      return end(outputs)

    def call_tf2_layer(self, layer, inputs, training):
      return end(layer(inputs))

    def make_inputs(self):
      return tf2verify.normal_inputs((2, 5, 4))

    def make_tf2_layer(self):
      return make()

  return Case


class RecurrentMapsTest(parameterized.TestCase):
  @parameterized.product(port=(_looped, Written, Scanned), made=('fedcba', 'cafbed'))
  def test_each_variable_has_the_partner_that_does_the_same(self, port, made):
    found = derived_of(_case(lambda: port(PortCell(made))), lambda _: None)
    self.assertTrue(found.outputs_agree, found.doubts)
    self.assertEqual((found.doubts, found.ambiguous), ((), ()))
    pairs = {e.tf1[0]: e.tf2[0].rpartition('/')[2] for e in found.variable_map.entries}
    self.assertEqual(pairs, _WANTED)

  def test_what_is_masked_in_the_outputs_is_no_measure_of_the_rest(self):
    def masked(outputs):
      return outputs + tf.constant([0.0, 0.0, 0.0, 1.0]) * -1e30

    found = derived_of(_case(lambda: _looped(PortCell()), masked), lambda _: None)
    self.assertTrue(found.outputs_agree, found.doubts)
    pairs = {e.tf1[0]: e.tf2[0].rpartition('/')[2] for e in found.variable_map.entries}
    self.assertEqual(pairs, _WANTED)

  def test_port_of_a_private_class(self):
    class _Private(Scanned):
      pass

    found = derived_of(_case(lambda: _Private(PortCell())), lambda _: None)
    pairs = {e.tf1[0]: e.tf2[0].rpartition('/')[2] for e in found.variable_map.entries}
    self.assertEqual(pairs, _WANTED)

  def test_right_port_passes(self):
    verdict = tf2verify.verify(_case(lambda: _looped(PortCell())), [_STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_wrong_port_has_the_same_map_and_a_cause_of_its_own(self):
    case = _case(lambda: _looped(PortCell(candidate=tf.nn.relu)))
    found = derived_of(case, lambda _: None)
    pairs = {e.tf1[0]: e.tf2[0].rpartition('/')[2] for e in found.variable_map.entries}
    self.assertEqual(pairs, _WANTED)
    text = tf2verify.verify(case, [_STAGE]).to_text()
    self.assertIn('the port computes Relu, tf1 computes Tanh', text)
    self.assertNotIn('reads variable', text)


if __name__ == '__main__':
  absltest.main()
