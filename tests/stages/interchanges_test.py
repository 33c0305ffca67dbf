"""Tests of tf2verify.stages.interchanges: variables that outputs do not tell apart."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages.first_failure import LadderTestCase

v1 = tf.compat.v1
_STAGES = ('variable_inventory', 'zero_randomness', 'seeded_constant', 'training_steps')


def tf1_variable(name, shape, start):
  return v1.get_variable(name, shape, initializer=v1.constant_initializer(start))


class Port(tf.Module):
  """Two biases in one sum, in the place of which TF1's names say nothing here."""

  def __init__(self, names, starts):
    super().__init__()
    self.kernel = tf.Variable(tf.fill([3, 1], 0.5), name='kernel')
    self.one = tf.Variable([starts[0]], name=names[0])
    self.other = tf.Variable(starts[1], name=names[1])

  def __call__(self, x):
    return x @ self.kernel + (self.other + self.one)


class TwoBiases(tf2verify.EquivalenceCase, abc.ABC):
  """The bias called `wide` is trained with another rate; each port says which of its own is."""

  training_steps_to_take = 2
  starts = (0.0, 0.0)  # of `wide` and `deep` in TF1
  names = ('p', 'q')
  port_starts = (0.0, 0.0)
  slow = 'p'

  def build_tf1_graph(self, x, training):
    wide, deep = (
      tf1_variable(name, [1], start)
      for name, start in zip(('wide_b', 'deep_b'), self.starts, strict=True)
    )
    return x @ tf1_variable('k', [3, 1], 0.5) + wide + deep

  def make_tf2_layer(self):
    return Port(self.names, self.port_starts)

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3))

  def make_labels(self):
    return np.ones((5, 1), np.float32)

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs - labels))

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    wide = v1.trainable_variables('wide')
    rest = [one for one in v1.trainable_variables() if one is not wide[0]]
    optimizers = v1.train.GradientDescentOptimizer(0.1), v1.train.GradientDescentOptimizer(0.2)
    of_wide = optimizers[0].compute_gradients(loss, wide)
    of_rest = optimizers[1].compute_gradients(loss, rest)
    with tf.control_dependencies([tf.convert_to_tensor(g) for g, _ in of_wide + of_rest]):
      return tf.group(
        optimizers[0].apply_gradients(of_wide, step), optimizers[1].apply_gradients(of_rest)
      )

  def make_tf2_optimizer(self):
    return {'step': tf.Variable(0, dtype=tf.int64, trainable=False)}

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    weights = layer.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
      weight.assign_sub((0.1 if self.slow in weight.name else 0.2) * gradient)
    optimizer['step'].assign_add(1)
    return loss


class InterchangesTest(LadderTestCase):
  def failed(self, **settings):
    """Returns the name of the stage that fails first; '' if all pass."""
    verdict = tf2verify.verify(type('Case', (TwoBiases,), settings), _STAGES)
    failed = verdict.first_failure
    return '' if failed is None else failed.stage

  def test_rates_tell_which_is_which(self):
    self.assertEqual([self.failed(slow=slow) for slow in 'pq'], ['', ''])

  def test_a_wrong_rate_of_either_is_no_question_of_pairs(self):
    self.assertEqual(self.failed(slow='of none'), 'training_steps')

  def test_starts_tell_which_is_which(self):
    for starts, slow in (((0.1, 0.2), 'p'), ((0.2, 0.1), 'q')):
      self.assertEqual(self.failed(starts=(0.1, 0.2), port_starts=starts, slow=slow), '')

  def test_what_starts_tell_is_not_told_otherwise_by_rates(self):
    for starts, slow in (((0.1, 0.2), 'q'), ((0.2, 0.1), 'p')):
      failed = self.failed(starts=(0.1, 0.2), port_starts=starts, slow=slow)
      self.assertEqual(failed, 'training_steps')

  def test_a_start_that_neither_has(self):
    failed = self.failed(starts=(0.1, 0.2), port_starts=(0.3, 0.1))
    self.assertEqual(failed, 'seeded_constant')

  def test_names_that_tell_are_kept(self):
    names = 'bias_wide', 'bias_deep'
    self.assertEqual(self.failed(names=names, slow='wide'), '')
    self.assertEqual(self.failed(names=names, slow='deep'), 'training_steps')

  def test_notes_say_it(self):
    notes = []
    for slow in 'pq':
      verdict = tf2verify.verify(type('Case', (TwoBiases,), {'slow': slow}), _STAGES)
      found = {stage.stage: ' '.join(stage.notes) for stage in verdict.stages}
      self.assertIn('wide_b and deep_b are interchangeable', found['variable_inventory'])
      notes.append('is paired, since this stage agrees only so' in found['training_steps'])
    self.assertCountEqual(notes, [False, True])


if __name__ == '__main__':
  absltest.main()
