"""Loops of TF1's loss that the port writes out in Python."""

import keras
import tensorflow as tf
from absl.testing import absltest

from tests.stages.losses.single_edits_test import loss_of
from tf2verify.records.experiment import Outcome
from tf2verify.records.status import Status

_LENGTHS = [3, 1, 2, 3]


def of_tf1(outputs):
  def step(total, n):
    made = tf.tanh(0.5 * total + outputs[:, n])
    return tf.where(n < tf.constant(_LENGTHS), made, total)

  total = tf.foldl(step, tf.range(1, 3), initializer=outputs[:, 0])
  return tf.reduce_mean(tf.square(total) + tf.exp(0.3 * total))


def of_port(outputs, masks=True):
  total = outputs[:, 0]
  for n in range(1, 3):
    made = keras.ops.tanh(outputs[:, n] + total / 2.0)
    alive = keras.ops.convert_to_tensor([n < length for length in _LENGTHS])
    total = keras.ops.where(alive, made, total) if masks else made
  return keras.ops.mean(keras.ops.exp(0.3 * total) + total**2)


class LoopsInRoundsTest(absltest.TestCase):
  def test_right_port(self):
    verdict = loss_of(of_tf1, of_port)
    self.assertIs(verdict.status, Status.PASSED, verdict.to_text())

  def test_a_mask_that_the_port_lacks(self):
    verdict = loss_of(of_tf1, lambda outputs: of_port(outputs, masks=False))
    text = verdict.to_text()
    self.assertIs(verdict.status, Status.FAILED, text)
    (cause,) = verdict.diagnosis.causes
    self.assertIs(cause.experiment.outcome, Outcome.PROVEN, text)
    self.assertRegex(
      cause.text,
      r'for all elements; tf1 takes that only where foldl/while/round_\d/Less .* is true',
    )
    source = verdict.diagnosis.sources[0].tf1_source
    self.assertEqual((source.function, 'tf.where' in source.code), ('step', True), text)


if __name__ == '__main__':
  absltest.main()
