import abc
import os
import tempfile

import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tests.stages.checkpoints.checkpoint_test import STAGE, checkpoint_of
from tests.stages.checkpoints.loading_test import named
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1


class Trained(tiny_models.Affine, abc.ABC):
  """A checkpoint after three steps."""

  def reference_optimizer(self):
    return v1.train.MomentumOptimizer(0.1, 0.9)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.SGD(0.1, 0.9)

  def tf1_checkpoint(self):
    self.folder = tempfile.TemporaryDirectory()
    with tf.Graph().as_default(), v1.Session() as session:
      loss = tf.reduce_sum(self.model(tf.constant(self.make_inputs()), training=True) ** 2)
      counter = v1.train.get_or_create_global_step()
      step = self.reference_optimizer().minimize(loss, counter)
      session.run(v1.global_variables_initializer())
      for _ in range(3):
        session.run(step)
      return v1.train.Saver().save(session, os.path.join(self.folder.name, 'model'))

  def load_tf1_checkpoint(self, layer, path, optimizer=None):
    checkpoint = tf.train.load_checkpoint(path)
    for name, variable in named(layer).items():
      variable.assign(checkpoint.get_tensor(name))
    self.load_optimizer(layer, checkpoint, optimizer)

  def load_optimizer(self, layer, checkpoint, optimizer):
    pass


class RestoringTest(LadderTestCase):
  def test_momentum_times_the_learning_rate(self):
    class Case(Trained):
      def load_optimizer(self, layer, checkpoint, optimizer):
        optimizer.iterations.assign(checkpoint.get_tensor('global_step'))
        for variable, momentum in zip(layer.trainable_variables, optimizer.momentums, strict=True):
          momentum.assign(-0.1 * checkpoint.get_tensor(f'{variable.name[:-2]}/Momentum'))

    verdict = self.assert_passes(Case, STAGE)
    self.assertEqual(verdict.stages[-1].compared.tensors, 10)

  def test_in_eager_mode(self):
    class Case(Trained):
      def make_tf2_optimizer(self):
        return v1.train.MomentumOptimizer(0.1, 0.9)

      def load_optimizer(self, layer, checkpoint, optimizer):
        for variable in layer.trainable_variables:
          slot = optimizer.get_slot(variable, 'momentum')
          slot.assign(checkpoint.get_tensor(f'{variable.name[:-2]}/Momentum'))

    self.assert_passes(Case, STAGE)

  def test_dropped(self):
    class Case(Trained):
      pass

    self.assert_first_failure(
      Case,
      STAGE,
      '3 of 10 tensors differ (7 compared, 3 unmatched)',
      'tf1: global_step 3',
      't: TF1 3, TF2 0',
      'optimizer state kernel/Momentum: presence differs',
    )

  def test_slots_without_the_step(self):
    class Case(Trained):
      def reference_optimizer(self):
        return v1.train.AdamOptimizer(0.1)

      def make_tf2_optimizer(self):
        return tf.keras.optimizers.legacy.Adam(0.1)

      def load_optimizer(self, layer, checkpoint, optimizer):
        for variable in layer.trainable_variables:
          for slot, key in (('m', 'Adam'), ('v', 'Adam_1')):
            value = checkpoint.get_tensor(f'{variable.name[:-2]}/{key}')
            optimizer.get_slot(variable, slot).assign(value)

    self.assert_first_failure(
      Case, STAGE, '1 of 12 tensors differ', 'beta1_power 0.6561 = 0.9^4: 3 steps'
    )

  def test_a_port_that_does_not_continue_is_told(self):
    class Case(Trained):
      def load_tf1_checkpoint(self, layer, path):
        super().load_tf1_checkpoint(layer, path)

    found = checkpoint_of(Case)
    self.assertEqual(found.differences, ())
    self.assertIn('2 optimizer slots after 3 steps are in the checkpoint', found.to_text())


if __name__ == '__main__':
  absltest.main()
