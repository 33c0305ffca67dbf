"""Tests of tf2verify.sides.hooks.user_code."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.errors import UserCodeError
from tf2verify.sides.hooks.user_code import user_code

_NEVER_RUNS = 'an assert that no fetched tensor depends on never runs in tf1'


def _summary(side, function):
  try:
    with user_code(side, 'build_tf1_graph' if side == 'tf1' else 'call_tf2_layer'):
      function()
  except UserCodeError as error:
    return str(error)
  raise AssertionError('nothing was raised')


def _assert_less():
  tf.debugging.assert_less(tf.constant(2.0), 1.0)


def _assert_of_tf1():
  tf.compat.v1.assert_equal(tf.constant(2.0), 1.0)


def _assert_itself():
  tf.Assert(tf.constant(False), ['no'])


class AssertTest(parameterized.TestCase):
  @parameterized.parameters(_assert_less, _assert_of_tf1, _assert_itself)
  def test_that_fails_eagerly_says_that_tf1_never_runs_it(self, function):
    self.assertIn(_NEVER_RUNS, _summary('tf2', function))

  def test_of_tf1_says_nothing(self):
    self.assertNotIn(_NEVER_RUNS, _summary('tf1', _assert_less))

  def test_other_error_of_an_op(self):
    summary = _summary('tf2', lambda: tf.reshape(tf.zeros([4]), [3]))
    self.assertIn('InvalidArgumentError', summary)
    self.assertNotIn(_NEVER_RUNS, summary)


class SentenceTest(parameterized.TestCase):
  @parameterized.parameters(
    (
      'was created by passing\nvalues\nto __init__().\nand more',
      'by passing values to __init__().',
    ),
    ('shapes [6,4] and [6,5]\nname: dense', 'shapes [6,4] and [6,5]'),
    ('is wrong\nCall arguments:', 'is wrong'),
  )
  def test_a_sentence_of_several_lines(self, message, wanted):
    def function():
      raise NotImplementedError(message)

    self.assertEndsWith(_summary('tf2', function).split(' (in')[0], wanted)


class CollectionTest(absltest.TestCase):
  def test_slim_in_eager_mode_says_what_to_leave_out(self):
    def _add_variable_to_collections():  # of tf_slim.layers
      raise ValueError('The truth value of an array is ambiguous')

    summary = _summary('tf2', _add_variable_to_collections)
    self.assertIn("leave 'variables_collections' out", summary)

  def test_other_comparison_of_arrays(self):
    self.assertNotIn(
      'variables_collections', _summary('tf2', lambda: bool(tf.constant([1, 2]) == 1))
    )


if __name__ == '__main__':
  absltest.main()
