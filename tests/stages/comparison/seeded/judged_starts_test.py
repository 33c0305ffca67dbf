"""Tests of tf2verify.stages.comparison.seeded.judged_starts: initializers, in pairs."""

import abc
import functools
import os
import tempfile
from unittest import mock

import numpy as np
import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides import recorded_cases
from tests.stages import tiny_models
from tests.stages.without_hurry import WithoutHurryTestCase
from tf2verify.stages.comparison.seeded import judged_starts

v1 = tf.compat.v1
keras = tf.keras.initializers
STAGE = 'seeded_constant'
LAST = 'gradients'


def _uniform(low, high, shape):
  return v1.random_uniform(shape, low, high)


def _gamma(alpha, shape, dtype=tf.float32, partition_info=None):
  return v1.random_gamma(shape, alpha, dtype=dtype)


def _half_fixed(scale, shape, dtype=tf.float32, partition_info=None):
  drawn = scale * v1.random_normal([shape[0], 2], dtype=dtype)
  return tf.concat([drawn, tf.ones([shape[0], shape[1] - 2], dtype)], 1)


def _normal_by_box_muller(scale, shape, dtype=tf.float32, partition_info=None):
  one, other = (v1.random_uniform(shape, 1e-12, 1.0, dtype) for _ in range(2))
  return scale * tf.sqrt(-2 * tf.math.log(one)) * tf.cos(2 * np.pi * other)


def _orthogonal_by_svd(gain, shape, dtype=tf.float32, partition_info=None):
  _, left, right = tf.linalg.svd(v1.random_normal(shape, dtype=dtype), full_matrices=False)
  return gain * tf.matmul(left, right, adjoint_b=True)


class Started(tiny_models.OneModel, abc.ABC):
  """`inputs @ kernel`: TF1's initializer in a get_variable, the port's in a Keras layer."""

  tf1_start: object = None
  tf2_start: object = None
  shape = (30, 20)

  def build_tf1_graph(self, inputs, training):
    start = self.tf1_start
    if isinstance(start, functools.partial) and start.func is _uniform:
      return inputs @ v1.get_variable('kernel', initializer=start(self.shape))
    return inputs @ v1.get_variable('kernel', self.shape, initializer=start)

  def make_tf2_layer(self):
    start = self.tf2_start
    return tf.keras.layers.Dense(
      self.shape[1], use_bias=False, kernel_initializer=start, name='layer'
    )

  def variable_names(self, name):
    return f'layer/{name}'

  def make_inputs(self):
    return tf2verify.normal_inputs((4, self.shape[0]))


def _case(tf1_start, tf2_start, size=None):
  members = {'tf1_start': staticmethod(tf1_start), 'tf2_start': staticmethod(tf2_start)}
  if isinstance(tf1_start, functools.partial):
    members['tf1_start'] = tf1_start
  if size is not None:
    members['shape'] = size
  return type('Case', (Started,), members | {'__module__': __name__})


_LIMIT = np.sqrt(6 / 50)
_FAN_IN = functools.partial(keras.VarianceScaling, 1.0, 'fan_in')


