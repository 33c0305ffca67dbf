"""Ports that are right, by unusual means: no stage may blame them."""

import abc
import collections

import numpy as np
import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import WHOLE_LADDER, LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
Pair = collections.namedtuple('Pair', ['logits', 'state'])
# Outputs that to the stages that run a side against itself are like others here: dictionaries like
# named tuples, ...
_LIKE_ANOTHER = (
  'dictionary',
  'ordered dictionary',
  'ragged twice',
  'integers',
  'bfloat16',
  'scalar',
  'empty',
  'shape by data',
)


class NormPort(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.norm = tf.keras.layers.BatchNormalization(name='norm')

  def call(self, inputs, training=False):
    return self.norm(inputs, training=training)


class DensePort(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.fc = tf.keras.layers.Dense(3, activation='relu', name='fc')

  def call(self, inputs):
    return self.fc(inputs)


class FcModel(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    return v1.layers.dense(inputs, 3, activation=tf.nn.relu, name='fc')


class KindOfPortTest(LadderTestCase, parameterized.TestCase):
  def test_keras_layer_by_mapping(self):
    class Case(FcModel):
      variable_names = {'fc/kernel': 'dense_port/fc/kernel', 'fc/bias:0': 'dense_port/fc/bias:0'}

      def make_tf2_layer(self):
        return DensePort()

    verdict = self.assert_passes(Case, WHOLE_LADDER)
    self.assertLen([s for s in verdict.stages if s.status is tf2verify.Status.PASSED], 9)

  def test_keras_layer_by_function(self):
    class Case(FcModel):
      def variable_names(self, name):
        return f'dense_port/{name}'

      def make_tf2_layer(self):
        return DensePort()

    self.assert_passes(Case)

  def test_plain_keras_layer(self):
    class Case(FcModel):
      def make_tf2_layer(self):
        return tf.keras.layers.Dense(3, 'relu', name='fc')

    self.assert_passes(Case)

  def test_sequential_model(self):
    class Case(FcModel):
      def make_tf2_layer(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(3, 'relu', name='fc')])

    self.assert_passes(Case)

  def test_functional_model(self):
    class Case(FcModel):
      def make_tf2_layer(self):
        inputs = tf.keras.Input([3])
        return tf.keras.Model(inputs, tf.keras.layers.Dense(3, 'relu', name='fc')(inputs))

    self.assert_passes(Case, WHOLE_LADDER)

  def test_compiled_model(self):
    class Case(FcModel):
      def make_tf2_layer(self):
        model = tf.keras.Sequential([tf.keras.layers.Dense(3, 'relu', name='fc')])
        model.compile(tf.keras.optimizers.Adam(), 'mse', metrics=['mae'])
        return model

    self.assert_passes(Case, WHOLE_LADDER)

  def test_keras_layer_after_a_graph_was_built_elsewhere(self):
    class Case(FcModel):
      def variable_names(self, name):
        return f'dense_port/{name}'

      def make_tf2_layer(self):
        return DensePort()

    with tf.Graph().as_default():
      v1.layers.dense(tf.ones([2, 3]), 3)
    self.assert_passes(Case)
    layer = DensePort()
    layer(tf.ones([2, 3]))
    self.assert_passes(Case)
    layer(tf.ones([2, 3]))  # it can still be called

  def test_tf_module_under_the_shim(self):
    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

    self.assert_passes(Case, WHOLE_LADDER)

  def test_tf_module_with_variables_of_its_own(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        glorot = v1.glorot_uniform_initializer()
        self.kernel = tf.Variable(glorot([3, 3]), name='kernel')
        self.bias = tf.Variable(tf.zeros([3]), name='bias')

      def __call__(self, inputs):
        return tf.matmul(inputs, self.kernel) + self.bias

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, WHOLE_LADDER)

  def test_tf_function_inside(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.fc = tf.keras.layers.Dense(3, activation='relu', name='fc')

      @tf.function
      def call(self, inputs):
        return self.fc(inputs)

    class Case(FcModel):
      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, WHOLE_LADDER)

  def test_called_under_tf_function(self):
    class Port(tiny_models.ShimLayer):
      def __init__(self, forward):
        super().__init__(forward)
        self.compiled = tf.function(self.__call__)

    class Case(tiny_models.Dropped):
      def make_tf2_layer(self):
        return Port(self.port)

      def call_tf2_layer(self, layer, inputs, training):
        return layer.compiled(inputs, training=training)

    self.assert_passes(Case, WHOLE_LADDER)

  def test_half_ported(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = v1.layers.dense(inputs, 3, name='fc')
        return net * v1.get_variable('scale', [3])

      def port(self, inputs, training):
        dense = v1.keras.utils.get_or_create_layer(
          'fc', lambda: tf.keras.layers.Dense(3, name='fc')
        )
        return dense(inputs) * v1.get_variable('scale', [3])

      def variable_names(self, name):
        return name.replace('fc/', 'shim_layer/fc/')

    self.assert_passes(Case, WHOLE_LADDER)

  def test_one_loss_of_a_keras_layer_for_two_of_tf1(self):
    decay = tf.keras.regularizers.L2(1e-3)

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(
          inputs, 3, kernel_regularizer=decay, bias_regularizer=decay, name='fc'
        )

      def port(self, inputs, training):
        dense = v1.keras.utils.get_or_create_layer(
          'fc',
          lambda: tf.keras.layers.Dense(
            3, kernel_regularizer=decay, bias_regularizer=decay, name='fc'
          ),
        )
        return dense(inputs)

      def variable_names(self, name):
        return f'shim_layer/{name}'

    text = self.assert_passes(Case).to_text()
    self.assertIn('regularization loss, inference, distinct values', text)

  def test_keras_model_with_a_build_of_its_own(self):
    class Port(tf.keras.Model):
      def build(self, shape):
        self.scale = self.add_weight(name='scale', shape=shape[-1:], initializer='ones')
        super().build(shape)

      def call(self, inputs):
        return inputs * self.scale

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('scale', [3], initializer=v1.ones_initializer())

      def variable_names(self, name):
        return f'port/{name}'

      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, WHOLE_LADDER)

  @parameterized.parameters((False,), (True,))
  def test_one_training_mode(self, mode):
    class Case(tiny_models.Dropped):
      training_modes = (mode,)

    self.assert_passes(Case, WHOLE_LADDER)


class KindOfModelTest(LadderTestCase, parameterized.TestCase):
  @parameterized.named_parameters(('rank 2', (8, 3)), ('rank 4', (2, 5, 5, 3)))
  def test_batch_norm_of_keras(self, shape):
    class Case(tiny_models.Normalized):
      def variable_names(self, name):
        return f'norm_port/{name}'

      def make_tf2_layer(self):
        return NormPort()

      def make_inputs(self):
        return tf2verify.normal_inputs(shape)

    self.assert_passes(Case)

  @parameterized.parameters(
    (v1.nn.rnn_cell.BasicLSTMCell,),
    (v1.nn.rnn_cell.LSTMCell,),
    (v1.nn.rnn_cell.GRUCell,),
    (v1.nn.rnn_cell.BasicRNNCell,),
  )
  def test_recurrent_cell(self, cell_class):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        with v1.variable_scope('net'):
          return v1.nn.dynamic_rnn(cell_class(3), inputs, [4, 2], dtype=tf.float32)

      def make_inputs(self):
        return tf2verify.normal_inputs((2, 4, 3))

    self.assert_passes(Case)

  def test_slim_with_everything(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        with (
          slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(1e-4)),
          slim.arg_scope([slim.batch_norm, slim.dropout], is_training=training),
        ):
          net = slim.conv2d(inputs, 4, 3, normalizer_fn=slim.batch_norm, scope='conv')
          net = slim.dropout(slim.flatten(net), 0.5)
          return slim.fully_connected(net, 2, activation_fn=None, scope='fc')

    self.assert_passes(Case, WHOLE_LADDER)

  def test_resized_by_tf1_on_both_sides(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        net = inputs * v1.get_variable('scale', [3])
        return [
          v1.image.resize_bilinear(net, [9, 9]),
          v1.image.resize_nearest_neighbor(net, [9, 9]),
          v1.image.resize_bicubic(net, [9, 9]),
          tf.stop_gradient(v1.image.resize_area(net, [9, 9])),  # it has no gradient
        ]

    self.assert_passes(Case)

  def test_random_ops_in_the_forward_pass(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        noise = v1.random_normal(tf.shape(net)) + v1.random_uniform([4, 1])
        return net + v1.truncated_normal([3]) * noise

    self.assert_passes(Case, WHOLE_LADDER)

  def test_lookup_table(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        words = tf.lookup.KeyValueTensorInitializer(['a', 'b'], tf.constant([1, 2], tf.int64))
        ids = tf.lookup.StaticHashTable(words, 0).lookup(inputs['words'])
        return tf.nn.embedding_lookup(v1.get_variable('embedding', [3, 4]), ids)

      def make_inputs(self):
        return {'words': np.array(['b', 'z', 'a'], 'S')}

    self.assert_passes(Case, WHOLE_LADDER)

  def test_function_in_python(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        net = super().model(inputs, training)
        return net, v1.py_func(lambda rows: np.sort(rows, axis=1), [net], tf.float32)

    self.assert_passes(Case, WHOLE_LADDER)

  def test_while_loop_and_condition(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        weights, shift = kernel(), bias()
        _, net = tf.while_loop(
          lambda step, net: step < 3,
          lambda step, net: (step + 1, tf.tanh(net @ weights)),
          (tf.constant(0), inputs),
        )
        return tf.cond(tf.reduce_sum(inputs) > 0, lambda: net + shift, lambda: net - shift)

    self.assert_passes(Case, WHOLE_LADDER)

  def test_float64(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs @ v1.get_variable('kernel', [3, 3], tf.float64)

      def port(self, inputs, training):
        return self.model(tf.cast(inputs, tf.float64), training)

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)).astype(np.float64)

      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

    self.assert_passes(Case, WHOLE_LADDER)

  def test_partitioned_variable(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        partitioner = v1.fixed_size_partitioner(2)
        return inputs @ v1.get_variable('kernel', [3, 4], partitioner=partitioner)

      def port(self, inputs, training):
        return inputs @ tf.concat(
          [v1.get_variable('kernel/part_0', [2, 4]), v1.get_variable('kernel/part_1', [1, 4])], 0
        )

    self.assert_passes(Case, 'zero_randomness')


class OutputTest(LadderTestCase, parameterized.TestCase):
  @parameterized.parameters(
    ('dictionary', lambda n: {'logits': n, 'end points': {'relu': tf.nn.relu(n)}}),
    ('ordered dictionary', lambda n: collections.OrderedDict(b=n, a=2 * n)),
    ('named tuple', lambda n: Pair(n, (n[:1], [n[1:]]))),
    ('None among them', lambda n: (n, None)),
    ('ragged', lambda n: tf.RaggedTensor.from_tensor(n, [1, 0, 3, 2])),
    ('ragged twice', lambda n: tf.RaggedTensor.from_tensor(n[:, :, None], lengths=([2, 0, 1, 3],))),
    ('sparse', lambda n: tf.sparse.from_dense(tf.nn.relu(n))),
    ('integers', lambda n: (n, tf.argmax(n, 1))),
    ('booleans', lambda n: (n, n > 0)),
    ('strings', lambda n: (n, tf.where(n > 0, 'above', 'below'))),
    ('complex', lambda n: tf.complex(n, -n)),
    ('float16', lambda n: tf.cast(n, tf.float16)),
    ('bfloat16', lambda n: tf.cast(n, tf.bfloat16)),
    ('scalar', lambda n: tf.reduce_sum(n)),
    ('empty', lambda n: (n, n[:0])),
    ('shape by data', lambda n: tf.boolean_mask(n, n[:, 0] > 0)),
    ('rows by data', lambda n: tf.unique(tf.argmax(n, 1))),
    ('constants', lambda n: (n, 3, np.float32(0.5), tf.constant(2.0))),
    ('infinities', lambda n: (n, tf.stop_gradient(n) / tf.zeros_like(n))),
    ('variable', lambda n: (n, bias())),
    ('one twice', lambda n: (n, n)),
  )
  def test_kind(self, kind, make_outputs):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        with v1.variable_scope('', reuse=v1.AUTO_REUSE):
          return make_outputs(super().model(inputs, training))

    if kind in _LIKE_ANOTHER:
      self.assert_passes(Case)
    else:
      self.assert_passes(Case, WHOLE_LADDER)

  def test_list_against_tuple(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        return [self.model(inputs, training), inputs]

      def port(self, inputs, training):
        return self.model(inputs, training), inputs

    self.assert_passes(Case)

  def test_structured_inputs(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs['a'].logits @ kernel() + inputs['b'][0] + tf.cast(inputs['b'][1], tf.float32)

      def make_inputs(self):
        pair = Pair(tf2verify.normal_inputs((4, 3)), np.zeros((), bool))
        return {'a': pair, 'b': [np.float32(2.0), np.arange(3)]}

    self.assert_passes(Case, WHOLE_LADDER)


if __name__ == '__main__':
  absltest.main()
