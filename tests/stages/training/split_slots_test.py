"""A slot of one variable of the port that is several of TF1, in steps that are taken as graphs."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


class Fused(tf.Module):
  def __init__(self):
    super().__init__(name='fused')
    self.kernel = tf.Variable(tf.random.normal([5, 3]), name='kernel')

  def __call__(self, inputs, training=False):
    return tf.concat([inputs['one'], inputs['other']], 1) @ self.kernel


class Split(tf2verify.EquivalenceCase, abc.ABC):
  """Two kernels in TF1, one in the port, with a momentum by hand."""

  training_modes = (True,)
  variable_map = tf2verify.VariableMap(
    (tf2verify.MapEntry(('one', 'other'), ('kernel',), 'a o, b o -> (a+b) o', {'a': 2, 'b': 3}),)
  )
  late_rate = 0.1

  def build_tf1_graph(self, inputs, training):
    normal = v1.random_normal_initializer()
    one, other = (
      v1.get_variable(n, [k, 3], initializer=normal) for n, k in (('one', 2), ('other', 3))
    )
    return inputs['one'] @ one + inputs['other'] @ other

  def make_tf2_layer(self):
    return Fused()

  def make_inputs(self):
    return {
      'one': tf2verify.normal_inputs((4, 2)),
      'other': tf2verify.normal_inputs((4, 3), seed=1),
    }

  def make_labels(self):
    return np.ones((4, 3), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    return v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)

  def make_tf2_optimizer(self):
    return {
      'momentum': tf.Variable(tf.zeros([5, 3]), trainable=False, name='kernel_momentum'),
      'step': tf.Variable(0, dtype=tf.int64, trainable=False),
    }

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    kernel, momentum = layer.kernel, optimizer['momentum']
    momentum.assign(0.9 * momentum + tape.gradient(loss, kernel))
    kernel.assign_sub(tf.where(optimizer['step'] < 1, 0.1, self.late_rate) * momentum)
    optimizer['step'].assign_add(1)
    return loss


class SplitSlotsTest(absltest.TestCase):
  def test_right_port_passes(self):
    verdict = tf2verify.verify(type('Case', (Split,), {}), ['training_steps'])
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_a_later_step_is_edited(self):
    """Each part of the slot has its own values in the first step, which agrees."""
    verdict = tf2verify.verify(type('Case', (Split,), {'late_rate': 0.15}), ['training_steps'])
    failed, text = verdict.first_failure, verdict.to_text()
    self.assertEqual(failed.diagnosis.run, 'step 2', text)
    self.assertEqual(failed.diagnosis.without_experiments, '', text)


if __name__ == '__main__':
  absltest.main()
