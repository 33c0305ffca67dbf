"""Tests of what stages keep of both sides for reports, equal or not."""

import dataclasses

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel
from tf2verify.numerics.noise import Kind, NoiseVerdict
from tf2verify.records.difference import Aspect, Deviation, Difference, Judgement
from tf2verify.records.side_by_side import Curve, RandomOps
from tf2verify.stages.comparison.noise.rounding import Sorted

v1 = tf.compat.v1


def stage_of(case, name):
  """Returns the verdict of one stage of a case."""
  return tf2verify.verify(case, stages=[name]).stages[-1]


def names(pair):
  """Returns both names of a pair, and its remark."""
  return pair.tf1 and pair.tf1.name, pair.tf2 and pair.tf2.name, pair.remark


class InventoryTest(absltest.TestCase):
  def test_pairs_renames_and_leftovers(self):
    class Case(tiny_models.Affine):
      variable_names = {'kernel': 'weights'}

      def model(self, inputs, training):
        v1.train.get_or_create_global_step()
        return tf.matmul(inputs, kernel()) + bias()

      def port(self, inputs, training):
        extra = v1.get_variable('extra', [], trainable=False)
        return tf.matmul(inputs, v1.get_variable('weights', [3, 3])) + bias() + extra

    found = stage_of(Case, 'variable_inventory')
    self.assertCountEqual(
      [names(pair) for pair in found.inventory],
      [
        ('global_step', None, 'the global step'),
        ('kernel', 'weights', ''),
        ('bias', 'bias', ''),
        (None, 'extra', ''),
      ],
    )
    [extra] = [pair.tf2 for pair in found.inventory if pair.tf1 is None]
    self.assertEqual((extra.shape, extra.dtype, extra.trainable), ((), 'float32', False))

  def test_untracked_and_duplicates(self):
    class Untracked(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        held = tf.Variable(tf.ones([3, 3]), name='kernel')
        self.dense = [tf.keras.layers.Dense(3, name='same') for _ in range(2)]
        self.product = lambda inputs: tf.matmul(inputs, held)

      def call(self, inputs):
        return self.dense[1](self.dense[0](self.product(inputs)))

    class Case(tiny_models.Affine):
      def make_tf2_layer(self):
        return Untracked()

    remarks = [names(pair)[2] for pair in stage_of(Case, 'variable_inventory').inventory]
    self.assertIn('untracked', remarks)


class RandomOpsTest(absltest.TestCase):
  def test_another_order(self):
    class Case(tiny_models.OneModel):
      training_modes = (False,)

      def model(self, inputs, training, order=((3,), (4, 3))):
        noise = [v1.random_normal(shape) for shape in order]
        return inputs @ v1.get_variable('kernel', [3, 3]) + noise[0] + noise[1]

      def port(self, inputs, training):
        return self.model(inputs, training, order=((4, 3), (3,)))

    [ops] = stage_of(Case, 'seeded_num_random_ops').random_ops
    first, second = (f'RandomStandardNormal ({n}), in the computation' for n in ('3', '4, 3'))
    start = 'RandomUniform (3, 3), initial value of kernel'
    self.assertEqual((ops.tf1, ops.tf2), ((first, second, start), (second, first, start)))
    self.assertEqual(ops.run, 'inference, num_random_ops')
    for line in ops.tf1_lines + ops.tf2_lines:
      self.assertIn('side_by_side_test.py', line)
    self.assertIsInstance(ops, RandomOps)

  def test_the_same_order_keeps_nothing(self):
    self.assertEqual(stage_of(tiny_models.Affine, 'seeded_num_random_ops').random_ops, ())


class CurvesTest(absltest.TestCase):
  def test_loss_and_learning_rate(self):
    class Case(tiny_models.Affine):
      training_steps_to_take = 2

      def make_labels(self):
        return tf2verify.normal_inputs((4, 3), seed=3)

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(tf.square(outputs - labels))

      tf2_loss = tf1_loss

      def make_tf1_optimizer(self):
        return v1.train.GradientDescentOptimizer(0.5)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(0.25)

    found = stage_of(Case, 'training_steps')
    loss, rate = found.curves
    self.assertEqual((loss.quantity, loss.steps), ('loss', (1, 2)))
    self.assertAlmostEqual(loss.tf1[0], loss.tf2[0], places=5)
    self.assertNotAlmostEqual(loss.tf1[1], loss.tf2[1], places=3)
    self.assertEqual(rate, Curve('learning rate', (1, 2), (0.5, 0.5), (0.25, 0.25)))
    first, second = found.extents  # the second only continues what parts at the first
    self.assertEqual((first.run, second.run), ('step 1', 'step 2'))
    self.assertEqual(first.differing, len(found.differences))
    greatest = max(known.array.greatest_absolute for known in found.differences)
    self.assertAlmostEqual(first.absolute, greatest)
    self.assertGreater(second.absolute, 0)
    self.assertGreater(second.differing, first.differing - 1)

    class RightCase(Case):
      def make_tf2_optimizer(self):
        return tf.keras.optimizers.SGD(0.5)

    first, second = stage_of(RightCase, 'training_steps').extents
    self.assertEqual((first.differing, second.differing), (0, 0))
    self.assertLess(max(first.share, second.share), 1)


class NoiseTest(absltest.TestCase):
  def test_deviations_are_told_their_noise(self):
    known = [
      Deviation('output', name, 'run', 'float32', 0.0, 0.0, ((1.0, 0.1),), 1.0, Judgement.FAILED)
      for name in 'abcd'
    ]
    judged = [
      (Difference('output', name, Aspect.VALUES, run='run'), NoiseVerdict(kind, 0.1, noise, 1.0))
      for name, kind, noise in (
        ('a', Kind.ROUNDING, 0.2),
        ('b', Kind.DEGENERATE, 0.3),
        ('c', Kind.DIFFERENT, float('nan')),
      )
    ]
    expected = [
      dataclasses.replace(known[0], judgement=Judgement.ROUNDING, noise=0.2),
      dataclasses.replace(known[1], judgement=Judgement.DEGENERATE, noise=0.3),
      known[2],
      known[3],
    ]
    self.assertEqual(Sorted(tuple(judged)).told(known), expected)

  def test_a_comparison_keeps_ulps(self):
    class Case(tiny_models.Affine):
      def port(self, inputs, training):
        return self.model(inputs, training) * 1.000001

    found = stage_of(Case, 'zero_randomness')
    outputs = [known for known in found.deviations if known.quantity == 'output']
    self.assertNotEmpty(outputs)
    for known in outputs:
      self.assertLessEqual(sum(known.ulps), 15 if 'batch 5' in known.run else 12)
      self.assertGreater(sum(known.ulps[1:]), 0)


if __name__ == '__main__':
  absltest.main()
