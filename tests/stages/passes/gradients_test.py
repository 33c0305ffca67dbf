import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import WHOLE_LADDER, LadderTestCase
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
STAGE = 'gradients'


@tf.custom_gradient
def reversed_gradient(net):
  return tf.identity(net), lambda upstream: -upstream


@tf.custom_gradient
def clipped_gradient(net):
  return tf.identity(net), lambda upstream: tf.clip_by_value(upstream, -0.1, 0.1)


@tf.custom_gradient
def sign_with_straight_gradient(net):
  return tf.sign(net), lambda upstream: upstream


class StopGradientTest(LadderTestCase):
  def test_lost(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        target = inputs * v1.get_variable('target', [3])
        return tf.stop_gradient(target) + inputs @ kernel()

      def port(self, inputs, training):
        return inputs * v1.get_variable('target', [3]) + inputs @ kernel()

    self.assert_first_failure(
      Case,
      STAGE,
      '1 of 2 tensors differ (1 compared, 1 unmatched)',
      'gradient target [training, distinct values]: presence differs\n    tf1: None',
      'tf2: (3,) float32',
      'a stop_gradient was lost in the port',
    )

  def test_zero_where_tf1_has_none(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        v1.get_variable('target', [3])
        return inputs @ kernel()

      def port(self, inputs, training):
        return inputs * v1.get_variable('target', [3]) * 0.0 + inputs @ kernel()

    self.assert_first_failure(
      Case,
      STAGE,
      'gradient target [training, distinct values]: presence differs\n    tf1: None',
      'and that of the port is zero everywhere',
    )

  def test_extra(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.stop_gradient(inputs @ kernel()) + bias()

    self.assert_first_failure(
      Case,
      STAGE,
      'gradient kernel [training, distinct values]: presence differs\n    tf1: (3, 3) float32',
      'tf2: None',
      'the path from the variable to the outputs is cut on the tf2 side',
    )

  def test_on_one_of_two_paths(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = tf.tanh(inputs @ kernel())
        return net * tf.stop_gradient(net)

      def port(self, inputs, training):
        net = tf.tanh(inputs @ kernel())
        return net * net

    self.assert_first_failure(Case, STAGE, 'gradient kernel', '9 of 9 elements differ')

  def test_numpy_in_the_forward_pass(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return tf.constant((inputs @ kernel()).numpy()) + bias()

    self.assert_first_failure(Case, STAGE, 'gradient kernel', 'numpy in the forward pass')

  def test_of_the_labels(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        labels = tf.nn.softmax(inputs * v1.get_variable('teacher', [3]))
        return v1.nn.softmax_cross_entropy_with_logits(labels=labels, logits=inputs @ kernel())

      def port(self, inputs, training):
        labels = tf.nn.softmax(inputs * v1.get_variable('teacher', [3]))
        return tf.nn.softmax_cross_entropy_with_logits(labels, inputs @ kernel())

    self.assert_first_failure(Case, STAGE, 'gradient teacher', 'tf1: None')


class OtherBackwardPassTest(LadderTestCase):
  def test_reversed_gradient_lost(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return reversed_gradient(inputs @ kernel()) + bias()

      def port(self, inputs, training):
        return inputs @ kernel() + bias()

    text = self.assert_first_failure(
      Case, STAGE, '1 of 2 tensors differ', 'gradient kernel', 'max relative difference 2'
    )
    self.assertNotIn('gradient bias', text)

  def test_gradient_clipped_in_the_forward_pass(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return clipped_gradient(self.model(inputs, training))

    self.assert_first_failure(Case, STAGE, 'gradient kernel', 'gradient bias')

  def test_straight_through_estimator_without_its_window(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = inputs @ kernel()
        window = tf.clip_by_value(net, -1.0, 1.0)
        return window + tf.stop_gradient(tf.sign(net) - window)

      def port(self, inputs, training):
        return sign_with_straight_gradient(inputs @ kernel())

    self.assert_first_failure(Case, STAGE, 'gradient kernel')

  def test_gradient_override_map(self):
    class Case(tiny_models.Affine):
      def build_tf1_graph(self, inputs, training):
        net = self.model(inputs, training)
        graph = v1.get_default_graph()
        with graph._override_gradient_function({'Identity': lambda op, upstream: 5.0 * upstream}):
          return tf.identity(net)

    self.assert_first_failure(Case, STAGE, 'gradient kernel', 'gradient bias')

  def test_two_layers_of_one_shape_swapped(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, frozen='second'):
        # The outputs do not depend on either, the gradients do.
        names = ('first', 'second')
        net = inputs * v1.get_variable('third', [3])
        for name in names:
          value = v1.get_variable(name, [3])
          net += inputs * (0.0 * value if name == frozen else value - tf.stop_gradient(value))
        return net

      def port(self, inputs, training):
        return self.model(inputs, training, frozen='first')

    self.assert_first_failure(Case, STAGE, 'gradient first', 'gradient second')

  def test_embedding_whose_repeated_rows_count_once(self):
    @tf.custom_gradient
    def lookup(table, ids):
      def gradient(upstream):
        return tf.tensor_scatter_nd_update(tf.zeros([5, 4]), ids[:, None], upstream), None

      return tf.gather(table, ids), gradient

    class Case(tiny_models.Embedded):
      def port(self, inputs, training):
        return lookup(v1.get_variable('embedding', [5, 4]), inputs)

    self.assert_first_failure(Case, STAGE, 'gradient embedding', '4 of 20 elements differ')


class RightPortTest(LadderTestCase):
  def test_indexed_slices_against_a_dense_gradient(self):
    class Case(tiny_models.Embedded):
      def port(self, inputs, training):
        return tf.one_hot(inputs, 5) @ v1.get_variable('embedding', [5, 4])

    self.assert_passes(Case)

  def test_indexed_slices_on_both_sides(self):
    class Case(tiny_models.Embedded):
      pass

    self.assert_passes(Case)

  def test_unconnected_on_both_sides(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        v1.get_variable('unused', [3])
        return inputs @ kernel()

    self.assertIn('1 variables have no gradient on either side', self.assert_passes(Case).to_text())

  def test_custom_gradient_on_both_sides(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return reversed_gradient(super().model(inputs, training))

    self.assert_passes(Case)

  def test_straight_through_estimator_in_two_spellings(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        net = inputs @ kernel()
        return net + tf.stop_gradient(tf.sign(net) - net)

      def port(self, inputs, training):
        return sign_with_straight_gradient(inputs @ kernel())

    self.assert_passes(Case)

  def test_own_loss(self):
    class Case(tiny_models.Affine):
      def loss(self, outputs):
        return tf.reduce_mean(tf.square(outputs))

    self.assert_passes(Case)

  def test_loss_of_a_part_of_the_outputs_hides_the_rest(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training, stop=tf.stop_gradient):
        return {'logits': inputs @ kernel(), 'target': stop(inputs * bias())}

      def port(self, inputs, training):
        return self.model(inputs, training, stop=tf.identity)

      def loss(self, outputs):
        return tf.reduce_sum(outputs['logits'] ** 2)

    self.assert_passes(Case)


class NotApplicableTest(LadderTestCase):
  def test_no_floating_output(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return tf.argmax(super().model(inputs, training), 1)

    verdict = self.assert_passes(Case, WHOLE_LADDER).stages[5]
    self.assertIs(verdict.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('no output is floating', verdict.reason)

  def test_no_trainable_variable(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('scale', [3], trainable=False)

    verdict = self.assert_passes(Case, WHOLE_LADDER).stages[5]
    self.assertIs(verdict.status, tf2verify.Status.NOT_APPLICABLE)
    self.assertIn('no variable is trainable', verdict.reason)

  def test_no_gradient_at_all_is_inconclusive(self):
    class Case(tiny_models.Affine):
      def model(self, inputs, training):
        return tf.stop_gradient(super().model(inputs, training)), inputs

      def make_inputs(self):
        return np.ones((4, 3), np.float32)

    verdict = tf2verify.verify(Case)
    self.assertIs(verdict.stages[5].status, tf2verify.Status.INCONCLUSIVE)
    self.assertIs(verdict.status, tf2verify.Status.INCONCLUSIVE)
    self.assertIn('nothing was compared', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
