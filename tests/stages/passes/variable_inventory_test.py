import types

import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import WHOLE_LADDER, LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'variable_inventory'
_TRAINABLE = v1.GraphKeys.TRAINABLE_VARIABLES


class MissingAndExtraTest(LadderTestCase):
  def test_shared_weights_become_two_sets(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = v1.layers.dense(inputs, 3, name='siamese')
        return net, v1.layers.dense(-inputs, 3, name='siamese', reuse=True)

      def port(self, inputs, training):
        net = v1.layers.dense(inputs, 3, name='siamese')
        return net, v1.layers.dense(-inputs, 3, name='siamese_2')

    self.assert_first_failure(
      Case,
      STAGE,
      '2 differ (2 compared, 2 unmatched)',
      'variable siamese_2/kernel: presence differs\n    tf1: missing',
      "v1.layers.dense(-inputs, 3, name='siamese_2')",
    )

  def test_distinct_weights_become_one_set(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return self.two_cells(inputs, ('cell_0', 'cell_1'))

      def port(self, inputs, training):
        return self.two_cells(inputs, ('cell_0', 'cell_0'))

      def two_cells(self, net, names):
        for name in names:
          with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
            net, _ = v1.nn.rnn_cell.GRUCell(3)(net, net)
        return net

    self.assert_first_failure(
      Case,
      STAGE,
      '(4 compared, 4 unmatched)',
      'variable cell_1/gru_cell/gates/kernel: presence differs',
      'tf2: missing',
    )

  def test_two_kernels_that_the_port_fuses(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        keys = v1.layers.dense(inputs, 3, use_bias=False, name='keys')
        return keys * v1.layers.dense(inputs, 3, use_bias=False, name='values')

      def port(self, inputs, training):
        fused = v1.layers.dense(inputs, 6, use_bias=False, name='keys_and_values')
        keys, values = tf.split(fused, 2, axis=-1)
        return keys * values

    self.assert_first_failure(
      Case,
      STAGE,
      'likely cause: split, or fused? variable_names cannot say that: write a variable map',
      '`keys/kernel, values/kernel -> keys_and_values/kernel`, layout `a z1, a z2 -> a (z1+z2)`',
    )

  def test_tied_softmax_lost(self):
    class Case(tiny_models.Embedded):
      def model(self, inputs, training):
        table = v1.get_variable('wte', [5, 4])
        return tf.matmul(tf.gather(table, inputs), table, transpose_b=True)

      def port(self, inputs, training):
        table = v1.get_variable('wte', [5, 4])
        return v1.layers.dense(tf.gather(table, inputs), 5, use_bias=False, name='softmax')

    self.assert_first_failure(
      Case, STAGE, 'variable softmax/kernel: presence differs', 'tf2: (4, 5) float32, created at'
    )

  def test_bias_beside_batch_norm(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        return slim.conv2d(
          inputs,
          2,
          3,
          normalizer_fn=slim.batch_norm,
          normalizer_params={'is_training': training},
          scope='conv',
        )

      def port(self, inputs, training):
        net = slim.conv2d(inputs, 2, 3, activation_fn=None, scope='conv')
        with v1.variable_scope('conv'):
          return tf.nn.relu(slim.batch_norm(net, is_training=training))

    self.assert_first_failure(Case, STAGE, '1 differs', 'variable conv/biases: presence differs')

  def test_gamma_that_slim_does_not_make(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training):
        return slim.batch_norm(inputs, is_training=training, scope='norm')

      def port(self, inputs, training):
        return slim.batch_norm(inputs, scale=True, is_training=training, scope='norm')

    self.assert_first_failure(Case, STAGE, '1 differs', 'variable norm/gamma: presence differs')

  def test_attention_without_its_projections(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        keys = v1.layers.dense(inputs, 3, use_bias=False, name='memory_layer')
        query = v1.layers.dense(inputs, 3, use_bias=False, name='query_layer')
        return tf.tanh(keys + query) * v1.get_variable('attention_v', [3])

      def port(self, inputs, training):
        return tf.tanh(inputs + inputs) * v1.get_variable('attention_v', [3])

    self.assert_first_failure(
      Case, STAGE, 'variable memory_layer/kernel: presence', 'variable query_layer/kernel: presence'
    )

  def test_only_one_training_mode_lacks_it(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = inputs * v1.get_variable('scale', [3])
        return net, net + v1.get_variable('auxiliary', [3]) if training else net

      def port(self, inputs, training):
        net = inputs * v1.get_variable('scale', [3])
        return net, net

    self.assert_first_failure(Case, STAGE, 'variable auxiliary: presence differs')


class NameTest(LadderTestCase):
  def test_renamed(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return inputs @ v1.get_variable('weights', [3, 3]) + v1.get_variable('biases', [3])

    self.assert_first_failure(
      Case, STAGE, "variable_names = {'kernel': 'weights', 'bias': 'biases'}"
    )

  def test_scope_around_everything(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        with v1.variable_scope('port'):
          return self.model(inputs, training)

    self.assert_first_failure(
      Case,
      STAGE,
      'has the prefix "port/", which the tf1 side lacks',
      "{'kernel': 'port/kernel', 'bias': 'port/bias'}",
    )

  def test_many_renames_are_written_down_whole(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        for name in 'abcd':
          inputs = v1.layers.dense(inputs, 3, name=name)
        return inputs * v1.get_variable('weight_of_all', [7])[0]

      def port(self, inputs, training):
        with v1.variable_scope('port'):
          for name in 'abcd':
            inputs = v1.layers.dense(inputs, 3, name=name)
          return inputs * v1.get_variable('shift', [7])[0]

    text = self.assert_first_failure(
      Case,
      STAGE,
      "likely cause: renamed? 8 names of the port are 'port/' + name: declare variable_names as in "
      'the note',
    )
    self.assertIn(
      "for the case:\n  def variable_names(self, name):\n    return 'port/' + name\n", text
    )

  def test_names_in_pairs_are_not_undone(self):
    class Case(tiny_models.OneModel):
      variable_names = {'kept': 'kept'}

      def model(self, inputs, training):
        inputs = inputs + v1.get_variable('kept', [3])
        for name in 'abc':
          inputs = v1.layers.dense(inputs, 3, name=name)
        return inputs

      def port(self, inputs, training):
        inputs = inputs + v1.get_variable('kept', [3])
        with v1.variable_scope('port'):
          for name in 'abc':
            inputs = v1.layers.dense(inputs, 3, name=name)
        return inputs

    text = self.assert_first_failure(Case, STAGE, '… 2 more, see the note below}')
    _, _, code = text.partition('to add to variable_names:\n  variable_names = {\n')
    self.assertEqual(code.count("': 'port/"), 6)

  def test_what_may_be_renamed_is_not_explained_otherwise(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = v1.layers.dense(inputs, 5, use_bias=False, name='wide')
        return net @ v1.get_variable('cell/candidate', [5, 3]) * v1.get_variable('pace', [3])

      def port(self, inputs, training):
        with v1.variable_scope('port'):
          net = v1.layers.dense(inputs, 5, use_bias=False, name='wide')
          narrow = v1.get_variable('mixer', [5, 3])
          return net @ narrow * v1.get_variable('pace', [3])

    text = self.assert_first_failure(Case, STAGE, "'wide/kernel': 'port/wide/kernel'")
    self.assertNotIn('transposed', text)

  def test_counted_name(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='dense')

      def port(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='dense_1')

    self.assert_first_failure(Case, STAGE, "'dense/kernel': 'dense_1/kernel'")

  def test_two_keras_layers_of_one_name(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.first = tf.keras.layers.Dense(3, name='dense')
        self.second = tf.keras.layers.Dense(3, name='dense')

      def call(self, inputs):
        return self.second(self.first(inputs))

    class Case(tiny_models.OneModel):
      variable_names = {'dense/kernel': 'port/dense/kernel', 'dense/bias': 'port/dense/bias'}

      def model(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='dense')

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(
      Case,
      STAGE,
      'variable port/dense/kernel_1: presence differs',
      'tf1: missing',
    )

  def test_duplicates_that_tf1_does_not_have_at_all(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.first = tf.Variable([1.0, 2.0, 3.0], name='shift')
        self.second = tf.Variable([1.0, 2.0, 3.0], name='shift')

      def call(self, inputs):
        return inputs + self.first + self.second

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs + v1.get_variable('a', [3]) + v1.get_variable('b', [3])

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(
      Case, STAGE, 'variable a: presence differs', 'shift names several variables on the tf2 side'
    )

  def test_mapping_to_a_name_that_the_port_lacks(self):
    class Case(tiny_models.Affine):
      variable_names = {'kernel': 'port/kernel'}

    text = self.assert_first_failure(
      Case,
      STAGE,
      "tf2: missing: variable_names gives it the tf2 name 'port/kernel'",
      "variable_names = {'kernel': 'kernel'}",
    )
    self.assertNotIn('bias', text)

  def test_mapping_that_names_nothing(self):
    class Case(tiny_models.Affine):
      variable_names = {'kernal': 'weights'}

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.ERROR)
    self.assertIn("Maybe you meant 'kernel' instead of 'kernal'", verdict.to_text())


class AttributeTest(LadderTestCase):
  def test_transposed_shape(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.matmul(inputs, v1.get_variable('kernel', [3, 2]))

      def port(self, inputs, training):
        return tf.matmul(inputs, v1.get_variable('kernel', [2, 3]), transpose_b=True)

    self.assert_first_failure(
      Case,
      STAGE,
      'variable kernel: shape differs\n    tf1: (3, 2) float32, created at',
      'tf2: (2, 3) float32, created at',
    )

  def test_gru_with_reset_after(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.cell = tf.keras.layers.GRUCell(3, name='cell')

      def call(self, inputs):
        return self.cell(inputs, inputs)[0]

    class Case(tiny_models.OneModel):
      variable_names = {'bias': 'port/cell/bias'}

      def model(self, inputs, training):
        gates = inputs @ v1.get_variable('kernel', [3, 9])
        gates += inputs @ v1.get_variable('recurrent_kernel', [3, 9])
        return gates + v1.get_variable('bias', [9])

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(
      Case, STAGE, 'variable bias (tf2: port/cell/bias): shape differs', '(9) float32', '(2, 9)'
    )

  def test_float64_narrowed(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.fc = tf.keras.layers.Dense(3, name='fc')

      def call(self, inputs):
        return self.fc(inputs)

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='fc')

      def make_tf2_layer(self):
        return Port()

      def variable_names(self, name):
        return f'port/{name}'

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 3)).astype('float64')

    self.assert_first_failure(
      Case,
      STAGE,
      'variable fc/kernel (tf2: port/fc/kernel): dtype differs\n    tf1: (3, 3) float64',
      "Keras casts to floatx: pass dtype='float64'",
    )

  def test_frozen_in_tf1_only(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('scale', [3], trainable=False)

      def port(self, inputs, training):
        return inputs * v1.get_variable('scale', [3])

    self.assert_first_failure(
      Case,
      STAGE,
      'variable scale: trainable differs',
      'tf1: not in TRAINABLE_VARIABLES (trainable=False)',
      'scale is frozen in tf1 but would be trained in tf2: pass trainable=False',
    )

  def test_a_scope_that_is_frozen_in_tf1_is_said_once(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, trained=False):
        net = inputs * v1.get_variable('online/scale', [3])
        for number in range(5):
          net += v1.get_variable(f'target/w{number}', [3], trainable=trained)
        return net

      def port(self, inputs, training):
        return self.model(inputs, training, True)

    said = 'all 5 variables of target are frozen in tf1 but would be trained in tf2'
    text = self.assert_first_failure(Case, STAGE, said, '(trainable=True), created at')
    self.assertEqual(text.count('pass trainable=False'), 1)

  def test_frozen_by_the_layer_while_the_flag_of_the_variable_stays(self):
    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        layer = super().make_tf2_layer()
        layer.trainable = False
        return layer

    self.assert_first_failure(
      Case,
      STAGE,
      'variable kernel: trainable differs',
      'not in layer.trainable_variables, although its own flag is trainable=True',
      'trainable in tf1 but frozen in the port: layer.trainable=False',
    )


class UntrackedTest(LadderTestCase):
  def test_held_by_a_closure(self):
    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        shift = tf.Variable([1.0, 2.0, 3.0], name='bias')
        return tiny_models.ShimLayer(lambda inputs, training: inputs @ kernel() + shift)

    self.assert_first_failure(
      Case,
      STAGE,
      'the port creates it, but layer.variables does not contain it',
      'untracked: (3) float32, created at tests/stages/passes/variable_inventory_test.py',
      "shift = tf.Variable([1.0, 2.0, 3.0], name='bias')",
    )

  def test_held_by_a_lambda_layer(self):
    shift = tf.Variable([1.0, 2.0, 3.0], name='bias')

    class Port(tiny_models.ShimLayer):
      def __init__(self, forward):
        super().__init__(forward)
        self.add = tf.keras.layers.Lambda(lambda net: net + shift)

      @tiny_models.under_shim
      def call(self, inputs):
        return self.add(tf.matmul(inputs, kernel()))

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port(self.model)

    self.assert_first_failure(
      Case, STAGE, 'variable bias: presence differs', 'untracked: (3) float32'
    )

  def test_held_by_a_plain_object(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.eye(3), name='kernel')
        self.rest = types.SimpleNamespace(bias=tf.Variable([1.0, 2.0, 3.0], name='bias'))

      def __call__(self, inputs):
        return tf.matmul(inputs, self.kernel) + self.rest.bias

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(
      Case, STAGE, 'variable bias: presence differs', 'untracked', 'a plain object hides it'
    )

  def test_used_inside_a_tf_function(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = tf.Variable(tf.eye(3), name='kernel')
        self.rest = types.SimpleNamespace(bias=tf.Variable([1.0, 2.0, 3.0], name='bias'))

      @tf.function
      def __call__(self, inputs):
        return tf.matmul(inputs, self.kernel) + tf.cond(
          inputs[0, 0] > 0, lambda: self.rest.bias, lambda: 2.0 * self.rest.bias
        )

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port()

    text = self.assert_first_failure(Case, STAGE, 'variable bias: presence', 'untracked: (3)')
    self.assertNotIn('variable kernel', text)

  def test_counter_that_is_only_counted(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.rest = types.SimpleNamespace(calls=tf.Variable(0, name='calls'))

      def __call__(self, inputs):
        self.rest.calls.assign_add(1)
        return tf.identity(inputs)

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        calls = v1.get_variable('calls', [], tf.int32, v1.zeros_initializer(), trainable=False)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, calls.assign_add(1))
        return tf.identity(inputs)

      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(Case, STAGE, 'variable calls: presence', 'untracked: () int32')

  def test_keras_model_without_code_of_the_user(self):
    class Case(tiny_models.OneModel):
      variable_names = {}  # else a map is derived

      def model(self, inputs, training):
        return v1.layers.dense(v1.layers.dense(inputs, 3, name='fc'), 3, name='fc_1')

      def make_tf2_layer(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(3, name=name) for name in ('in', 'out')])

    # No line of the user creates it, least of all the one that runs tf2verify: it has that of the
    # layer's constructor.
    tf2 = 'tf1: missing\n    tf2: (3, 3) float32, created at tests/stages/passes/variable_inventory'
    text = self.assert_first_failure(Case, STAGE, '8 differ', tf2)
    self.assertNotIn('untracked', text)

  def test_keras_layer_held_by_a_closure(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 3, name='fc')

      def make_tf2_layer(self):
        dense = tf.keras.layers.Dense(3, name='fc')
        return tiny_models.ShimLayer(lambda inputs, training: dense(inputs))

    self.assert_first_failure(
      Case, STAGE, 'fc/kernel: presence differs', 'untracked', 'layer.variables is empty'
    )

  def test_embedding_table_that_is_only_looked_up(self):
    class Case(tiny_models.Embedded):
      def make_tf2_layer(self):
        table = tf.Variable(tf.ones([5, 4]), name='embedding')
        return tiny_models.ShimLayer(lambda inputs, training: tf.nn.embedding_lookup(table, inputs))

    self.assert_first_failure(Case, STAGE, 'untracked: (5, 4) float32')


class ReferenceTest(LadderTestCase):
  def test_optimizer_in_the_builder(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        outputs = self.model(inputs, training)
        v1.train.AdamOptimizer().minimize(tf.reduce_mean(outputs))
        return outputs

    self.assert_first_failure(
      Case,
      STAGE,
      'build_tf1_graph makes the slots of an optimizer, as the variables named …/Adam are: leave',
    )

  def test_global_step_is_not_blamed(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        v1.train.get_or_create_global_step()
        return self.model(inputs, training)

    self.assertIn('the global step) is not part of the model', self.assert_passes(Case).to_text())

  def test_moving_averages_in_the_trainable_collection_are_not_blamed(self):
    class Case(tiny_models.OneImageModel):
      def model(self, inputs, training, variables_collections=(_TRAINABLE,)):
        return slim.batch_norm(
          inputs,
          is_training=training,
          variables_collections=list(variables_collections),
          scope='norm',
        )

      def port(self, inputs, training):
        return self.model(inputs, training, variables_collections=())

    self.assertIn('a quirk of the reference', self.assert_passes(Case).to_text())

  def test_metric_counters_are_not_blamed(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        outputs = self.model(inputs, training)
        v1.metrics.mean(outputs)
        return outputs

    self.assert_passes(Case)


class RightPortTest(LadderTestCase):
  def test_variables_in_another_order(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.get_variable('zeta', [3]) * inputs + v1.get_variable('alpha', [3])

    verdict = self.assert_passes(Case, STAGE)
    self.assertEqual(verdict.stages[1].compared.tensors, 2)
    self.assertIn('6 parameters in pairs; 2 variables trainable', verdict.to_text())

  def test_frozen_on_both_sides(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('scale', [3], trainable=False) + bias()

    self.assertIn('1 variable trainable', self.assert_passes(Case).to_text())

  def test_neither_side_has_variables(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return tf.nn.softmax(inputs)

    verdict = self.assert_passes(Case, WHOLE_LADDER)
    self.assertIs(verdict.stages[1].status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('neither side has a variable', verdict.stages[1].reason)
    self.assertIs(verdict.stages[5].status, tf2verify.Status.NOT_APPLICABLE)


if __name__ == '__main__':
  absltest.main()
