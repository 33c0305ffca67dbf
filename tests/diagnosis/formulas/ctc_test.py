import numpy as np
import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tf2verify.diagnosis.formulas import ctc
from tf2verify.numerics.output_relations import log_softmax
from tf2verify.records.loss_values import LossExample

LOGITS = tf2verify.normal_inputs((2, 6, 5))
LABELS = np.array([[1, 1, 3], [2, 3, 0]], np.int32)
LENGTHS = np.array([3, 2], np.int32)
STEPS = np.array([6, 5], np.int32)


def sequences(labels, lengths):
  return [[int(s) for s in row[:n]] for row, n in zip(labels, lengths, strict=True)]


class LossesTest(absltest.TestCase):
  def test_as_tensorflow_computes_it(self):
    for blank in (0, 4):
      with self.subTest(blank):
        expected = tf.nn.ctc_loss(
          LABELS, LOGITS, LENGTHS, [6, 6], logits_time_major=False, blank_index=blank
        )
        found = ctc.losses(log_softmax(LOGITS), sequences(LABELS, LENGTHS), blank)
        np.testing.assert_allclose(found, expected, 1e-5)

  def test_blank_matters(self):
    steps = log_softmax(LOGITS)
    found = [ctc.losses(steps, sequences(LABELS, LENGTHS), blank) for blank in (0, 4)]
    self.assertGreater(np.abs(found[0] - found[1]).min(), 0.01)

  def test_fewer_steps_than_labels(self):
    np.testing.assert_array_equal(ctc.losses(log_softmax(LOGITS[:1, :2]), [[1, 2, 3]], 4), [np.inf])

  def test_no_step_at_all(self):
    steps = np.full((2, 4, 5), np.nan)
    np.testing.assert_array_equal(ctc.losses(steps, [[1], []], 4), [np.inf, 0.0])


class InterpretationsTest(absltest.TestCase):
  def found(self, outputs, labels):
    example = LossExample('model', {'': outputs}, labels)
    return [
      ctc.losses(steps, symbols, 4)
      for steps, symbols in ctc.interpretations(example, '')
      if all(symbol < 4 for row in symbols for symbol in row)
    ]

  def assert_among(self, expected, found):
    self.assertTrue(any(np.allclose(expected, one, 1e-4) for one in found))

  def test_dense_labels_with_lengths(self):
    expected = tf.nn.ctc_loss(
      LABELS, LOGITS, LENGTHS, STEPS, logits_time_major=False, blank_index=4
    )
    labels = {"['y']": LABELS, "['y_lengths']": LENGTHS, "['steps']": STEPS}
    self.assert_among(expected, self.found(LOGITS, labels))
    self.assert_among(expected, self.found(LOGITS.swapaxes(0, 1), labels))

  def test_sparse_labels(self):
    sparse = tf.sparse.from_dense(LABELS)
    expected = tf.nn.ctc_loss(sparse, LOGITS, None, [6, 6], logits_time_major=False, blank_index=4)
    labels = {'.indices': sparse.indices.numpy(), '.values': sparse.values.numpy()}
    self.assert_among(expected, self.found(LOGITS, labels))

  def test_nothing_to_interpret(self):
    self.assertEmpty(self.found(LOGITS[0], {'': LABELS}))
    self.assertEmpty(self.found(LOGITS, {'': LABELS.astype(np.float32)}))
    self.assertEmpty(self.found(np.zeros((40, 40, 40), np.float32), {'': LABELS}))


if __name__ == '__main__':
  absltest.main()
