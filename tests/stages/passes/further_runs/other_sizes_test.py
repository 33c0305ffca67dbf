"""Right and wrong ports at inputs of a different size than the case's."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'zero_randomness'
_STAGES = ['no_new_variables', 'variable_inventory', STAGE]


def stage_of(case):
  """Returns the verdict of the stage, and checks that it ran."""
  return tf2verify.verify(case, stages=_STAGES).stages[-1]


class Dense(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    return tf.matmul(inputs, kernel()) + bias()


class Ids(tiny_models.OneModel, abc.ABC):
  """Embedded ids and their mask; a table of positions."""

  positions = 16

  def make_inputs(self):
    ids = np.random.RandomState(0).randint(1, 9, size=(4, 6)).astype(np.int32)
    mask = (np.arange(6) < np.array([[6], [3], [5], [2]])).astype(np.int32)
    return {'ids': ids * mask, 'mask': mask}

  def model(self, inputs, training):
    table = v1.get_variable('table', [9, 5])
    positions = v1.get_variable('positions', [self.positions, 5])
    length = tf.shape(inputs['ids'])[1]
    found = tf.gather(table, inputs['ids']) + positions[:length]
    return found * tf.cast(inputs['mask'], tf.float32)[:, :, None]


class Images(tiny_models.OneModel, abc.ABC):
  def make_inputs(self):
    return tf2verify.normal_inputs((2, 9, 9, 3))

  def model(self, inputs, training):
    weights = v1.get_variable('weights', [3, 3, 3, 4])
    padded = tf.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]])
    return tf.nn.conv2d(padded, weights, 2, 'VALID')


class EdgesOfTwo(tiny_models.OneModel, abc.ABC):
  """A graph of more than 500 operations, and pairs of nodes, which are never triples."""

  def make_inputs(self):
    edges = np.random.RandomState(0).randint(0, 5, size=(20, 2)).astype(np.int32)
    return {'edges': edges, 'image': tf2verify.normal_inputs((2, 8, 8, 3))}

  def model(self, inputs, training, padding='SAME'):
    sources, targets = tf.unstack(inputs['edges'], 2, axis=1)
    net = tf.nn.avg_pool2d(inputs['image'], 2, 2, padding)
    net = tf.reduce_mean(net, [1, 2]) * v1.get_variable('scale', [3])
    for _ in range(260):
      net = tf.negative(tf.negative(net))
    return net, tf.cast(sources * targets, tf.float32)

  @classmethod
  def padded(cls, padding):
    """Returns a case whose port pools with a padding."""

    class Case(cls):
      def port(self, inputs, training):
        return self.model(inputs, training, padding)

    return Case


class WrongPortsTest(LadderTestCase):
  def test_batch_in_a_reshape(self):
    class Case(Dense):
      def port(self, inputs, training):
        return tf.reshape(self.model(inputs, training), [4, 3])

    text = self.assert_first_failure(
      Case, STAGE, 'the reference accepts batch 5', 'the port raises InvalidArgumentError'
    )
    self.assertIn('is the batch of the inputs hard-coded in the port?', text)

  def test_batch_in_a_mean(self):
    class Case(Dense):
      def build_tf1_graph(self, inputs, training):
        return tf.reduce_mean(self.model(inputs, training), 0)

      def port(self, inputs, training):
        return tf.reduce_sum(self.model(inputs, training), 0) / 4

    self.assert_first_failure(Case, STAGE, '[inference, distinct values, batch 5]')

  def test_batch_in_a_module(self):
    class Case(Dense):
      def port(self, inputs, training):
        return self.model(inputs, training)[:4]

      def make_tf2_layer(self):
        return tiny_models.ShimModule(self.port)

    self.assert_first_failure(Case, STAGE, '[inference, distinct values, batch 5]: shape differs')

  def test_batch_of_a_native_model(self):
    class Case(Dense):
      variable_names = {'kernel': 'dense/kernel', 'bias': 'dense/bias'}

      def make_tf2_layer(self):
        inputs = tf.keras.Input((3,), batch_size=4)
        return tf.keras.Model(inputs, tf.keras.layers.Dense(3, name='dense')(inputs)[:4] + 0.0)

    self.assert_first_failure(Case, STAGE, 'batch 5')

  def test_positions_cut_to_the_length_of_the_inputs(self):
    class Case(Ids):
      def port(self, inputs, training):
        table = v1.get_variable('table', [9, 5])
        positions = v1.get_variable('positions', [self.positions, 5])
        found = tf.gather(table, inputs['ids']) + positions[:6]
        return found * tf.cast(inputs['mask'], tf.float32)[:, :, None]

    text = self.assert_first_failure(Case, STAGE, "the reference accepts inputs of shape ['ids']")
    self.assertIn('is the size of the inputs hard-coded in the port?', text)

  def test_padding_that_shifts_at_even_sizes(self):
    class Case(Images):
      def port(self, inputs, training):
        return tf.nn.conv2d(inputs, v1.get_variable('weights', [3, 3, 3, 4]), 2, 'SAME')

    text = self.assert_first_failure(Case, STAGE, 'inputs of shape (3, 10, 10, 3)]')
    self.assertIn("at the case's own inputs both sides agree", text)
    self.assertIn('tf1 pads explicitly before a VALID Conv2D', text)
    self.assertIn("with tf1's operations in place of the port's both sides agree exactly", text)

  def test_padding_of_a_layer_that_stays_odd_at_one_more(self):
    class Case(Images):
      def model(self, inputs, training, padding='VALID'):
        small = tf.nn.conv2d(inputs, v1.get_variable('first', [3, 3, 3, 3]), 2, 'SAME')
        if padding == 'VALID':  # 9 and 10 give 5, 11 gives 6
          small = tf.pad(small, [[0, 0], [1, 1], [1, 1], [0, 0]])
        return tf.nn.conv2d(small, v1.get_variable('weights', [3, 3, 3, 4]), 2, padding)

      def port(self, inputs, training):
        return self.model(inputs, training, 'SAME')

    text = self.assert_first_failure(Case, STAGE, 'inputs of shape (3, 10, 11, 3)]')
    self.assertIn('at inputs of shape (3, 10, 10, 3) both sides agree', text)

  def test_lengths_that_have_to_be_halved_twice(self):
    class Case(Images):
      def make_inputs(self):
        return tf2verify.normal_inputs((2, 16, 16, 3))

      def model(self, inputs, training, size=None):
        weights = v1.get_variable('weights', [3, 3, 3, 4])
        small = tf.nn.space_to_depth(tf.nn.conv2d(inputs, weights, 1, 'SAME'), 4)
        return tf.image.resize(small, tf.shape(inputs)[1:3] if size is None else size)

      def port(self, inputs, training):
        return self.model(inputs, training, size=[16, 16])

    self.assert_first_failure(Case, STAGE, 'inputs of shape (3, 32, 32, 3)')

  def test_height_and_width_exchanged_of_square_images(self):
    class Case(Images):
      def model(self, inputs, training, axes=(1, 2)):
        pooled = tf.reduce_mean(inputs, [1, 2], keepdims=True)
        size = [tf.shape(inputs)[axis] for axis in axes]
        spread = tf.tile(pooled, [1, size[0], size[1], 1])
        return spread @ v1.get_variable('weights', [1, 1, 3, 4])

      def port(self, inputs, training):
        return self.model(inputs, training, axes=(2, 1))

    text = self.assert_first_failure(Case, STAGE, '(3, 10, 11, 4)', '(3, 11, 10, 4)')
    self.assertIn('are two dimensions exchanged, such as height and width', text)

  def test_height_and_width_exchanged_behind_strides(self):
    class Case(Images):
      def make_inputs(self):
        return tf2verify.normal_inputs((2, 17, 17, 3))

      def model(self, inputs, training, axes=(1, 2)):
        small = tf.nn.avg_pool2d(inputs, 3, 4, 'SAME')
        pooled = tf.reduce_mean(small, [1, 2], keepdims=True)
        size = [tf.shape(small)[axis] for axis in axes]
        spread = tf.tile(pooled, [1, size[0], size[1], 1])
        return tf.concat([small, spread], 3) @ v1.get_variable('weights', [1, 1, 6, 4])

      def port(self, inputs, training):
        return self.model(inputs, training, axes=(2, 1))

    self.assert_first_failure(
      Case, STAGE, 'inputs of shape (3, 18, 23, 3)', 'are two dimensions exchanged'
    )

  def test_port_that_raises_where_height_and_width_differ(self):
    class Case(Images):
      def port(self, inputs, training):
        found = self.model(inputs, training)
        return found + tf.zeros_like(tf.transpose(found, [0, 2, 1, 3]))

    self.assert_first_failure(
      Case, STAGE, 'inputs of shape (3, 10, 11, 3)', 'are two dimensions exchanged'
    )

  def test_regularization_loss_of_a_batch(self):
    class Case(Dense):
      def model(self, inputs, training, batch=None):
        outputs = tf.matmul(inputs, kernel())
        size = tf.cast(tf.shape(inputs)[0], tf.float32) if batch is None else batch
        v1.losses.add_loss(
          tf.reduce_sum(outputs**2) / size, v1.GraphKeys.REGULARIZATION_LOSSES
        ) if not tf.executing_eagerly() else self.losses.append(tf.reduce_sum(outputs**2) / size)
        return outputs

      def port(self, inputs, training):
        self.losses = []
        return self.model(inputs, training, batch=4.0)

      def tf2_regularization_losses(self, layer):
        return self.losses

    self.assert_first_failure(Case, STAGE, 'regularization loss', 'batch 5]')

  def test_length_where_only_a_sum_is_returned(self):
    class Case(Ids):
      def build_tf1_graph(self, inputs, training):
        return tf.reduce_sum(self.model(inputs, training), 1)

      def port(self, inputs, training):
        inputs = {name: tf.ensure_shape(x, [None, None])[:, :6] for name, x in inputs.items()}
        return self.build_tf1_graph(inputs, training)

    self.assert_first_failure(Case, STAGE, "inputs of shape ['ids'] (5, 7), ['mask'] (5, 7)]")

  def test_length_of_a_recurrent_model(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return tf2verify.normal_inputs((3, 4, 2))

      def model(self, inputs, training):
        cell = v1.nn.rnn_cell.BasicRNNCell(3)
        return v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32, scope='rnn')[1]

      def port(self, inputs, training):
        with v1.variable_scope('rnn/basic_rnn_cell'):
          weights = v1.get_variable('kernel', [5, 3])
          offset = v1.get_variable('bias', [3], initializer=v1.zeros_initializer())
        state = tf.zeros([tf.shape(inputs)[0], 3])
        for step in range(4):
          state = tf.tanh(tf.concat([inputs[:, step], state], 1) @ weights + offset)
        return state

    self.assert_first_failure(Case, STAGE, 'inputs of shape (4, 5, 2)]')

  def test_batch_of_an_input_signature(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.zeros([3, 3]), name='kernel')
        self.bias = tf.Variable(tf.zeros([3]), name='bias')

      @tf.function(input_signature=[tf.TensorSpec([4, 3], tf.float32)])
      def __call__(self, inputs):
        return inputs @ self.kernel + self.bias

    class Case(Dense):
      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(Case, STAGE, 'the reference accepts batch 5')

  def test_pooling_window_of_a_native_model(self):
    class Case(Images):
      def variable_names(self, name):
        return name

      def model(self, inputs, training):
        net = v1.layers.conv2d(inputs, 4, 3, name='conv')
        return tf.reduce_mean(net, [1, 2])

      def make_tf2_layer(self):
        inputs = tf.keras.Input((None, None, 3))
        net = tf.keras.layers.Conv2D(4, 3, name='conv')(inputs)
        net = tf.keras.layers.AveragePooling2D(7)(net)
        return tf.keras.Model(inputs, net[:, 0, 0])

    self.assert_first_failure(Case, STAGE, 'inputs of shape (3, 10, 10, 3)]')

  def test_pooling_of_a_large_model_whose_other_input_has_one_width(self):
    text = self.assert_first_failure(EdgesOfTwo.padded('VALID'), STAGE, "['image'] (3, 9, 9, 3)")
    self.assertNotIn('were not compared', text)

  def test_the_line_that_raises(self):
    class Case(Images):
      def model(self, inputs, training):
        weights = v1.get_variable('weights', [1, 1, 3, 4])
        return tf.nn.conv2d(tf.nn.max_pool2d(inputs, 3, 3, 'SAME'), weights, 1, 'SAME')

      def port(self, inputs, training):
        return tf.reshape(self.model(inputs, training), [-1, 3, 3, 4])  # of 10 pixels: 4

    text = self.assert_first_failure(Case, STAGE, 'the port raises InvalidArgumentError')
    self.assertIn('other_sizes_test.py:', text)
    self.assertIn('TF1 has a result there', text)


class RightPortsTest(LadderTestCase, parameterized.TestCase):
  def passed(self, case, *, without_blind_spots=True):
    verdict = stage_of(case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    if without_blind_spots:
      self.assertEqual(verdict.blind_spots, (), verdict.to_text())
    return verdict

  def test_large_model_whose_other_input_has_one_width(self):
    self.passed(EdgesOfTwo.padded('SAME'))

  @parameterized.parameters(Dense, Ids, Images)
  def test_shim(self, case):
    verdict = self.passed(type('Case', (case,), {}))
    self.assertEqual(verdict.compared.tensors, 3)

  def test_functional_model_with_a_fixed_input_shape(self):
    class Case(Images):
      variable_names = {'weights': 'conv/kernel'}

      def make_tf2_layer(self):
        inputs = tf.keras.Input((9, 9, 3))
        padded = tf.keras.layers.ZeroPadding2D(1)(inputs)
        conv = tf.keras.layers.Conv2D(4, 3, 2, use_bias=False, name='conv')
        return tf.keras.Model(inputs, conv(padded))

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('by the shape of an Input of a functional model', verdict.blind_spots[0])
    self.assertEqual(verdict.compared.tensors, 3)  # the batch can grow

  def test_functional_model_of_keras_3_with_a_fixed_input_shape(self):
    class Case(Images):
      variable_names = {'weights': 'conv/kernel'}

      def make_tf2_layer(self):
        inputs = keras.Input((9, 9, 3))
        padded = keras.layers.ZeroPadding2D(1)(inputs)
        conv = keras.layers.Conv2D(4, 3, 2, use_bias=False, name='conv')
        return keras.Model(inputs, conv(padded))

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('by the shape of an Input of a functional model', verdict.blind_spots[0])
    self.assertEqual(verdict.compared.tensors, 3)

  def test_fixed_input_shape_of_an_inner_model(self):
    class Outer(tf.keras.Model):
      def __init__(self):
        super().__init__()
        inputs = tf.keras.Input((9, 9, 3))
        padded = tf.keras.layers.ZeroPadding2D(1)(inputs)
        conv = tf.keras.layers.Conv2D(4, 3, 2, use_bias=False, name='conv')
        self.inner = tf.keras.Model(inputs, conv(padded))

      def call(self, inputs):
        return self.inner(inputs)

    class Case(Images):
      variable_names = {'weights': 'conv/kernel'}

      def make_tf2_layer(self):
        return Outer()

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('by the shape of an Input of a functional model', verdict.blind_spots[0])

  def test_input_signature(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.zeros([3, 3, 3, 4]), name='weights')

      @tf.function(input_signature=[tf.TensorSpec([None, 9, 9, 3], tf.float32)])
      def __call__(self, inputs):
        padded = tf.pad(inputs, [[0, 0], [1, 1], [1, 1], [0, 0]])
        return tf.nn.conv2d(padded, self.weights, 2, 'VALID')

    class Case(Images):
      def make_tf2_layer(self):
        return Port()

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('input_signature', verdict.blind_spots[0])

  def test_flatten_and_dense(self):
    class Case(Images):
      def model(self, inputs, training):
        return v1.layers.dense(v1.layers.flatten(inputs), 3, name='fc')

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_sequential_model(self):
    class Case(Images):
      def model(self, inputs, training):
        net = v1.layers.conv2d(inputs, 4, 3, name='conv')
        return v1.layers.dense(tf.reduce_mean(net, [1, 2]), 3, name='fc')

      def make_tf2_layer(self):
        return tf.keras.Sequential(
          [
            tf.keras.layers.Conv2D(4, 3, name='conv'),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(3, name='fc'),
          ]
        )

    self.passed(Case)

  def test_rnn_with_lengths(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        lengths = np.array([5, 2, 4], np.int32)
        return {'steps': tf2verify.normal_inputs((3, 5, 4)), 'lengths': lengths}

      def model(self, inputs, training):
        cell = v1.nn.rnn_cell.BasicLSTMCell(3)
        return v1.nn.dynamic_rnn(
          cell, inputs['steps'], inputs['lengths'], dtype=tf.float32, scope='rnn'
        )

    self.assertGreater(self.passed(Case).compared.tensors, 6)

  def test_sparse_inputs(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return {
          'indices': np.array([[0, 0], [1, 2], [3, 1]], np.int64),
          'values': tf2verify.normal_inputs((3,)),
          'shape': np.array([4, 3], np.int64),
        }

      def model(self, inputs, training):
        sparse = tf.SparseTensor(inputs['indices'], inputs['values'], inputs['shape'])
        return tf.sparse.sparse_dense_matmul(sparse, kernel())

    self.passed(Case)

  def test_ragged_inputs(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return {'values': tf2verify.normal_inputs((6, 3)), 'splits': np.array([0, 2, 2, 6])}

      def model(self, inputs, training):
        rows = tf.RaggedTensor.from_row_splits(inputs['values'] @ kernel(), inputs['splits'])
        return tf.reduce_sum(rows, 1)

    self.passed(Case)

  def test_strings(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return np.array([b'a', b'bb', b'ccc'])

      def model(self, inputs, training):
        length = tf.cast(tf.strings.length(inputs), tf.float32)
        return length[:, None] @ v1.get_variable('kernel', [1, 3])

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_scalars(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return {'x': np.array(1.5, np.float32), 'temperature': np.array(0.5, np.float32)}

      def model(self, inputs, training):
        return inputs['x'] * bias() / inputs['temperature']

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('no input has a dimension that can vary', verdict.to_text())

  def test_builder_that_uses_the_static_batch(self):
    class Case(Dense):
      def model(self, inputs, training):
        batch = inputs.shape[0]
        batch = getattr(batch, 'value', batch)
        return tf.reshape(tf.matmul(inputs, kernel()), [batch * 3])

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_positions_of_just_this_length(self):
    class Case(Ids):
      positions = 6

      def model(self, inputs, training):
        table, positions = v1.get_variable('table', [9, 5]), v1.get_variable('positions', [6, 5])
        return (tf.gather(table, inputs['ids']) + positions) * tf.cast(inputs['mask'], tf.float32)[
          :, :, None
        ]

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_two_inputs_of_one_size_by_chance(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        ids = np.random.RandomState(0).randint(0, 9, size=(4, 3)).astype(np.int32)
        return {'ids': ids, 'features': tf2verify.normal_inputs((4, 3))}

      def model(self, inputs, training):
        summed = tf.reduce_sum(tf.gather(v1.get_variable('table', [9, 3]), inputs['ids']), 1)
        return summed + tf.matmul(inputs['features'], kernel())

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_batch_and_length_of_one_size_by_chance(self):
    class Case(Ids):
      def make_inputs(self):
        return {name: array[:, :4] for name, array in super().make_inputs().items()}

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_square_adjacency_of_a_graph(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        edges = (np.random.RandomState(0).rand(5, 5) < 0.4).astype(np.float32)
        return {'edges': edges, 'nodes': tf2verify.normal_inputs((5, 3))}

      def model(self, inputs, training):
        return inputs['edges'] @ inputs['nodes'] @ kernel()

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_lengths_that_grow_together_only(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        first = np.random.RandomState(0).randint(0, 9, size=(2, 5)).astype(np.int32)
        return {'first': first, 'all': np.concatenate([first, first[:, :1]], 1)}

      def model(self, inputs, training):
        found = tf.gather(v1.get_variable('table', [9, 3]), inputs['all'])
        return found[:, 1:] - tf.gather(v1.get_variable('table_of_first', [9, 3]), inputs['first'])

    # The batch and both lengths; the graph refuses lengths that are not one apart.
    verdict = self.passed(Case)
    self.assertEqual(verdict.compared.tensors, 3)

  def test_port_that_declares_square_images(self):
    class Case(Images):
      def port(self, inputs, training):
        assert inputs.shape[1] == inputs.shape[2]
        return self.model(inputs, training)

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('(3, 10, 11, 3), and the port declares that it does not', verdict.to_text())
    self.assertEqual(verdict.compared.tensors, 3)

  def test_an_image_whose_size_matters_although_its_end_is_not_read(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return tf2verify.normal_inputs((2, 11, 11, 3))

      def resized(self, images):
        return v1.image.resize_bilinear(images, (11, 11), align_corners=True)

      def build_tf1_graph(self, inputs, training):
        net = v1.image.resize_bilinear(inputs, (11, 11), align_corners=True)[:, 1:-1, 1:-1]
        return tf.reduce_mean(net**2, (1, 2)) @ kernel()

      def port(self, inputs, training):
        return tf.reduce_mean(self.resized(inputs)[:, 1:-1, 1:-1] ** 2, (1, 2)) @ kernel()

    self.passed(Case)

    class Wrong(Case):
      def resized(self, images):
        return tf.image.resize(images, (11, 11))

    verdict = tf2verify.verify(Wrong, stages=['zero_randomness']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_a_reshape_that_makes_further_examples_of_larger_images(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return tf2verify.normal_inputs((3, 4, 4, 2))

      def build_tf1_graph(self, inputs, training):
        return tf.reshape(inputs, [-1, 32]) @ v1.get_variable('kernel', [32, 3])

      def flat(self, inputs):
        return tf.reshape(inputs, [tf.shape(inputs)[0], -1])

      def port(self, inputs, training):
        return self.flat(inputs) @ v1.get_variable('kernel', [32, 3])

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertIn('makes further examples of the added elements', verdict.blind_spots[0])

    class Wrong(Case):
      def flat(self, inputs):
        return tf.reshape(inputs, [3, 32])

    verdict = tf2verify.verify(Wrong, stages=['zero_randomness']).stages[-1]
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    self.assertIn('batch 4', verdict.to_text())

  @parameterized.parameters(np.int32, np.float32)
  def test_columns_that_the_reference_takes_by_number(self, dtype):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return (10 * tf2verify.normal_inputs((4, 3))).astype(dtype)

      def build_tf1_graph(self, inputs, training):
        columns = [tf.cast(inputs[:, n : n + 1], tf.float32) for n in range(3)]
        return tf.concat(columns, 1) @ kernel()

      def port(self, inputs, training):
        one, two, three = tf.unstack(tf.cast(inputs, tf.float32), axis=1)
        return tf.stack([one, two, three], 1) @ kernel()

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertEqual(verdict.compared.tensors, 3)  # the batch can grow
    self.assertIn('but does not read the added elements', verdict.blind_spots[0])
    self.assertIn('other_sizes_test.py:', verdict.blind_spots[0])

  def test_column_of_one_value(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        return {'kind': np.array([[1], [0], [2], [1]]), 'age': tf2verify.normal_inputs((4, 1))}

      def build_tf1_graph(self, inputs, training):
        kinds = v1.get_variable('kinds', [3, 5])
        return tf.reduce_sum(tf.gather(kinds, inputs['kind']), 1) + inputs['age']

      def port(self, inputs, training):
        return tf.gather(v1.get_variable('kinds', [3, 5]), inputs['kind'][:, 0]) + inputs['age']

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_batch_of_one(self):
    class Case(Ids):
      def make_inputs(self):
        inputs = {name: array[:1] for name, array in super().make_inputs().items()}
        return {**inputs, 'scale': np.full((6, 1), 0.5, np.float32)}

      def model(self, inputs, training):
        return super().model(inputs, training) * tf.reduce_mean(inputs['scale'])

    self.assertEqual(self.passed(Case).compared.tensors, 3)

  def test_time_major_with_memory(self):
    class Case(tiny_models.OneModel):
      def make_inputs(self):
        ids = np.random.RandomState(0).randint(0, 9, size=(7, 2)).astype(np.int32)
        return {'ids': ids, 'memory': tf2verify.normal_inputs((4, 2, 3))}

      def model(self, inputs, training):
        steps = tf.gather(v1.get_variable('table', [9, 3]), inputs['ids'])
        return tf.concat([inputs['memory'], steps], 0) @ kernel()

    self.passed(Case)

  def test_noise_in_inference(self):
    class Case(Dense):
      def model(self, inputs, training):
        return tf.matmul(inputs, kernel()) + tf.random.normal(tf.shape(inputs))

    self.passed(Case)

  def test_reference_of_one_size(self):
    class Case(Dense):
      def model(self, inputs, training):
        return tf.reshape(tf.matmul(inputs, kernel()), [2, 6])

    verdict = self.passed(Case, without_blind_spots=False)
    self.assertEqual(len(verdict.blind_spots), 1)
    self.assertIn('the reference refuses each one that was tried (batch 5', verdict.to_text())

  def test_training_mode_only(self):
    class Case(Dense):
      training_modes = (True,)

    self.passed(Case)

  def test_variables_of_the_batch_are_no_such_size(self):
    class Case(Dense):
      def model(self, inputs, training):
        state = v1.get_variable('state', [4, 3], trainable=False)
        return tf.matmul(inputs, kernel()) + state

    self.passed(Case, without_blind_spots=False)


class DeclaredSizesTest(LadderTestCase):
  class Wrong(Dense, abc.ABC):
    def port(self, inputs, training):
      return tf.reshape(self.model(inputs, training), [4, 3])

  def test_forbidden(self):
    for nothing in ((), {}, []):

      class Case(self.Wrong):
        other_sizes = nothing

      verdict = stage_of(Case)
      self.assertIs(verdict.status, tf2verify.Status.PASSED)
      self.assertIn('the case forbids it', verdict.to_text())
      self.assertEqual(verdict.blind_spots, ())

  def test_shapes(self):
    for sizes in ((8, 3), {'': (2, 3)}, [(4, 3), (9, 3)]):

      class Case(self.Wrong):
        other_sizes = sizes

      class Right(Dense):
        other_sizes = sizes

      self.assertIs(stage_of(Case).status, tf2verify.Status.FAILED, str(sizes))
      self.assertIs(stage_of(Right).status, tf2verify.Status.PASSED, str(sizes))

  def test_of_a_dictionary(self):
    class Case(Ids):
      other_sizes = {'ids': (2, 9), 'mask': (2, 9)}

    verdict = stage_of(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertEqual(verdict.compared.tensors, 3)

  def test_method(self):
    class Case(self.Wrong):
      def other_sizes(self):
        yield tf2verify.normal_inputs((4, 3), seed=1)
        yield tf2verify.normal_inputs((1, 3), seed=2)

    self.assertIs(stage_of(Case).status, tf2verify.Status.FAILED)

  def test_refused_by_the_reference(self):
    class Case(Dense):
      other_sizes = {'': (4, 5)}

    verdict = stage_of(Case)
    self.assertIs(verdict.status, tf2verify.Status.ERROR)
    self.assertIn('which the reference refuses', verdict.to_text())

  def test_not_understood(self):
    for sizes, words in (
      (5, 'other_sizes is 5'),
      ({'x': (4, 3)}, "names the input 'x', which make_inputs does not return"),
      ((4,), 'make_inputs gives it (4, 3)'),
      ({'': (0, 3)}, 'of at least one element'),
    ):

      class Case(Dense):
        other_sizes = sizes

      verdict = stage_of(Case)
      self.assertIs(verdict.status, tf2verify.Status.ERROR, str(sizes))
      self.assertIn(words, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
