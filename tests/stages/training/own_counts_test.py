"""Schedules of a count that the port's step does not advance."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.training.further_steps.other_gradients_test import Trained
from tf2verify import Status

v1 = tf.compat.v1
_STAGE = 'training_steps'


class _Trainer:
  def __init__(self, counts, reads):
    self.step = tf.Variable(0, dtype=tf.int64, trainable=False)
    self.counts = counts
    schedule = v1.train.polynomial_decay(0.1, self.step, 10)
    self.optimizer = v1.train.MomentumOptimizer(schedule if reads else 0.1, 0.9)

  def train(self, gradients, variables):
    pairs = list(zip(gradients, variables, strict=True))
    self.optimizer.apply_gradients(pairs, self.step if self.counts else None)


class _Scheduled(Trained, abc.ABC):
  counts = True
  reads = True

  def make_tf1_train_op(self, loss):
    step = v1.train.get_or_create_global_step()
    rate = v1.train.polynomial_decay(0.1, step, 10)
    return v1.train.MomentumOptimizer(rate, 0.9).minimize(loss, step)

  make_tf1_optimizer = tf2verify.EquivalenceCase.make_tf1_optimizer

  def make_tf2_optimizer(self):
    return _Trainer(self.counts, self.reads)

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs), labels)
    variables = [v.value for v in layer.trainable_variables]
    optimizer.train(tape.gradient(loss, variables), variables)
    return loss


class OwnCountsTest(parameterized.TestCase):
  @parameterized.parameters((True, True), (False, True), (False, False))
  def test_a_count_that_nothing_advances(self, counts, reads):
    case = type('Case', (_Scheduled,), {'counts': counts, 'reads': reads})
    found = tf2verify.verify(case, [_STAGE]).stages[-1]
    self.assertIs(found.status, Status.PASSED if counts else Status.FAILED, found.to_text())
    told = 'the schedule reads step, which is 0 after 3 steps' in found.to_text()
    self.assertEqual(told, reads and not counts, found.to_text())


if __name__ == '__main__':
  absltest.main()
