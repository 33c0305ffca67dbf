import abc

import numpy as np
import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'zero_randomness'
_HALF = v1.constant_initializer(0.5)
# The first of the stage's two runs, in which most faults show.
_RUN = '[inference, distinct values]'


class WeightsUsedOtherwiseTest(LadderTestCase):
  def test_transposed_square_kernel(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.matmul(inputs, kernel(), transpose_b=True) + bias()

    text = self.assert_first_failure(
      Case, STAGE, f'output (the output) {_RUN}  (4, 3) float32: 12 of 12 elements differ'
    )
    # What the guide's constant cannot see.
    self.assertNotIn("the guide's constant", text)

  def test_gamma_and_beta_swapped(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('gamma', [3]) + v1.get_variable('beta', [3])

      def port(self, inputs, training):
        return inputs * v1.get_variable('beta', [3]) + v1.get_variable('gamma', [3])

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_two_of_four_lstm_gates_swapped(self):
    class Case(tiny_models.OneModel):
      order = ('i', 'j', 'f', 'o')

      def model(self, inputs, training):
        with v1.variable_scope('rnn'):
          return v1.nn.rnn_cell.BasicLSTMCell(3)(inputs, (inputs, inputs))[0]

      def port(self, inputs, training):
        with v1.variable_scope('rnn/basic_lstm_cell'):
          weights = v1.get_variable('kernel', [6, 12])
          offsets = v1.get_variable('bias', [12], initializer=v1.zeros_initializer())
        gates = tf.split(tf.concat([inputs, inputs], 1) @ weights + offsets, 4, axis=1)
        i, j, f, o = (gates['ijfo'.index(gate)] for gate in self.order)
        memory = tf.sigmoid(f + 1.0) * inputs + tf.sigmoid(i) * tf.tanh(j)
        return tf.sigmoid(o) * tf.tanh(memory)

    class SwappedCase(Case):
      order = ('i', 'f', 'j', 'o')

    self.assert_passes(Case, STAGE)
    self.assert_first_failure(SwappedCase, STAGE, 'output (the output)')

  def test_lstm_forget_bias_dropped(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, forget_bias=1.0):
        with v1.variable_scope('rnn'):
          cell = v1.nn.rnn_cell.LSTMCell(3, forget_bias=forget_bias)
          return cell(inputs, (inputs, inputs))[0]

      def port(self, inputs, training):
        return self.model(inputs, training, forget_bias=0.0)

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_rows_of_an_embedding_by_other_partition(self):
    class Case(tiny_models.Embedded):
      def model(self, inputs, training, strategy='mod'):
        shards = [v1.get_variable(f'shard_{n}', [3, 2]) for n in range(2)]
        return v1.nn.embedding_lookup(shards, inputs, partition_strategy=strategy)

      def port(self, inputs, training):
        return self.model(inputs, training, strategy='div')

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_order_of_concatenated_inputs(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.concat([inputs['a'], inputs['b']], 1) @ v1.get_variable('kernel', [4, 2])

      def port(self, inputs, training):
        return tf.concat([inputs['b'], inputs['a']], 1) @ v1.get_variable('kernel', [4, 2])

      def make_inputs(self):
        return {'a': np.ones((3, 2), np.float32), 'b': np.zeros((3, 2), np.float32)}

    self.assert_first_failure(
      Case,
      STAGE,
      f'output (the output) {_RUN}',
      "constant inputs were varied for the first run: ['a",
    )


class ArithmeticTest(LadderTestCase, parameterized.TestCase):
  @parameterized.parameters(
    ('relu lost', tf.nn.relu, tf.identity),
    ('leaky slope', tf.nn.leaky_relu, lambda net: tf.nn.leaky_relu(net, 0.3)),
    ('gelu', lambda net: tf.nn.gelu(net, approximate=True), tf.nn.gelu),
    ('hard sigmoid', lambda net: tf.clip_by_value(0.2 * net + 0.5, 0, 1), tf.sigmoid),
    ('softmax axis', tf.nn.softmax, lambda net: tf.nn.softmax(net, axis=0)),
    ('mean of other axis', lambda n: n - tf.reduce_mean(n, 1, True), lambda n: n - n[:1]),
    ('NaN where tf1 has none', tf.nn.relu, lambda net: tf.sqrt(net) ** 2),
  )
  def test_after_an_affine_map(self, _, tf1_function, tf2_function):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        return tf1_function(self.model(inputs, training))

      def port(self, inputs, training):
        return tf2_function(self.model(inputs, training))

    self.assert_first_failure(Case, STAGE, f'output (the output) {_RUN}')

  def test_batch_norm_epsilon(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training, epsilon=1e-3):
        return v1.layers.batch_normalization(
          inputs, epsilon=epsilon, training=training, name='norm'
        )

      def port(self, inputs, training):
        return self.model(inputs, training, epsilon=1e-5)

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_layer_norm_over_other_axes_and_epsilon(self):
    class Case(tiny_models.OneImageModel):
      axes, epsilon = (1, 2, 3), 1e-12

      def model(self, inputs, training):
        return slim.layer_norm(inputs, scope='norm')

      def port(self, inputs, training):
        with v1.variable_scope('norm'):
          beta = v1.get_variable('beta', [3], initializer=v1.zeros_initializer())
          gamma = v1.get_variable('gamma', [3], initializer=v1.ones_initializer())
        mean, variance = tf.nn.moments(inputs, self.axes, keepdims=True)
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, self.epsilon)

    class OtherAxesCase(Case):
      axes = (3,)

    class OtherEpsilonCase(Case):
      epsilon = 1e-3

    self.assert_passes(Case, STAGE)
    self.assert_first_failure(OtherAxesCase, STAGE, 'output (the output)')
    self.assert_first_failure(OtherEpsilonCase, STAGE, 'output (the output)')

  def test_slim_activation_by_default(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return slim.fully_connected(inputs, 3, scope='fc')

      def port(self, inputs, training):
        return slim.fully_connected(inputs, 3, activation_fn=None, scope='fc')

    self.assert_first_failure(Case, STAGE, 'output (the output)', 'tf1 0, tf2 -')

  def test_activation_before_batch_norm(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.nn.relu(slim.batch_norm(inputs, is_training=training, scope='norm'))

      def port(self, inputs, training):
        return slim.batch_norm(tf.nn.relu(inputs), is_training=training, scope='norm')

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_same_instead_of_fixed_padding(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        padded = tf.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]])
        return v1.layers.conv2d(padded, 2, 3, 2, 'valid', name='conv')

      def port(self, inputs, training):
        return v1.layers.conv2d(inputs, 2, 3, 2, 'same', name='conv')

    self.assert_first_failure(Case, STAGE, '(2, 3, 3, 2) float32')

  def test_half_pixel_centers(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        return v1.image.resize_bilinear(inputs * v1.get_variable('scale', [3]), [9, 9])

      def port(self, inputs, training):
        return tf.image.resize(inputs * v1.get_variable('scale', [3]), [9, 9])

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_channels_first_when_flattened(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        return v1.layers.dense(
          tf.reshape(tf.transpose(inputs, [0, 3, 1, 2]), [2, 108]), 2, name='fc'
        )

      def port(self, inputs, training):
        return v1.layers.dense(tf.reshape(inputs, [2, 108]), 2, name='fc')

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_sequence_length_dropped(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, lengths=(5, 2)):
        with v1.variable_scope('net'):
          cell = v1.nn.rnn_cell.GRUCell(3)
          return v1.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float32)[0]

      def port(self, inputs, training):
        return self.model(inputs, training, lengths=None)

      def make_inputs(self):
        return tf2verify.normal_inputs((2, 5, 3))

    self.assert_first_failure(Case, STAGE, 'output (the output)', '9 of 30 elements differ')

  def test_inside_one_of_many_outputs(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return {'logits': net, 'endpoints': [tf.nn.relu(net), tf.tanh(net)]}

      def port(self, inputs, training):
        outputs = self.model(inputs, training)
        outputs['endpoints'][1] *= 1.001
        return outputs

    self.assert_first_failure(Case, STAGE, '1 of 6 tensors differ', "output ['endpoints'][1]")


class OutputAttributeTest(LadderTestCase, parameterized.TestCase):
  @parameterized.parameters(
    ('structure', lambda n: (n, n), lambda n: n, '(Tensor, Tensor)'),
    ('structure', lambda n: {'a': n}, lambda n: {'b': n}, "{'b': Tensor}"),
    ('structure', lambda n: (n, None), lambda n: (n, n), '(Tensor, None)'),
    ('structure', lambda n: tf.sparse.from_dense(n), lambda n: n, 'SparseTensor(indices='),
    ('shape', lambda n: n[:, :1], lambda n: n[:, 0], 'only axes of size 1 differ'),
    ('shape', lambda n: n, lambda n: n[:3], 'tf2: (3, 3)'),
    ('shape', lambda n: v1.argmax(n), lambda n: tf.argmax(n, -1), 'tf1: (3,)'),
    ('dtype', lambda n: n, lambda n: tf.cast(n, tf.float64), 'tf2: float64'),
    ('dtype', lambda n: n > 0, lambda n: tf.cast(n > 0, tf.int32), 'tf1: bool'),
    ('shape', lambda n: tf.sparse.from_dense(tf.nn.relu(n)), tf.sparse.from_dense, '.indices'),
  )
  def test_of_the_output(self, aspect, tf1_function, tf2_function, words):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        return tf1_function(self.model(inputs, training))

      def port(self, inputs, training):
        return tf2_function(self.model(inputs, training))

    self.assert_first_failure(Case, STAGE, f'{aspect} differs', words)

  @parameterized.parameters(
    ('integers', lambda n: tf.argmax(n, 1), lambda n: tf.argmin(n, 1)),
    ('booleans', lambda n: n > 0, lambda n: n < 0),
    ('strings', tf.strings.as_string, lambda n: tf.strings.as_string(n, precision=3)),
    ('division', lambda n: tf.cast(9 * n, 'int32') // 2, lambda n: tf.cast(4.5 * n, 'int32')),
  )
  def test_discrete(self, _, tf1_function, tf2_function):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        return tf1_function(self.model(inputs, training))

      def port(self, inputs, training):
        return tf2_function(self.model(inputs, training))

    self.assert_first_failure(Case, STAGE, 'output (the output)')

  def test_ragged_rows(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training, lengths=(3, 0, 1, 2)):
        return tf.RaggedTensor.from_tensor(super().model(inputs, training), list(lengths))

      def port(self, inputs, training):
        return self.model(inputs, training, lengths=(3, 1, 0, 2))

    self.assert_first_failure(Case, STAGE, 'output .row_splits_0')


class RegularizationTest(LadderTestCase, parameterized.TestCase):
  @parameterized.parameters(0.01, 1e-4, 1e-7)
  def test_factor_of_two(self, decay):
    class Case(tiny_models.Regularized):
      weight_decay = decay

      def port(self, inputs, training):
        regularizer = tf.keras.regularizers.L2(decay)
        return v1.layers.dense(inputs, 3, kernel_regularizer=regularizer, name='fc')

    self.assert_first_failure(
      Case, STAGE, f'regularization loss fc/kernel {_RUN}', 'regularization loss (total)'
    )

  def test_one_layer_too_many(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, decay_of_bias=None):
        decay = slim.l2_regularizer(1e-4)
        return slim.fully_connected(
          inputs, 2, weights_regularizer=decay, biases_regularizer=decay_of_bias, scope='fc'
        )

      def port(self, inputs, training):
        return self.model(inputs, training, decay_of_bias=slim.l2_regularizer(1e-4))

    self.assert_first_failure(
      Case,
      STAGE,
      'regularization loss fc/biases [inference, distinct values]: presence differs',
      'the port regularizes a variable that tf1 does not: pass no regularizer for it (fc/biases)',
    )

  def test_lost_in_a_tf_module(self):
    class Case(tiny_models.Regularized):
      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

    self.assert_first_failure(
      Case,
      STAGE,
      'regularization loss fc/kernel',
      'tf2: missing',
      'a tf.Module tracks no losses: override tf2_regularization_losses',
    )

  def test_ignored_by_a_depthwise_convolution(self):
    class Case(tiny_models.OneImageModel):
      variable_names = {'depthwise_weights': 'shim_layer/conv/depthwise_kernel'}

      def model(self, inputs, training):
        weights = v1.get_variable(
          'depthwise_weights', [3, 3, 3, 1], regularizer=slim.l2_regularizer(1e-4)
        )
        return tf.nn.depthwise_conv2d(inputs, weights, [1, 1, 1, 1], 'SAME')

      def port(self, inputs, training):
        conv = v1.keras.utils.get_or_create_layer(
          'conv',
          lambda: tf.keras.layers.DepthwiseConv2D(
            3, padding='same', use_bias=False, kernel_regularizer='l2', name='conv'
          ),
        )
        return conv(inputs)

    self.assert_first_failure(
      Case, STAGE, 'regularization loss depthwise_weights', 'the port does not regularize'
    )

  def test_on_the_wrong_variable(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, regularized='first'):
        net = inputs
        for name in ('first', 'second'):
          decay = slim.l2_regularizer(1e-3) if name == regularized else None
          net = v1.layers.dense(net, 3, kernel_regularizer=decay, name=name)
        return net

      def port(self, inputs, training):
        return self.model(inputs, training, regularized='second')

    self.assert_first_failure(
      Case, STAGE, 'regularization loss first/kernel', 'regularization loss second/kernel'
    )


class RightPortTest(LadderTestCase):
  def test_regularized(self):
    text = self.assert_passes(
      type('Case', (tiny_models.Regularized,), {'weight_decay': 1e-7}), STAGE
    ).to_text()
    self.assertIn('regularization loss, inference, distinct values, agrees: tf1 ', text)

  def test_keras_l2_of_half_the_scale(self):
    class Case(tiny_models.Regularized):
      def port(self, inputs, training):
        decay = tf.keras.regularizers.L2(0.005)
        return v1.layers.dense(inputs, 3, kernel_regularizer=decay, name='fc')

    self.assert_passes(Case, STAGE)

  def test_losses_of_a_tf_module_by_hook(self):
    class Case(tiny_models.Regularized):
      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

      def tf2_regularization_losses(self, layer):
        return [self.half_sum_of_squares(layer.trainable_variables[1])]

    self.assert_passes(Case, STAGE)

  def test_epsilon_within_its_tolerance(self):
    class Case(tiny_models.Affine):
      tolerance = tf2verify.Tolerance(rtol=1e-3, atol=1e-3)

      def port(self, inputs, training):
        return self.model(inputs, training) * 1.0005

    self.assert_passes(Case, STAGE)

  def test_own_fill_values(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.math.lgamma(v1.get_variable('shape', [3]) * tf.abs(inputs) + 1.0)

      def fill_values(self, name, shape, dtype):
        return np.full(shape, 0.5, dtype)

    self.assert_passes(Case, STAGE)


class InconclusiveTest(LadderTestCase):
  def test_outputs_that_nothing_is_computed_for(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        return tf.shape(self.model(inputs, training))

      def port(self, inputs, training):
        return tf.shape(-3 * self.model(inputs, training))

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())
    self.assertIn('no output is computed from a variable or an input', verdict.to_text())

  def test_some_nan_is_noted(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return tf.sqrt(super().model(inputs, training))  # NaN where it is negative

    verdict = tf2verify.verify(Case, stages=[STAGE]).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertRegex(verdict.to_text(), r'note: \d+ output elements are NaN in inference, distinct')

  def test_nothing_but_nan(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return net * tf.math.log(-1.0 - v1.get_variable('level', [], initializer=_HALF) ** 2)

    verdict = tf2verify.verify(Case, stages=[STAGE]).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE, verdict.to_text())
    self.assertIn('every output is NaN on both sides in inference, distinct', verdict.reason)
    self.assertIn('override fill_values', verdict.reason)

  def test_outputs_that_are_all_noise(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return super().model(inputs, training) * 1e-7

      def port(self, inputs, training):
        return self.model(inputs, training) * 2.0

    class WithoutGraphs(Case):
      relate_graphs = False

    verdict = tf2verify.verify(WithoutGraphs, stages=[STAGE])
    self.assertIs(verdict.stages[-1].status, tf2verify.Status.INCONCLUSIVE)
    self.assertIn('zeros, or twice as much, would also pass', verdict.stages[-1].reason)
    # The graphs say where to look, and scaled inputs show it.
    self.assert_first_failure(Case, STAGE, 'the port computes Mul with 2')


class _Ranged(tiny_models.OneModel, abc.ABC):
  """A range whose bounds are variables: at one number for both, the outputs are NaN."""

  names, bits = ('min', 'max'), 8

  def model(self, inputs, training):
    return self.ranged(inputs, 8)

  def port(self, inputs, training):
    return self.ranged(inputs, self.bits)

  def ranged(self, inputs, bits):
    low, high = (v1.get_variable(name, []) for name in self.names)
    net = inputs @ v1.get_variable('kernel', [3, 4])
    return tf.quantization.fake_quant_with_min_max_vars(net, low, high, num_bits=bits)


class DomainTest(LadderTestCase):
  def test_bounds_by_name_and_by_fill_values(self):
    class Given(_Ranged, abc.ABC):
      names = ('lower', 'upper')

      def fill_values(self, name, shape, dtype):
        known = {'lower': -1.5, 'upper': 2.0}.get(name.rpartition('/')[2])
        return np.asarray(super().fill_values(name, shape, dtype) if known is None else known)

    for parent in (_Ranged, Given):
      with self.subTest(parent.__name__):
        self.assert_passes(type('Case', (parent,), {}), 'zero_randomness')
        other = type('Case', (parent,), {'bits': 6})
        self.assert_first_failure(other, 'zero_randomness', 'output')


if __name__ == '__main__':
  absltest.main()
