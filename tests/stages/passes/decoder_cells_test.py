"""Cells that TF1 writes into the loop of a decoder, with an attention beside them in one scope."""

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
STEPS, WIDTH, UNITS = 3, 4, 5
_STAGES = ('no_new_variables', 'variable_inventory', 'zero_randomness')


def decoder(inputs):
  """Returns the attention's results of all steps, of an LSTM that reads the last one."""
  with v1.variable_scope('decoder'):
    kernel = v1.get_variable('kernel', [WIDTH + 2 * UNITS, 4 * UNITS])
    bias = v1.get_variable('bias', [4 * UNITS], initializer=v1.zeros_initializer())
    query = v1.get_variable('query_kernel', [UNITS, WIDTH])
    joined = v1.get_variable('attention_kernel', [UNITS + WIDTH, UNITS])
  results = v1.TensorArray(tf.float32, STEPS)
  start = tf.zeros([tf.shape(inputs)[0], UNITS])

  def step(t, c, h, read, results):
    z = tf.concat([tf.gather(inputs, t, axis=1), read, h], 1) @ kernel + bias
    i, j, f, o = tf.split(z, 4, 1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    h = tf.sigmoid(o) * tf.tanh(c)
    weights = tf.nn.softmax(tf.einsum('btd,bd->bt', inputs, h @ query))
    context = tf.einsum('bt,btd->bd', weights, inputs)
    read = tf.tanh(tf.concat([h, context], 1) @ joined)
    return t + 1, c, h, read, results.write(t, read)

  state = (0, start, start, start, results)
  *_, results = v1.while_loop(lambda t, *_: t < STEPS, step, state)
  return tf.transpose(results.stack(), [1, 0, 2])


class Decoder(keras.layers.Layer):
  """The same with the cell of Keras, in a loop of Python."""

  def __init__(self, bend='tanh'):
    super().__init__(name='net')
    self.cell = self.made_cell()
    self.query = keras.layers.Dense(WIDTH, use_bias=False, name='query')
    self.joined = keras.layers.Dense(UNITS, bend, use_bias=False, name='attention')

  def made_cell(self):
    return keras.layers.LSTMCell(UNITS, name='cell')

  def step(self, x, h, c):
    return self.cell(x, [h, c])[1]

  def call(self, inputs):
    h = c = read = tf.zeros([tf.shape(inputs)[0], UNITS])
    results = []
    for t in range(inputs.shape[1]):
      h, c = self.step(tf.concat([inputs[:, t], read], 1), h, c)
      weights = tf.nn.softmax(tf.einsum('btd,bd->bt', inputs, self.query(h)))
      context = tf.einsum('bt,btd->bd', weights, inputs)
      read = self.joined(tf.concat([h, context], 1))
      results.append(read)
    return tf.stack(results, 1)


class TwoKernels(Decoder):
  """With gates of inputs and of the state in orders of its own: right if these are one."""

  def __init__(self, of_inputs, of_state):
    super().__init__()
    self.orders = of_inputs, of_state

  def made_cell(self):
    self.state = keras.layers.Dense(4 * UNITS, use_bias=False, name='state')
    return keras.layers.Dense(4 * UNITS, name='cell')

  def step(self, x, h, c):
    ones, others = tf.split(self.cell(x), 4, 1), tf.split(self.state(h), 4, 1)
    first, second = self.orders
    i, j, f, o = (ones[first.index(gate)] + others[second.index(gate)] for gate in 'ijfo')
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return tf.sigmoid(o) * tf.tanh(c), c


def case_of(port):
  class Case(tf2verify.EquivalenceCase):
    other_sizes = ()  # as many steps are written into the builder

    def build_tf1_graph(self, inputs, training):
      del training
      return decoder(inputs)

    def make_tf2_layer(self):
      return port()

    def make_inputs(self):
      return tf2verify.normal_inputs((2, STEPS, WIDTH))

  return Case


class DecoderCellsTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('the cell of Keras', Decoder),
    ('kernels in an order of their own', lambda: TwoKernels('foji', 'foji')),
  )
  def test_right_port_passes_without_a_map(self, port):
    verdict = tf2verify.verify(case_of(port), stages=_STAGES)
    self.assertEqual(
      [one.status.value for one in verdict.stages], ['PASSED'] * 3, verdict.to_text()
    )

  def test_kernels_that_no_order_of_gates_explains_fail(self):
    case = case_of(lambda: TwoKernels('ifjo', 'ijfo'))
    found = tf2verify.verify(case, stages=_STAGES).first_failure
    self.assertEqual(found.stage, 'zero_randomness', found.to_text())
    self.assertIn('map may be wrong instead of the port', ' '.join(found.diagnosis.notes))

  def test_a_mistake_elsewhere_does_not_change_the_order_of_gates(self):
    found = tf2verify.verify(case_of(lambda: Decoder('relu')), stages=_STAGES).first_failure
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertRegex(cause.text, r'Relu in the port, Tanh\s+in tf1', found.to_text())
    self.assertNotIn('may be wrong', ' '.join(found.diagnosis.notes))


if __name__ == '__main__':
  absltest.main()
