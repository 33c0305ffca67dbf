"""What the train op of TF1 writes in some steps only."""

import abc

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'
_SAID = 'what it writes otherwise was not compared'


class Copies(tf2verify.EquivalenceCase, abc.ABC):
  """A copy of the kernel, made in each of so many steps."""

  every = 100
  every_in_port = 100

  def build_tf1_graph(self, inputs, training):
    return v1.layers.dense(inputs, 2, use_bias=False, name='a')

  def make_tf2_layer(self):
    return keras.Sequential([keras.layers.Dense(2, use_bias=False, name='a')])

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 6))

  def make_labels(self):
    return np.ones((5, 2), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    trained = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    (kernel,) = v1.trainable_variables()
    zeros = v1.zeros_initializer()
    copy = v1.get_variable('copy', kernel.shape, initializer=zeros, trainable=False)
    with tf.control_dependencies([trained]):
      is_due = tf.equal(step.read_value() % self.every, 0)
      return tf.cond(is_due, lambda: tf.group(copy.assign(kernel.read_value())), tf.no_op)

  def make_tf2_optimizer(self):
    return {'descent': keras.optimizers.SGD(0.1), 'copy': []}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    (kernel,) = layer.trainable_variables
    if not optimizer['copy']:
      optimizer['copy'].append(tf.Variable(tf.zeros_like(kernel.value)))
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    gradient = tape.gradient(loss, kernel.value)
    optimizer['descent'].apply_gradients([(gradient, kernel)])
    if int(optimizer['descent'].iterations) % self.every_in_port == 0:
      optimizer['copy'][0].assign(kernel.value)
    return loss


class UntakenBranchesTest(absltest.TestCase):
  def _spots(self, **changed):
    found = tf2verify.verify(type('Case', (Copies,), changed), [_STAGE]).stages[-1]
    self.assertIs(found.status, Status.PASSED, found.to_text())
    return [one for one in found.blind_spots if _SAID in one]

  def test_branch_that_no_step_takes(self):
    for every_in_port in (100, 50):
      (said,) = self._spots(every_in_port=every_in_port)
      self.assertIn('is false in all 3 steps', said)
      self.assertIn('untaken_branches_test.py:', said)

  def test_branch_that_a_constant_chooses(self):
    """As the placeholder of the mode is written into a train op."""

    def train_op(self, loss):
      step = v1.train.get_or_create_global_step()
      trained = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
      (kernel,) = v1.trainable_variables()
      copy = v1.get_variable('copy', kernel.shape, trainable=False)
      with tf.control_dependencies([trained]):
        mode = tf.logical_not(tf.constant(True))
        return tf.cond(mode, lambda: tf.group(copy.assign(kernel.read_value())), tf.no_op)

    self.assertEqual(self._spots(make_tf1_train_op=train_op), [])

  def test_both_branches_are_taken(self):
    self.assertEqual(self._spots(every=2, every_in_port=2), [])


if __name__ == '__main__':
  absltest.main()
