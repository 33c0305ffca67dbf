"""Tests of tf2verify.tensorflow_internals.deprecations."""

import logging
import os
import warnings
from unittest import mock

import tensorflow as tf
from absl.testing import absltest
from tensorflow.python.util import deprecation

from tf2verify.tensorflow_internals import deprecations

v1 = tf.compat.v1


def _made_of_old_parts():
  """Does what TensorFlow has something to say about, each in another way."""

  @deprecation.deprecated(None, 'take another')
  def old():
    return None

  old()
  with tf.Graph().as_default():
    v1.layers.dense(tf.ones([2, 3]), 3)
    v1.nn.rnn_cell.MultiRNNCell([v1.nn.rnn_cell.RNNCell()])
  warnings.warn('what the model has to say itself', UserWarning, stacklevel=1)


class UnsaidTest(absltest.TestCase):
  def said(self):
    """Returns the texts of warnings, and of what is logged."""
    with warnings.catch_warnings(record=True) as caught, self.assertLogs('tensorflow') as logged:
      warnings.simplefilter('always')
      logging.getLogger('tensorflow').warning('to have something to log')
      _made_of_old_parts()
    return ' '.join(str(warning.message) for warning in caught), ' '.join(logged.output)

  def test_deprecations_are_kept_back_and_nothing_else(self):
    with warnings.catch_warnings(record=True) as caught, self.assertLogs('tensorflow') as logged:
      warnings.simplefilter('always')
      logging.getLogger('tensorflow').warning('to have something to log')
      with deprecations.unsaid():
        _made_of_old_parts()
    self.assertEqual(
      [str(warning.message) for warning in caught], ['what the model has to say itself']
    )
    self.assertLen(logged.output, 1)

  def test_they_are_said_before_and_after(self):
    with self.assertRaises(ValueError), deprecations.unsaid():
      raise ValueError('no')
    warned, logged = self.said()
    self.assertIn('`tf.layers.dense` is deprecated', warned)
    self.assertIn('take another', logged)
    self.assertIn('MultiRNNCell` is deprecated', logged)

  def test_of_the_arrays_of_keras(self):
    text = "__array__ implementation doesn't accept a copy keyword, so passing copy=False failed."
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always')
      with deprecations.unsaid():
        for module in ('keras.src.backend.tensorflow.core', 'model'):
          warnings.warn_explicit(text, DeprecationWarning, f'{module}.py', 1, module)
    # One at a line of the model is its own.
    self.assertEqual([warning.filename for warning in caught], ['model.py'])

  def test_of_sessions_and_seeds(self):
    session = 'tensorflow.python.client.session'
    seeds = 'non-integer arguments to randrange() have been deprecated since Python 3.10'
    with warnings.catch_warnings(record=True) as caught:
      warnings.simplefilter('always')
      with deprecations.unsaid():
        warnings.warn_explicit(seeds, DeprecationWarning, 'random.py', 362, 'random')
        for module in (session, 'model'):
          warnings.warn_explicit('in the future', FutureWarning, f'{module}.py', 1, module)
    self.assertEqual([warning.filename for warning in caught], ['model.py'])

  def test_what_every_call_says_is_said_once(self):
    said = 'The initializer RandomUniform is unseeded and being called multiple times, which'
    with warnings.catch_warnings(record=True) as caught, self.assertLogs('tensorflow') as logged:
      warnings.simplefilter('always')
      with deprecations.unsaid():
        for call in range(3):
          logging.getLogger('tensorflow').warning('Gradients do not exist for %s', 'w')
          logging.getLogger('tensorflow').warning('of call %d', call)
          warnings.warn(said, UserWarning, stacklevel=1)
          warnings.warn('of the model', UserWarning, stacklevel=1)
    self.assertLen(logged.output, 4)
    found = [str(warning.message) for warning in caught]
    self.assertLessEqual(found.count(said), 1)
    self.assertEqual(found.count('of the model'), 3)

  def test_inside_of_each_other(self):
    with self.assertLogs('tensorflow') as logged, deprecations.unsaid():
      logging.getLogger('tensorflow').warning('to have something to log')
      with deprecations.unsaid():
        pass
      _made_of_old_parts()
    self.assertLen(logged.output, 1)

  def test_the_variable_asks_for_them(self):
    def said():
      with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        with deprecations.unsaid_unless_asked():
          _made_of_old_parts()
      return ' '.join(str(warning.message) for warning in caught)

    with mock.patch.dict(os.environ):
      os.environ.pop(deprecations.VARIABLE, None)
      self.assertNotIn('dense', said())
      with deprecations.asked():
        self.assertIn('`tf.layers.dense` is deprecated', said())
      self.assertNotIn(deprecations.VARIABLE, os.environ)


if __name__ == '__main__':
  absltest.main()