class SameDistributionTest(WithoutHurryTestCase, parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'uniform by hand, Glorot',
      functools.partial(_uniform, -_LIMIT, _LIMIT),
      keras.GlorotUniform(),
    ),
    (
      'truncated normal',
      v1.truncated_normal_initializer(stddev=0.02),
      keras.TruncatedNormal(stddev=0.02),
    ),
    ('normal', v1.random_normal_initializer(stddev=0.02), keras.RandomNormal(stddev=0.02)),
    ('variance scaling', v1.variance_scaling_initializer(1.0, 'fan_in'), _FAN_IN()),
    (
      'variance scaling by hand',
      v1.truncated_normal_initializer(stddev=np.sqrt(1 / 30) / 0.8796),
      _FAN_IN(),
    ),
    (
      'variance scaling of slim, uniform',
      slim.variance_scaling_initializer(1.0, 'FAN_AVG', uniform=True),
      keras.GlorotUniform(),
    ),
    ('He, MSRA', v1.keras.initializers.he_normal(), keras.HeNormal()),
    (
      'He by hand',
      slim.variance_scaling_initializer(2.0 / 1.3 / 0.87962566**2, 'FAN_IN'),
      keras.HeNormal(),
    ),
    ('orthogonal', v1.orthogonal_initializer(1.3), keras.Orthogonal(1.3)),
    ('LeCun', slim.variance_scaling_initializer(1.0, 'FAN_IN', True), keras.LecunUniform()),
  )
  def test_passes(self, tf1_start, tf2_start):
    text = self.assert_passes(_case(tf1_start, tf2_start), LAST).to_text()
    self.assertIn('1 initial value is drawn with different random numbers from the same dist', text)
    self.assertNotIn('by a test of', text)

  @parameterized.named_parameters(
    ('gamma', functools.partial(_gamma, 2.0), functools.partial(_gamma, 2.0)),
    (
      'normal by Box and Muller',
      functools.partial(_normal_by_box_muller, 0.1),
      keras.RandomNormal(stddev=0.1),
    ),
    ('orthogonal by SVD', functools.partial(_orthogonal_by_svd, 1.0), keras.Orthogonal()),
  )
  def test_passes_by_a_test_of_values(self, tf1_start, tf2_start):
    if tf1_start.func is _gamma:  # one op and one seed would give the same numbers
      tf2_start = functools.partial(lambda *a, **k: tf.reverse(_gamma(2.0, *a, **k), [0]))
    text = self.assert_passes(_case(tf1_start, tf2_start), STAGE).to_text()
    self.assertRegex(text, r'by a test of [\d,]+ numbers of each side, in which a scale [012]\.')

  def test_small_tensors(self):
    case = _case(functools.partial(_uniform, -1.0, 1.0), keras.GlorotUniform(), (4, 2))
    self.assert_passes(case, LAST)

  def test_numbers_of_numpy(self):
    class Case(_case(None, keras.RandomNormal(stddev=0.1), (200, 300))):
      def build_tf1_graph(self, inputs, training):
        table = np.random.RandomState(1).normal(0, 0.1, self.shape).astype(np.float32)
        return inputs @ v1.get_variable('kernel', initializer=table)

    text = self.assert_passes(Case, STAGE).to_text()
    self.assertIn('no random op in tf1, normal, standard deviation 0.1 in the port', text)

  def test_embedding(self):
    class Case(tiny_models.Embedded):
      def model(self, inputs, training):
        table = v1.get_variable('embeddings', initializer=v1.random_uniform([50, 4], -0.1, 0.1))
        return tf.nn.embedding_lookup(table, inputs)

      def make_tf2_layer(self):
        start = keras.RandomUniform(-0.1, 0.1)
        return tf.keras.layers.Embedding(50, 4, embeddings_initializer=start, name='layer')

      def variable_names(self, name):
        return f'layer/{name}'

    self.assert_passes(Case, LAST)

  def test_drawn_while_the_layer_is_made(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(0.1 * tf.random.stateless_normal([3, 3], [1, 2]), name='kernel')

      def __call__(self, inputs):
        return inputs @ self.kernel

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        start = v1.random_normal_initializer(stddev=0.1)
        return inputs @ v1.get_variable('kernel', [3, 3], initializer=start)

      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, LAST)

  def test_half_precision(self):
    case = self.halves(0.3)
    self.assert_passes(case, STAGE)

  def test_half_precision_three_percent_off(self):
    self.assert_first_failure(self.halves(0.309), STAGE, 'initial value kernel')

  def halves(self, stddev):
    # Two variables of ten elements take as many draws as are allowed: 22 s.
    self.enter_context(mock.patch.object(judged_starts, '_MOST', 256))

    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        start = keras.RandomNormal(stddev=stddev)
        self.kernel = tf.Variable(lambda: start([3, 3], tf.float16), name='kernel')
        self.scalar = tf.Variable(keras.RandomUniform(-1, 1)([]), name='scalar')

      def __call__(self, inputs):
        return tf.cast(inputs, tf.float16) @ self.kernel * tf.cast(self.scalar, tf.float16)

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        start = v1.random_normal_initializer(stddev=0.3, dtype=tf.float16)
        kernel = v1.get_variable('kernel', [3, 3], tf.float16, initializer=start)
        scalar = v1.get_variable('scalar', [], initializer=v1.random_uniform_initializer(-1, 1))
        return tf.cast(inputs, tf.float16) @ kernel * tf.cast(scalar, tf.float16)

      def make_tf2_layer(self):
        return Port()

    return Case

  def test_made_in_a_traced_function_three_percent_off(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = None

      @tf.function
      def __call__(self, inputs):
        if self.kernel is None:
          self.kernel = tf.Variable(0.309 * tf.random.normal([3, 3]), name='kernel')
        return inputs @ self.kernel

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        start = v1.random_normal_initializer(stddev=0.3)
        return inputs @ v1.get_variable('kernel', [3, 3], initializer=start)

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(Case, STAGE, '1.03 times the values of tf1')

  def test_stacked_recurrent_cells(self):
    class Port(tf.keras.layers.Layer):
      def build(self, shape):
        sizes = {'cell_0': 3 + 4, 'cell_1': 4 + 4}
        self.pairs = []
        for name, size in reversed(sizes.items()):
          limit = np.sqrt(6 / (size + 16))
          kernel = self.add_weight(
            f'{name}/kernel', [size, 16], initializer=keras.RandomUniform(-limit, limit)
          )
          bias = self.add_weight(f'{name}/bias', [16], initializer='zeros')
          self.pairs.insert(0, (kernel, bias))

      def call(self, inputs):
        states = [(tf.zeros([4, 4]), tf.zeros([4, 4]))] * 2
        net = inputs
        for number, (kernel, bias) in enumerate(self.pairs):
          c, h = states[number]
          gates = tf.concat([net, h], 1) @ kernel + bias
          i, j, f, o = tf.split(gates, 4, 1)
          c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
          net = tf.tanh(c) * tf.sigmoid(o)
        return net

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = inputs
        for number in range(2):
          cell = v1.nn.rnn_cell.LSTMCell(4, name=f'cell_{number}')
          net, _ = cell(net, cell.zero_state(4, tf.float32))
        return net

      def make_tf2_layer(self):
        return Port(name='port')

      def variable_names(self, name):
        return f'port/{name}'

    self.assert_passes(Case, LAST)


class OtherDistributionTest(WithoutHurryTestCase, parameterized.TestCase):
  @parameterized.named_parameters(
    (
      'uniform by hand, 3 % off',
      functools.partial(_uniform, -_LIMIT, _LIMIT),
      keras.RandomUniform(-1.03 * _LIMIT, 1.03 * _LIMIT),
      'tf1: uniform in ±0.3464',
      'tf2: uniform in ±0.3568',
    ),
    (
      'another family of the same scale',
      v1.variance_scaling_initializer(1.0, 'fan_in'),
      _FAN_IN('untruncated_normal'),
      'tf1: truncated normal, standard deviation 0.2076',
      'tf2: normal, standard deviation 0.1826',
    ),
    (
      'a correction forgotten',
      v1.truncated_normal_initializer(stddev=np.sqrt(1 / 30)),
      _FAN_IN(),
      'truncated normal, standard deviation 0.1826',
      'truncated normal, standard deviation 0.2076',
    ),
    (
      'a mean',
      v1.random_normal_initializer(stddev=0.02),
      keras.RandomNormal(0.001, 0.02),
      'tf2: normal, mean 0.001, standard deviation 0.02',
    ),
    (
      'fan out',
      v1.variance_scaling_initializer(1.0, 'fan_in'),
      keras.VarianceScaling(1.0, 'fan_out'),
    ),
    (
      'orthogonal, 3 % off',
      v1.orthogonal_initializer(),
      keras.Orthogonal(1.03),
      '1.03 times what tf1 makes',
    ),
    (
      'orthogonal by SVD, 3 % off',
      functools.partial(_orthogonal_by_svd, 1.03),
      keras.Orthogonal(),
      'times that of tf1',
    ),
    (
      'normal by Box and Muller, 3 % off',
      functools.partial(_normal_by_box_muller, 0.1),
      keras.RandomNormal(stddev=0.103),
      'the scale of the port is 1.03',
    ),
    ('gamma, 3 % off', functools.partial(_gamma, 2.0), functools.partial(_gamma, 2.06)),
    ('identity, orthogonal', tf.initializers.identity(), keras.Orthogonal(), 'tf1: no random op'),
  )
  def test_fails(self, tf1_start, tf2_start, *words):
    case = _case(tf1_start, tf2_start)
    if 'identity' in self.id():
      case.shape = (20, 20)
    text = self.assert_first_failure(case, STAGE, 'initial value kernel', *words)
    self.assertNotIn('output (the output)', text)

  def test_other_gates_scaled(self):
    case = _case(functools.partial(_half_fixed, 0.1), functools.partial(_half_fixed, 0.103))
    self.assert_first_failure(case, STAGE, 'initial value kernel')

  def test_constants(self):
    case = _case(v1.zeros_initializer(), keras.Constant(0.01))
    self.assert_first_failure(case, STAGE, 'starts kernel with 0.01, tf1 with 0')

  def test_constant_and_draw(self):
    case = _case(v1.zeros_initializer(), keras.RandomNormal(stddev=0.01))
    self.assert_first_failure(case, STAGE, 'initial value kernel', 'tf1 with 0')

  def test_tables(self):
    tables = [np.random.RandomState(n).normal(size=(30, 20)).astype(np.float32) for n in (1, 2)]
    case = _case(v1.constant_initializer(tables[0]), keras.Constant(tables[1]))
    self.assert_first_failure(case, STAGE, 'initial value kernel')

  def test_small_table_and_draw(self):
    table = np.random.RandomState(1).normal(0, 0.1, (4, 3)).astype(np.float32)
    case = _case(v1.constant_initializer(table), keras.RandomNormal(stddev=0.1), (4, 3))
    self.assert_first_failure(case, STAGE, 'tf1: no random op; the port: normal, standard')

  def test_one_cause_for_twenty_variables(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__(name='port')
        self.layers = [
          tf.keras.layers.Dense(3, use_bias=False, kernel_initializer='he_normal', name=f'd{n:02}')
          for n in range(20)
        ]

      def call(self, inputs):
        for layer in self.layers:
          inputs = layer(inputs)
        return inputs

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        for n in range(20):
          inputs = inputs @ v1.get_variable(f'd{n:02}/kernel', [3, 3])
        return inputs

      def make_tf2_layer(self):
        return Port()

      def variable_names(self, name):
        return f'port/{name}'

    text = self.assert_first_failure(
      Case,
      STAGE,
      'initial value d00/kernel [inference, constant]: distribution differs',
      'tf1: uniform in ±1, and so d01/kernel, d02/kernel, d03/kernel, d04/kernel and 15 more',
      'tf2: truncated normal, standard deviation 0.9282',
      'the initial value of 20 variables (d00/kernel,',
    )
    self.assertEqual(text.count('likely cause'), 1)
    self.assertEqual(text.count('initial values differ (max'), 1)


class TooLittleKnownTest(WithoutHurryTestCase):
  def test_is_a_blind_spot(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        table = tf.random.stateless_gamma([3, 3], [1, 2], 2.0)  # the same in every layer
        self.kernel = tf.Variable(table[::-1], name='kernel')

      def __call__(self, inputs):
        return inputs @ self.kernel

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs @ v1.get_variable(
          'kernel', [3, 3], initializer=functools.partial(_gamma, 2.0)
        )

      def make_tf2_layer(self):
        return Port()

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn('whether tf1 and the port draw kernel from the same', verdict.to_text())
    self.assertIn('(tf1: computed from RandomGamma; the port: computed', verdict.to_text())
    self.assertLen(verdict.stages[-1].blind_spots, 1)


class RecordedTest(WithoutHurryTestCase):
  """The recorded graph is run here, for its draws and for what was not recorded."""

  def recorded(self, case):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    return recorded_cases.record(case, os.path.join(folder.name, 'recording'))

  def test_same_distribution(self):
    same = _case(v1.truncated_normal_initializer(stddev=0.02), keras.TruncatedNormal(stddev=0.02))
    text = self.assert_passes(self.recorded(same), LAST).to_text()
    self.assertIn('kernel (truncated normal, standard deviation 0.02); the port continued', text)
    self.assertIn('training, num_random_ops of the computation of this kind was not recorded', text)

  def test_another_distribution(self):
    other = _case(
      v1.truncated_normal_initializer(stddev=0.02), keras.TruncatedNormal(stddev=0.0206)
    )
    self.assert_first_failure(
      self.recorded(other), STAGE, 'tf2: truncated normal, standard deviation 0.0206'
    )


if __name__ == '__main__':
  absltest.main()
