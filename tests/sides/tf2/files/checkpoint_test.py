import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tests import small_case
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint

v1 = tf.compat.v1


class Net(tf.Module):
  def __init__(self):
    super().__init__()
    self.w = tf.Variable(tf.ones([2]), name='w')
    self.inner = tf.Module()
    self.inner.b = tf.Variable(tf.zeros([2]), name='b')
    self.same = self.inner.b
    hidden = tf.Variable(1.0)
    self.hidden = lambda: hidden


class PathsTest(absltest.TestCase):
  def test_shortest_path(self):
    net = Net()
    paths = tf2_checkpoint.object_paths(net)
    self.assertEqual(paths, {id(net.w): 'w', id(net.same): 'same'})

  def test_stored(self):
    with tempfile.TemporaryDirectory() as folder:
      path = tf.train.Checkpoint(net=Net()).write(os.path.join(folder, 'net'))
      self.assertIn('net/w', tf2_checkpoint.stored_paths(path))
      self.assertFalse([p for p in tf2_checkpoint.stored_paths(path) if 'ATTRIBUTES' in p])


class RecordingTest(absltest.TestCase):
  def test_restores_are_recorded(self):
    net = Net()
    with tempfile.TemporaryDirectory() as folder:
      path = tf.train.Checkpoint(net=net).save(os.path.join(folder, 'net'))
      with tf2_checkpoint.recorded_restores() as calls:
        tf.train.Checkpoint(net=net).restore(path).expect_partial()
        tf.train.Checkpoint(empty=tf.Module()).read(path).expect_partial()
    first, second = calls
    self.assertEqual((first.path, first.paths[id(net.w)]), (path, 'net/w'))
    self.assertEqual(second.paths, {})

  def test_the_method_is_put_back(self):
    before = tf.train.Checkpoint.read
    with self.assertRaises(ValueError), tf2_checkpoint.recorded_restores():
      raise ValueError
    self.assertIs(tf.train.Checkpoint.read, before)


class OptimizerTest(absltest.TestCase):
  def test_slots_are_made(self):
    layer = tf.keras.layers.Dense(2)
    layer.build((None, 3))
    for optimizer, step, beta, count in (
      (tf.keras.optimizers.Adam(), 0, 0.9, 5),
      (tf.keras.optimizers.legacy.Adam(), 0, 0.9, 5),
      (tf.keras.optimizers.SGD(momentum=0.9), 0, None, 3),
      (v1.train.MomentumOptimizer(0.1, 0.9), None, None, 2),
    ):
      with self.subTest(type(optimizer).__name__):

        class Case(small_case.SmallCase):
          def make_tf2_optimizer(self, made=optimizer):
            return made

        made = tf2_checkpoint.made_optimizer(Case(), layer)
        state = tf2_checkpoint.optimizer_state(made)
        self.assertEqual((state.iterations, state.beta_1), (step, beta))
        self.assertLen(state.values, count)
        self.assertTrue(any(np.shape(value) == (3, 2) for value in state.values))


if __name__ == '__main__':
  absltest.main()
