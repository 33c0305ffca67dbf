"""Tests of tf2verify.tensorflow_internals.conversions."""

import keras
import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.tensorflow_internals import conversions, graphs


def _asked_for(tensor):
  asked = int(tensor), float(tensor), bool(tensor), tensor.numpy(), np.asarray(tensor).item()
  return *asked, list(range(tensor))


class AnsweredTest(absltest.TestCase):
  def test_tensors(self):
    with tf.Graph().as_default():
      tensor = tf.compat.v1.placeholder(tf.int32, ())
      with conversions.answered(lambda asked: np.int32(3) if asked is tensor else None):
        self.assertEqual(_asked_for(tensor), (3, 3.0, True, 3, 3, [0, 1, 2]))

  def test_variables(self):
    variable, of_keras = tf.Variable(2.5), keras.Variable(4, dtype='int32')
    with graphs.FuncGraph('reads').as_default():
      with conversions.answered(lambda asked: np.float32(7)):
        self.assertEqual((float(variable.numpy()), int(variable), int(of_keras)), (7.0, 7, 7))
      with self.assertRaises(NotImplementedError):
        variable.numpy()

  def test_eager_tensors_and_variables_answer_as_ever(self):
    with conversions.answered(lambda asked: np.float32(7)):
      self.assertEqual(_asked_for(tf.constant(2)), (2, 2.0, True, 2, 2, [0, 1]))
      self.assertEqual(tf.Variable(2.5).numpy(), 2.5)

  def test_nothing_is_left_after_an_error(self):
    with tf.Graph().as_default():
      tensor = tf.constant(1)
      with self.assertRaises(ZeroDivisionError), conversions.answered(lambda asked: 1 // 0):
        int(tensor)
      self.assertFalse(hasattr(tensor, 'numpy'))
      for ask in (int, float, bool, np.asarray, range):
        with self.assertRaises((TypeError, NotImplementedError)):
          ask(tensor)


if __name__ == '__main__':
  absltest.main()
