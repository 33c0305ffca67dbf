import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
STAGE = 'no_new_variables'


class FaultTest(LadderTestCase):
  def test_tf_variable_in_call(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.matmul(inputs, tiny_models.kernel()) + tf.Variable(tf.zeros([3]), name='bias')

    self.assert_first_failure(
      Case,
      STAGE,
      '1 created after the first call (3 calls)',
      'variable shim_layer/bias: call 2 (inference), call 3 (training) and call 4 (training) ',
      ' created it, (3) float32',
      'no_new_variables_test.py:',
      "tf.Variable(tf.zeros([3]), name='bias')",
      'tf.Variable is called in call',
    )

  def test_what_follows_from_it_is_not_reported(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.matmul(inputs, tiny_models.kernel()) + tf.Variable(tf.zeros([3]), name='bias')

    verdict = tf2verify.verify(Case)
    self.assertEqual([stage.stage for stage in verdict.failures], [STAGE])
    self.assertEqual(verdict.stages[1].reason, 'blocked: no_new_variables FAILED')
    alone = tf2verify.verify(Case, ['variable_inventory']).stages
    self.assertIs(alone[-1].status, tf2verify.Status.FAILED)

  def test_several_of_a_call_are_several(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        shifts = [tf.Variable(tf.zeros([3]), name='shift') for _ in range(2)]
        return tf.matmul(inputs, tiny_models.kernel()) + shifts[0] + shifts[1]

    self.assert_first_failure(Case, STAGE, '2 created after the first call')

  def test_layer_names_count_up(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 2)

    self.assert_first_failure(
      Case,
      STAGE,
      'variable dense_1/kernel: call 2 (inference)',
      'v1.layers.dense(inputs, 2)',
      'counts up at each call (dense → dense_1)',
    )
    text = tf2verify.verify(Case, ['no_new_variables']).to_text()
    self.assertEqual(text.count('likely cause'), 1)  # the later calls have no cause of their own

  def test_default_scope_name_counts_up(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        with v1.variable_scope(None, default_name='bert'):
          return inputs + v1.get_variable('shift', [3])

    self.assert_first_failure(
      Case, STAGE, 'variable bert_1/shift', "v1.get_variable('shift', [3])", '(bert → bert_1)'
    )

  def test_get_variable_without_shim(self):
    class Port(tiny_models.ShimLayer):
      def call(self, inputs, training=False):
        return self._forward(inputs, training)

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port(self.model)

    self.assert_first_failure(
      Case,
      STAGE,
      'variable kernel: call 2',
      'get_variable created kernel again',
      'decorate the method with tf.compat.v1.keras.utils.track_tf1_style_variables',
    )

  def test_keras_layer_built_in_call(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 2, name='dense')

      def port(self, inputs, training):
        return tf.keras.layers.Dense(2)(inputs)

    self.assert_first_failure(
      Case,
      STAGE,
      'tf.keras.layers.Dense(2)(inputs)',
      'a Keras layer (Dense) is built inside call',
    )

  def test_created_in_training_branch_only(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        scale, shift = v1.get_variable('scale', [3]), v1.get_variable('shift', [3])
        return inputs * scale + shift if training else inputs * scale

      def port(self, inputs, training):
        net = inputs * v1.get_variable('scale', [3])
        return net + v1.get_variable('shift', [3]) if training else net

    self.assert_first_failure(
      Case,
      STAGE,
      '1 created after the first call',
      'variable shift: call 3 (training) created it',
      'takes a different path in a later call',
    )

  def test_refused_attempt_that_is_swallowed(self):
    class Port(tiny_models.ShimLayer):
      def __init__(self, forward):
        super().__init__(forward)
        self.kernel = tf.Variable(tf.ones([3, 3]), name='kernel')
        self.shift = tf.function(self.create_and_shift)

      def create_and_shift(self, net, training):
        return net + tf.Variable(tf.zeros([3]), name='bias')

      def call(self, inputs, training=False):
        net = tf.matmul(inputs, self.kernel)
        try:
          return self.shift(net, training)
        except ValueError:
          return net

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port(self.model)

    self.assert_first_failure(
      Case,
      STAGE,
      'variable bias: call 2 (inference), call 3 (training) and call 4 (training) tried to create ',
      "in create_and_shift: return net + tf.Variable(tf.zeros([3]), name='bias')",
    )


class RefusedTest(LadderTestCase):
  def test_created_while_a_function_is_traced(self):
    class Port(tf.Module):
      @tf.function
      def __call__(self, inputs):
        return inputs @ tf.Variable(tf.ones([3, 3]), name='kernel')

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port()

    self.assert_first_failure(
      Case,
      STAGE,
      '1 created after the first call (1 call)',
      'variable kernel: call 1 (inference) tried to create it, (3, 3) float32 at',
      'a tf.function makes a variable while it is traced',
    )

  def test_another_error_inside_a_function(self):
    class Port(tf.Module):
      @tf.function
      def __call__(self, inputs):
        return inputs @ tf.Variable(tf.ones([3, 3]), shape=[2], name='kernel')

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port()

    verdict = tf2verify.verify(Case, stages=[STAGE])
    self.assertIs(verdict.status, tf2verify.Status.ERROR, verdict.to_text())


class RetracingTest(LadderTestCase):
  def _notes(self, call):
    class Port(tiny_models.ShimLayer):
      def __init__(self, forward):
        super().__init__(forward)
        self.calls = 0
        self.scaled = tf.function(lambda net, factor: net * tf.cast(factor, tf.float32))

      @tiny_models.under_shim
      def call(self, inputs, training=False):
        self.calls += 1
        return call(self, self._forward(inputs, training))

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port(self.model)

    (stage,) = tf2verify.verify(Case, stages=[STAGE]).stages
    self.assertIs(stage.status, tf2verify.Status.PASSED)
    return stage.notes

  def test_new_python_number_in_every_call(self):
    (note,) = self._notes(lambda port, net: port.scaled(net, port.calls))
    self.assertIn('call 2 (inference), call 4 (training) traced', note)
    self.assertIn('pass tensors', note)

  def test_function_made_in_every_call(self):
    (note,) = self._notes(lambda port, net: tf.function(tf.nn.relu)(net))
    self.assertIn('traced relu again', note)

  def test_traced_once_a_mode(self):
    self.assertEqual(self._notes(lambda port, net: port.scaled(net, 2)), ())

  def test_loops_and_branches_of_one_function(self):
    def call(port, net):
      return tf.cond(net[0, 0] > 0, lambda: port.scaled(net, 2), lambda: port.scaled(net, 2))

    self.assertEqual(self._notes(call), ())


class RightPortTest(LadderTestCase):
  def test_named_scopes(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        with v1.variable_scope('net', reuse=v1.AUTO_REUSE):
          return v1.layers.dense(inputs, 2)

    verdict = self.assert_passes(Case, STAGE)
    self.assertEqual(verdict.stages[0].compared.tensors, 3)

  def test_one_training_mode(self):
    class Case(tiny_models.Affine):
      training_modes = (True,)

    self.assertEqual(self.assert_passes(Case, STAGE).stages[0].compared.tensors, 2)

  def test_get_or_create_layer(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.dense(inputs, 2, name='fc')

      def port(self, inputs, training):
        dense = v1.keras.utils.get_or_create_layer(
          'fc', lambda: tf.keras.layers.Dense(2, name='fc')
        )
        return dense(inputs)

    self.assert_passes(Case, STAGE)

  def test_variable_made_once_in_call(self):
    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        self.kernel = None

      def __call__(self, inputs):
        if self.kernel is None:
          self.kernel = tf.Variable(tf.ones([3, 3]), name='kernel')
        return tf.matmul(inputs, self.kernel)

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Port()

    self.assert_passes(Case, STAGE)

  def test_variable_that_only_training_has_on_both_sides(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = inputs * v1.get_variable('scale', [3])
        return net + v1.get_variable('shift', [3]) if training else net

    text = self.assert_passes(Case).to_text()
    self.assertIn('1 variables, shift first, exist only in the training graph of tf1', text)


if __name__ == '__main__':
  absltest.main()
