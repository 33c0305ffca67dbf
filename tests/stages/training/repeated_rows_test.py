"""Rows that a batch of a case looks up once, and another batch several times."""

import abc

import keras
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.training.further_steps.other_rows_test import Embedded

v1 = tf.compat.v1
_STAGE = 'training_steps'


class Clipped(Embedded, abc.ABC):
  """A norm of rows as they are, in TF1; in the port maybe of their sums."""

  ids = ((1, 2, 5), (3, 6, 4))
  limit = 0.01
  sums = False

  def make_tf1_train_op(self, loss):
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    gradients, _ = tf.clip_by_global_norm(gradients, self.limit)
    return optimizer.apply_gradients(zip(gradients, variables, strict=True))

  def make_tf2_optimizer(self):
    return keras.optimizers.SGD(0.1)

  def clipped(self, layer, inputs, labels):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), labels)
    (rows,) = tape.gradient(loss, [layer.table.embeddings.value])
    gradient = tf.convert_to_tensor(rows)
    norm = tf.norm(gradient if self.sums else rows.values)
    return loss, gradient * tf.minimum(1.0, self.limit / norm)


class ByHand(Clipped, abc.ABC):
  """An update that nobody sees the gradients of."""

  def make_tf2_optimizer(self):
    return []

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradient = self.clipped(layer, inputs, labels)
    layer.table.embeddings.value.assign_sub(0.1 * gradient)
    return loss


class ByKeras(Clipped, abc.ABC):
  def tf2_train_step(self, layer, inputs, labels, optimizer):
    loss, gradient = self.clipped(layer, inputs, labels)
    optimizer.apply_gradients([(gradient, layer.table.embeddings)])
    return loss


class RepeatedRowsTest(parameterized.TestCase):
  def _found(self, parent, **settings):
    verdict = tf2verify.verify(type('Case', (parent,), settings), [_STAGE])
    return next(stage for stage in verdict.stages if stage.stage == _STAGE)

  def test_a_norm_of_sums_in_an_update_by_hand(self):
    found = self._found(ByHand, sums=True)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    (said,) = (one for one in found.blind_spots if 'several times over' in one)
    self.assertIn('what is added to table differs', said)

  @parameterized.parameters(0.01, 0.5, 100.0)
  def test_a_norm_of_sums_that_an_optimizer_shows(self, limit):
    found = self._found(ByKeras, sums=True, limit=limit)
    self.assertIs(found.status, tf2verify.Status.FAILED, found.to_text())
    self.assertIn('IndexedSlices with repeated rows', found.to_text())
    # The difference says it.
    self.assertFalse([one for one in found.blind_spots if 'several times over' in one])

  @parameterized.product(parent=(ByHand, ByKeras), limit=(0.01, 0.5, 100.0))
  def test_right_port(self, parent, limit):
    found = self._found(parent, limit=limit)
    self.assertIs(found.status, tf2verify.Status.PASSED, found.to_text())
    self.assertFalse([one for one in found.blind_spots if 'several times over' in one])


if __name__ == '__main__':
  absltest.main()
