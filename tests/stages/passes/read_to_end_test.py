"""Tests of inputs that are longer, and of lengths that read what was added."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages.tiny_models import OneModel

v1 = tf.compat.v1
_STEPS = 5


def _case(fixed, longest):
  class Case(OneModel):
    training_modes = (False,)

    def make_inputs(self):
      ids = np.random.RandomState(3).randint(0, 9, (4, _STEPS)).astype(np.int32)
      return {'ids': ids, 'lengths': np.array([longest, 2, 3, 4], np.int32)}

    def pooled(self, inputs, steps):
      table = v1.get_variable('table', [9, 3])
      kept = tf.sequence_mask(inputs['lengths'], steps, tf.float32)[..., None]
      return tf.reduce_sum(tf.gather(table, inputs['ids']) * kept, 1)

    def model(self, inputs, training):
      return self.pooled(inputs, tf.shape(inputs['ids'])[1])

    def port(self, inputs, training):
      steps = tf.shape(inputs['ids'])[1]
      if fixed:
        inputs = {**inputs, 'ids': tf.reshape(inputs['ids'], [-1, _STEPS])}
      return self.pooled(inputs, steps)

  return Case


class ReadToEndTest(parameterized.TestCase):
  @parameterized.parameters(5, 4)
  def test_length_that_the_port_has_hard_coded(self, longest):
    verdict = tf2verify.verify(_case(True, longest), stages=['zero_randomness'])
    failure = verdict.first_failure
    self.assertIsNotNone(failure, verdict.to_text())
    self.assertEqual(failure.stage, 'zero_randomness', verdict.to_text())
    text = ' '.join(verdict.to_text().split())
    self.assertIn("read to their end by ['lengths']", text)
    self.assertIn('read_to_end_test.py:', text)

  def test_port_of_any_length(self):
    verdict = tf2verify.verify(_case(False, 5), stages=['zero_randomness'])
    self.assertIsNone(verdict.first_failure, verdict.to_text())
    self.assertNotIn('read to their end', verdict.to_text())


if __name__ == '__main__':
  absltest.main()
