"""A mistake in parts that TF1 splits in every step, and the port slices once of all steps."""

import abc

import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_STEPS = 3


class PartsOfStepsTest(absltest.TestCase):
  def test_another_operation_on_one_part(self):
    class Case(tiny_models.OneModel, abc.ABC):
      def model(self, inputs, training):
        kernel = v1.get_variable('kernel', [3, 6])
        mean, means, scales = inputs, [], []
        for _ in range(_STEPS):
          mean, scale = tf.split(tf.matmul(mean, kernel), 2, axis=1)
          means.append(tf.nn.softmax(mean))
          scales.append(tf.nn.softplus(scale) + 1e-3)
        return {'mean': tf.stack(means, 1), 'scale': tf.stack(scales, 1)}

      def port(self, inputs, training):
        kernel = v1.get_variable('kernel', [3, 6])
        mean, steps = inputs, []
        for _ in range(_STEPS):
          steps.append(tf.matmul(mean, kernel))
          mean = steps[-1][:, :3]
        parts = tf.stack(steps, 1)
        return {'mean': tf.nn.softmax(parts[..., :3]), 'scale': tf.exp(parts[..., 3:])}

    _, text = causes_of(self, Case)
    self.assertNotIn('abandoned', text)
    self.assertIn('cause (proven', text)


if __name__ == '__main__':
  absltest.main()
