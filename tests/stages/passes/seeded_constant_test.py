import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'seeded_constant'


class InitialValueTest(LadderTestCase, parameterized.TestCase):
  @parameterized.parameters(
    ('normal', v1.random_normal_initializer(), tf.random_normal_initializer()),
    ('uniform', v1.random_uniform_initializer(), tf.random_uniform_initializer()),
    ('ones', v1.ones_initializer(), v1.zeros_initializer()),
    (
      'variance scaling',
      slim.variance_scaling_initializer(),
      v1.variance_scaling_initializer(2.0, distribution='truncated_normal'),
    ),
    (
      'Glorot',
      v1.glorot_uniform_initializer(),
      v1.glorot_normal_initializer(),
    ),
  )
  def test_other_initializer(self, _, tf1_initializer, tf2_initializer):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, initializer=tf1_initializer):
        return inputs @ v1.get_variable('kernel', [3, 3], initializer=initializer)

      def port(self, inputs, training):
        return self.model(inputs, training, initializer=tf2_initializer)

    self.assert_first_failure(
      Case, STAGE, 'initial value kernel [inference, constant]  (3, 3) float32'
    )

  def test_shared_scope_initializer_dropped(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        initializer = v1.truncated_normal_initializer(stddev=0.02)
        with v1.variable_scope('', initializer=initializer):
          return self.model(inputs, training)

    self.assert_first_failure(Case, STAGE, 'initial value kernel')

  def test_forget_gate_started_at_one(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, initial=(0.0, 0.0, 0.0)):
        initializer = v1.constant_initializer(list(initial))
        return inputs + v1.get_variable('bias', [3], initializer=initializer)

      def port(self, inputs, training):
        return self.model(inputs, training, initial=(0.0, 1.0, 0.0))

    self.assert_first_failure(
      Case, STAGE, 'initial value bias', '1 of 3 elements', 'at (1,): tf1 0, tf2 1'
    )


class DropoutTest(LadderTestCase):
  def test_keep_prob_read_as_rate(self):
    class Case(tiny_models.Dropped):
      def port(self, inputs, training):
        net = inputs @ kernel() + bias()
        return tf.nn.dropout(net, 0.8) if training else net

    self.assert_first_failure(Case, STAGE, 'output (the output) [training, constant]')

  def test_never_active(self):
    class Case(tiny_models.Dropped):
      def port(self, inputs, training):
        return inputs @ kernel() + bias()

    self.assert_first_failure(Case, STAGE, 'output (the output) [training, constant]', 'tf1 0,')

  def test_always_active(self):
    class Case(tiny_models.Dropped):
      def port(self, inputs, training):
        return super().model(inputs, training=True)

    # Random ops have the same seed in this stage and in zero_randomness, which sees it.
    self.assert_first_failure(Case, 'zero_randomness', 'output (the output)')

  def test_rescaled_twice(self):
    class Case(tiny_models.Dropped):
      def port(self, inputs, training):
        net = self.model(inputs, training)
        return net / 0.8 if training else net

    self.assert_first_failure(Case, STAGE, 'output (the output) [training, constant]')

  def test_one_mask_for_all_steps(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, noise_shape=None):
        net = inputs * v1.get_variable('scale', [3])
        return v1.nn.dropout(net, rate=0.5, noise_shape=noise_shape) if training else net

      def port(self, inputs, training):
        return self.model(inputs, training, noise_shape=[4, 1, 3])

      def make_inputs(self):
        return tf2verify.normal_inputs((4, 5, 3))

    self.assert_first_failure(Case, STAGE, 'output (the output) [training, constant]')


class DrawsOfOneShapeTest(LadderTestCase):
  def verdict(self, **left_out):
    class Case(tiny_models.Dropped):
      stages = tf2verify.all_stages_except(**left_out)

    return tf2verify.verify(Case, stages=[STAGE])

  def test_are_a_blind_spot_where_nothing_tells_them_apart(self):
    [spot] = self.verdict(seeded_num_random_ops='why').stages[-1].blind_spots[-1:]
    self.assertIn('the case leaves seeded_num_random_ops out', spot)

  def test_are_none_with_the_next_stage(self):
    self.assertNotIn('leaves', ' '.join(self.verdict().stages[-1].blind_spots))

  def test_without_draws_there_is_nothing_to_tell(self):
    class Case(tiny_models.Affine):
      stages = tf2verify.all_stages_except(seeded_num_random_ops='why')

    text = tf2verify.verify(Case, stages=[STAGE]).to_text()
    self.assertNotIn('the case leaves', text)


class BatchNormTest(LadderTestCase):
  def test_inference_statistics_in_training(self):
    class Case(tiny_models.Normalized):
      def port(self, inputs, training):
        return self.model(inputs, training=False)

    self.assert_first_failure(
      Case,
      STAGE,
      'output (the output) [training, constant]',
      'state after the call norm/moving_mean [training, constant]',
    )

  def test_momentum(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, decay=0.999):
        return slim.batch_norm(inputs, decay=decay, is_training=training, scope='norm')

      def port(self, inputs, training):
        return self.model(inputs, training, decay=0.99)

    text = self.assert_first_failure(
      Case,
      STAGE,
      'state after the call norm/moving_mean [training, constant]  (3,) float32: 3 of 3',
      'state after the call norm/moving_variance [training, constant]',
    )
    self.assertNotIn('output (the output)', text)

  def test_frozen_keras_layer_uses_inference_statistics(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.norm = tf.keras.layers.BatchNormalization(trainable=False, name='norm')

      def call(self, inputs, training=False):
        return self.norm(inputs, training=training)

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return v1.layers.batch_normalization(
          inputs, trainable=False, training=training, name='norm'
        )

      def make_tf2_layer(self):
        return Port()

      def variable_names(self, name):
        return f'port/{name}'

    self.assert_first_failure(Case, STAGE, 'output (the output) [training, constant]')

  def test_biased_variance_of_rank_2_inputs(self):
    class Port(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.norm = tf.keras.layers.BatchNormalization(
          momentum=0.999, scale=False, name='BatchNorm'
        )

      def call(self, inputs, training=False):
        return self.norm(inputs, training=training)

    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return slim.batch_norm(inputs, is_training=training)

      def make_tf2_layer(self):
        return Port()

      def variable_names(self, name):
        return f'port/{name}'

    text = self.assert_first_failure(
      Case, STAGE, 'state after the call BatchNorm/moving_variance (tf2: port/BatchNorm/moving'
    )
    self.assertNotIn('moving_mean', text)

  def test_updates_that_tf1_never_runs(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, collection='never_run'):
        return slim.batch_norm(
          inputs, updates_collections=collection, is_training=training, scope='norm'
        )

      def port(self, inputs, training):
        return self.model(inputs, training, collection=None)

    self.assert_first_failure(Case, STAGE, 'state after the call norm/moving_mean')

  def test_updated_twice(self):
    class Case(tiny_models.Normalized):
      def port(self, inputs, training):
        self.model(inputs, training)
        with v1.variable_scope('', reuse=True):
          return self.model(inputs, training)

    self.assert_first_failure(Case, STAGE, 'state after the call norm/moving_mean')


class StateTest(LadderTestCase):
  def test_moving_average_kept_by_hand(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, decay=0.9):
        average = v1.get_variable('average', [3], trainable=False)
        if training:
          update = average.assign(decay * average + (1 - decay) * tf.reduce_mean(inputs, 0))
          v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, update)
        return inputs + 0.0

      def port(self, inputs, training):
        return self.model(inputs, training, decay=0.99)

    text = self.assert_first_failure(
      Case, STAGE, 'state after the call average [training, constant]'
    )
    self.assertNotIn('inference', text)

  def test_counter_that_does_not_count(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, step=1):
        zero = v1.zeros_initializer()
        counter = v1.get_variable('calls', [], tf.int64, zero, trainable=False)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, counter.assign_add(step))
        return tf.identity(inputs)

      def port(self, inputs, training):
        return self.model(inputs, training, step=0)

    self.assert_first_failure(
      Case, STAGE, 'state after the call calls', 'tf1 1, tf2 0 (must be equal)'
    )


class RightPortTest(LadderTestCase):
  def test_dropout(self):
    class Case(tiny_models.Dropped):
      def port(self, inputs, training):
        net = inputs @ kernel() + bias()
        return tf.nn.dropout(net, 0.2) if training else net

    self.assert_passes(Case, STAGE)

  def test_initial_values_by_other_means(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        initializer = v1.truncated_normal_initializer(stddev=0.1)
        return inputs @ v1.get_variable('kernel', [3, 3], initializer=initializer)

      def port(self, inputs, training):
        def initializer(shape, dtype=tf.float32, partition_info=None):
          return 0.1 * tf.random.truncated_normal(shape, dtype=dtype)

        return inputs @ v1.get_variable('kernel', [3, 3], initializer=initializer)

    self.assert_passes(Case, STAGE)

  def test_batch_norm_state(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return slim.batch_norm(inputs, decay=0.5, is_training=training, scope='norm')

    self.assert_passes(Case, STAGE)


if __name__ == '__main__':
  absltest.main()
