"""Counts of frames in TF1, and of steps in the port."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.training.further_steps.other_gradients_test import Trained
from tf2verify import Status
from tf2verify.stages.training.steps.paces import Paces

v1 = tf.compat.v1
_STAGE = 'training_steps'
_FRAMES = 6


class _Falling(keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self, frames, end):
    self.frames, self.end = frames, end

  def __call__(self, step):
    count = tf.cast(step, tf.float32) * self.frames
    return 0.1 * tf.maximum(1.0 - count / self.end, 0.01)


class _Counted(Trained, abc.ABC):
  make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer
  frames, end = _FRAMES, 1000.0

  def make_tf1_train_op(self, loss):
    frames = v1.train.get_or_create_global_step()
    rate = 0.1 * tf.maximum(1.0 - tf.cast(frames, tf.float32) / 1000.0, 0.01)
    optimizer = v1.train.GradientDescentOptimizer(rate)
    with tf.control_dependencies([optimizer.minimize(loss)]):
      return frames.assign_add(_FRAMES)

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(_Falling(self.frames, self.end))


class CountedUnitsTest(absltest.TestCase):
  def found(self, **hooks):
    return tf2verify.verify(type('Case', (_Counted,), hooks), [_STAGE]).stages[-1]

  def test_schedule_that_takes_the_factor_into_account(self):
    found = self.found()
    self.assertIs(found.status, Status.PASSED, found.to_text())
    (said,) = [one for one in found.blind_spots if 'the count has another unit' in one]
    self.assertIn('TF1 counts 6 a step, and the port 1', said)

  def test_schedule_that_counts_steps(self):
    found = self.found(frames=1)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    self.assertIn('multiply its iterations by 6', found.to_text())
    self.assertNotIn('another unit', found.to_text())

  def test_schedule_that_ends_later(self):
    found = self.found(end=1001.0)
    self.assertIs(found.status, Status.FAILED, found.to_text())

  def test_rate_that_does_not_change(self):
    def make_tf1_train_op(case, loss):
      frames = v1.train.get_or_create_global_step()
      with tf.control_dependencies([v1.train.GradientDescentOptimizer(0.1).minimize(loss)]):
        return frames.assign_add(_FRAMES)

    def make_tf2_optimizer(case):
      return keras.optimizers.SGD(0.1)

    found = self.found(make_tf1_train_op=make_tf1_train_op, make_tf2_optimizer=make_tf2_optimizer)
    self.assertIs(found.status, Status.PASSED, found.to_text())
    (said,) = [
      one for one in found.blind_spots if 'nothing that was compared reads the count' in one
    ]
    self.assertIn('TF1 counts 6 a step, and the port 1', said)

  def test_weight_of_a_term_that_reads_the_count(self):
    """As above, but the loss grows with the count."""

    def make_tf1_train_op(case, loss):
      frames = v1.train.get_or_create_global_step()
      grown = loss * (1.0 + tf.cast(frames, tf.float32))
      with tf.control_dependencies([v1.train.GradientDescentOptimizer(0.1).minimize(grown)]):
        return frames.assign_add(_FRAMES)

    def step(case, layer, inputs, labels, optimizer):
      with tf.GradientTape() as tape:
        loss = case.tf2_loss(layer(inputs), labels)
        grown = loss * (1.0 + tf.cast(optimizer.iterations, tf.float32))
      variables = layer.trainable_variables
      optimizer.apply_gradients(zip(tape.gradient(grown, variables), variables, strict=True))
      return loss

    found = self.found(
      make_tf1_train_op=make_tf1_train_op,
      make_tf2_optimizer=lambda _: keras.optimizers.SGD(0.1),
      tf2_train_step=step,
    )
    self.assertIs(found.status, Status.FAILED, found.to_text())


class PacesTest(absltest.TestCase):
  def paces(self, *counts):
    paces = Paces()
    for one, other in counts:
      paces.see(one, other)
    return paces

  def test_frames(self):
    paces = self.paces((6, 1), (12, 2))
    self.assertEqual(paces.both, (6, 1))
    self.assertEqual((paces.of_tf1(20), paces.of_port(20)), (18, 3))

  def test_alike(self):
    for counts in [(1, 1)], [(5, 1), (6, 2)], [(1, None)], [(6, 1), (7, 2), (13, 3)], []:
      paces = self.paces(*counts)
      self.assertIsNone(paces.both, counts)
      self.assertEqual((paces.of_tf1(20), paces.of_port(20)), (20, 20))


if __name__ == '__main__':
  absltest.main()
