"""Training steps of native ports that hold their variables in another shape or order."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1
RATE = 0.05
# The size of the outputs: of three, the transposed kernel has the shape of TF1's.
SIZES = (3, 5)


class Dense(tf2verify.EquivalenceCase, abc.ABC):
  """A kernel, which the port has transposed, and a bias, which has an axis more there."""

  size = 5
  variable_map = 'derive'

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3))

  def make_labels(self):
    return tf2verify.normal_inputs((4, self.size), seed=3)

  def build_tf1_graph(self, inputs, training):
    uniform = v1.random_uniform_initializer(-1, 1)
    kernel = v1.get_variable('kernel', (3, self.size), initializer=uniform)
    bias = v1.get_variable('bias', self.size, initializer=v1.zeros_initializer())
    return tf.matmul(inputs, kernel) + bias

  def make_tf2_layer(self):
    size = self.size

    class Net(keras.layers.Layer):
      def build(self, shape):
        uniform = keras.initializers.RandomUniform(-1, 1)
        self.turned = self.add_weight(name='turned', shape=(size, 3), initializer=uniform)
        self.shift = self.add_weight(name='shift', shape=(size, 1), initializer='zeros')

      def call(self, inputs):
        return tf.matmul(inputs, self.turned, transpose_b=True) + self.shift[:, 0]

    return Net(name='net')

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(RATE)


class Recurrent(Dense, abc.ABC):
  """A cell whose gates the port has in another order, and its kernel in two variables."""

  unit_forget_bias = True

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 6, 3))

  def build_tf1_graph(self, inputs, training):
    with v1.variable_scope('net', initializer=v1.random_uniform_initializer(-0.4, 0.4)):
      cell = v1.nn.rnn_cell.BasicLSTMCell(self.size)
      return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0][:, -1]

  def make_tf2_layer(self):
    uniform = keras.initializers.RandomUniform(-0.4, 0.4)
    return keras.Sequential(
      [
        keras.layers.LSTM(
          self.size,
          kernel_initializer=uniform,
          recurrent_initializer=uniform,
          unit_forget_bias=self.unit_forget_bias,
        )
      ]
    )


def _verified(size, case=Dense, **settings):
  settings = {'epsilon': 1e-8} | settings
  optimizer = lambda _: keras.optimizers.Adam(RATE, **settings)  # noqa: E731
  case = type('Case', (case,), {'size': size, 'make_tf2_optimizer': optimizer})
  return tf2verify.verify(case, stages=['training_steps'])


class ReorderedStepsTest(parameterized.TestCase):
  def _assert_of_optimizers(self, source, text):
    for line, code in ((source.tf1_source, 'AdamOptimizer('), (source.tf2_source, 'Adam(')):
      self.assertIn(code, line.code, text)

  @parameterized.parameters(*SIZES)
  def test_right(self, size):
    verdict = _verified(size)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  @parameterized.product(
    size=SIZES,
    mistake=(
      ({'beta_1': 0.8}, 'beta1 is 0.9 in TF1 and 0.8 in the port'),
      ({'beta_2': 0.99}, 'beta2 is 0.999 in TF1 and 0.99 in the port'),
      ({'epsilon': 1e-3}, 'epsilon is 1e-08 in TF1 and 0.001 in the port'),
    ),
  )
  def test_mistakes_in_the_update(self, size, mistake):
    settings, words = mistake
    stage = _verified(size, **settings).stages[-1]
    text = stage.to_text()
    self.assertIs(stage.status, tf2verify.Status.FAILED, text)
    self.assertIn(words, text.split('first divergence')[0], text)
    self._assert_of_optimizers(stage.diagnosis.sources[0], text)
    self.assertNotIn('shapes differ', text)
    self.assertNotIn('MatMul_grad', text)

  @parameterized.parameters(
    ({'beta_2': 0.99}, 'beta2 is 0.999 in TF1 and 0.99 in the port'),
    ({'epsilon': 1e-3}, 'epsilon is 1e-08 in TF1 and 0.001 in the port'),
  )
  def test_mistakes_in_the_update_of_a_cell(self, settings, words):
    stage = _verified(5, Recurrent, **settings).stages[-1]
    text = stage.to_text()
    self.assertIs(stage.status, tf2verify.Status.FAILED, text)
    self.assertIn(words, text.split('first divergence')[0], text)
    for source in stage.diagnosis.sources:
      self._assert_of_optimizers(source, text)

  def test_a_cell_without_its_forget_bias(self):
    """The map says what TF1's cell adds; the number that it leaves is none that the port has."""
    case = type('Case', (Recurrent,), {'unit_forget_bias': False})
    stage = tf2verify.verify(case, stages=['seeded_constant']).stages[-1]
    self.assertIs(stage.status, tf2verify.Status.FAILED)
    causes = [cause.text for cause in stage.diagnosis.causes]
    self.assertIn('unit_forget_bias=True', causes[0])
    self.assertIn('bias with 0 where the variable map adds 1', causes[0])
    self.assertNotIn('the initializer of tf1', causes[0])


if __name__ == '__main__':
  absltest.main()
