"""Cells of recurrent networks of which one side keeps each gate in variables of its own."""

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
STEPS, WIDTH, UNITS = 3, 4, 5
_STAGES = ('no_new_variables', 'variable_inventory', 'zero_randomness')


def dynamic(cell):
  def build(inputs):
    return v1.nn.dynamic_rnn(cell(UNITS), inputs, dtype=tf.float32)[0]

  return build


def written_out(inputs):
  """An LSTM with kernels and a bias for each gate."""
  h = c = tf.zeros([tf.shape(inputs)[0], UNITS])
  kernels = {}
  for gate in 'ifco':
    kernels[gate] = (
      v1.get_variable(f'W_{gate}', [WIDTH, UNITS]),
      v1.get_variable(f'U_{gate}', [UNITS, UNITS]),
      v1.get_variable(f'b_{gate}', [UNITS], initializer=v1.zeros_initializer()),
    )
  states = []
  for t in range(STEPS):
    i, f, g, o = (inputs[:, t] @ w + h @ u + b for w, u, b in kernels.values())
    c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
    h = tf.sigmoid(o) * tf.tanh(c)
    states.append(h)
  return tf.stack(states, 1)


class Gates(keras.layers.Layer):
  """An LSTM with a layer for each gate."""

  def __init__(self, forget=0.0, exchanged=False, bend=tf.tanh, **arguments):
    super().__init__(name='net', **arguments)
    names = 'input_gate', 'forget_gate', 'candidate', 'output_gate'
    self.gates = [keras.layers.Dense(UNITS, name=name) for name in names]
    self.forget, self.exchanged, self.bend = forget, exchanged, bend

  def call(self, inputs):
    h = c = tf.zeros([tf.shape(inputs)[0], UNITS])
    states = []
    for t in range(inputs.shape[1]):
      x = tf.concat([inputs[:, t], h], 1)
      i, f, g, o = (gate(x) for gate in self.gates)
      if self.exchanged:
        i, f = f, i
      c = tf.sigmoid(f + self.forget) * c + tf.sigmoid(i) * self.bend(g)
      h = tf.sigmoid(o) * tf.tanh(c)
      states.append(h)
    return tf.stack(states, 1)


class Fused(keras.layers.Layer):
  """An LSTM with all gates in one kernel of the inputs, and one of the state, in another order."""

  def __init__(self, bend=tf.tanh):
    super().__init__(name='net')
    self.x = keras.layers.Dense(4 * UNITS, name='x')
    self.h = keras.layers.Dense(4 * UNITS, use_bias=False, name='h')
    self.bend = bend

  def call(self, inputs):
    h = c = tf.zeros([tf.shape(inputs)[0], UNITS])
    states = []
    for t in range(inputs.shape[1]):
      i, f, o, g = tf.split(self.x(inputs[:, t]) + self.h(h), 4, -1)
      c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * self.bend(g)
      h = tf.sigmoid(o) * tf.tanh(c)
      states.append(h)
    return tf.stack(states, 1)


class GruGates(keras.layers.Layer):
  """A GRU with two kernels and a bias for each gate, for `keras.layers.RNN`."""

  state_size = output_size = UNITS

  def build(self, shape):
    del shape
    for gate in 'zrh':
      self.add_weight(name=f'W{gate}', shape=(WIDTH, UNITS))
      self.add_weight(name=f'U{gate}', shape=(UNITS, UNITS))
      self.add_weight(name=f'b{gate}', shape=(UNITS,))

  def call(self, x, states):
    (h,) = states
    (wz, uz, bz, wr, ur, br, wh, uh, bh) = self.weights
    z, r = tf.sigmoid(x @ wz + h @ uz + bz), tf.sigmoid(x @ wr + h @ ur + br)
    h = z * h + (1 - z) * tf.tanh(x @ wh + (r * h) @ uh + bh)
    return h, (h,)


def gru():
  return keras.Sequential([keras.layers.RNN(GruGates(), return_sequences=True)])


def case_of(build, port, sizes=True):
  class Case(tf2verify.EquivalenceCase):
    if not sizes:  # as many steps are written into the builder
      other_sizes = ()

    def build_tf1_graph(self, inputs, training):
      del training
      return build(inputs)

    def make_tf2_layer(self):
      return port()

    def make_inputs(self):
      return tf2verify.normal_inputs((2, STEPS, WIDTH))

  return Case


_BASIC = v1.nn.rnn_cell.BasicLSTMCell
_GRU = v1.nn.rnn_cell.GRUCell


class GateVariablesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('a layer for each gate', dynamic(_BASIC), lambda: Gates(1.0)),
    ('all gates in another order', dynamic(_BASIC), Fused),
    ('a GRU', dynamic(_GRU), gru),
    (
      'gates of tf1 in one kernel',
      written_out,
      lambda: keras.layers.LSTM(5, return_sequences=True),
    ),
    ('gates of both sides', written_out, Gates),
  )
  def test_right_port_passes_without_a_map(self, build, port):
    case = case_of(build, port, sizes=build is not written_out)
    verdict = tf2verify.verify(case, stages=_STAGES)
    self.assertEqual(
      [one.status.value for one in verdict.stages], ['PASSED'] * 3, verdict.to_text()
    )

  def test_an_exchange_of_two_gates_is_not_hidden(self):
    case = case_of(dynamic(_BASIC), lambda: Gates(1.0, exchanged=True))
    found = tf2verify.verify(case, stages=_STAGES).first_failure
    (cause, *_) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertIn('in place of each other at gate_variables_test.py', cause.text, found.to_text())
    self.assertIn('tf.sigmoid(f + self.forget)', found.to_text())

  def test_a_mistake_elsewhere_does_not_turn_the_forget_bias_into_another(self):
    """The port adds it in every step, as tf1 does, and starts with biases of 0."""
    case = case_of(dynamic(_BASIC), lambda: Gates(1.0, bend=tf.nn.relu))
    found = tf2verify.verify(case, stages=_STAGES).first_failure
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertRegex(
      cause.text, r'Relu(?: in the port)?, (?:Tanh\s+in tf1|tf1 computes Tanh)', found.to_text()
    )

  def test_a_mistake_does_not_hide_in_which_order_the_gates_lie(self):
    case = case_of(dynamic(_BASIC), lambda: Fused(tf.nn.relu))
    found = tf2verify.verify(case, stages=_STAGES).first_failure
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertRegex(cause.text, r'Relu in the port, Tanh\s+in tf1', found.to_text())


if __name__ == '__main__':
  absltest.main()
