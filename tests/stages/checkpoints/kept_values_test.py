import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tests.stages.checkpoints.checkpoint_test import STAGE
from tests.stages.checkpoints.loading_test import named
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


class WhyTest(LadderTestCase):
  """What the case's own loader did."""

  def test_nothing(self):
    class Case(tiny_models.Affine):
      def load_tf1_checkpoint(self, layer, path):
        pass

    self.assert_first_failure(
      Case,
      STAGE,
      '2 of 4 tensors differ',
      'restored value kernel: presence differs\n    tf1: the value of the key kernel\n'
      '    tf2: kept its value: not restored',
      'likely cause: 0 of 2 variables restored: load_tf1_checkpoint leaves keys unread: kernel, ',
    )

  def test_swapped(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        return inputs * v1.get_variable('scale', [3]) + v1.get_variable('shift', [3])

      def load_tf1_checkpoint(self, layer, path):
        variables, checkpoint = named(layer), tf.train.load_checkpoint(path)
        variables['scale'].assign(checkpoint.get_tensor('shift'))
        variables['shift'].assign(checkpoint.get_tensor('scale'))

    self.assert_first_failure(
      Case, STAGE, 'the value equals the key `shift` instead of `scale`: two variables are swapped'
    )

  def test_gates_in_another_order(self):
    class Case(tiny_models.OneModel):
      def model(self, inputs, training):
        gates = inputs @ v1.get_variable('kernel', [3, 8])
        i, j, f, o = tf.split(gates, 4, 1)
        return tf.sigmoid(o) * tf.tanh(tf.sigmoid(i) * tf.tanh(j)) + f

      def load_tf1_checkpoint(self, layer, path):
        kernel = tf.train.load_checkpoint(path).get_tensor('kernel')
        i, j, f, o = np.split(kernel, 4, 1)
        layer.variables[0].assign(np.concatenate([i, f, j, o], 1))

    self.assert_first_failure(Case, STAGE, '4 blocks along axis 1 in order (0, 2, 1, 3)')

  def test_some_rows(self):
    class Case(tiny_models.Embedded):
      def load_tf1_checkpoint(self, layer, path):
        rows = tf.train.load_checkpoint(path).get_tensor('embedding')
        layer.variables[0][:3].assign(rows[:3])

    self.assert_first_failure(Case, STAGE, '8 of 20 elements were not restored, the others were')

  def test_another_object(self):
    class Case(tiny_models.Affine):
      def load_tf1_checkpoint(self, layer, path):
        other = self.make_tf2_layer()
        other(self.make_inputs())
        tf.train.Checkpoint(model=other).restore(path)

    self.assert_first_failure(
      Case, STAGE, 'kernel is not reachable from the objects given to tf.train.Checkpoint'
    )


if __name__ == '__main__':
  absltest.main()
