"""Tests of tf2verify.sides.hooks.slips, and of the ladder that asks."""

import operator

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests import small_case
from tf2verify.errors import UserCodeError
from tf2verify.sides.hooks.slips import likely_slip

_INPUTS = {'ids': np.zeros((8, 6)), 'dense': np.zeros((8, 5)), 'length': np.zeros(5)}
_LABELS = {'clicks': np.zeros(8), 'weight': np.zeros(8)}
_OF_LABELS = "the labels have: clicks, weight (did you mean 'clicks'?)"


def _error(hook, cause):
  error = UserCodeError('tf1', hook, 'something', '')
  error.__cause__ = cause
  return error


class DoubleTest(parameterized.TestCase):
  """Arrays of float64, numpy's default, where TensorFlow says that it is about that."""

  LABELS = {'clicks': np.zeros(8, np.float64), 'weight': np.zeros(8, np.float32)}

  @parameterized.parameters(
    (
      "Value passed to parameter 'labels' has DataType float64 not in list of allowed values: "
      'int32, int64',
      'int32',
    ),
    ('cannot compute Mul as input #1 was expected to be a float tensor but is a double', 'float32'),
  )
  def test_labels(self, message, dtype):
    said = likely_slip(_error('tf1_loss', TypeError(message)), None, self.LABELS)
    self.assertIn("make_labels returns float64 for labels['clicks'], ", said)
    self.assertIn(f'x.astype(np.{dtype})', said)

  def test_inputs(self):
    message = "Input 'b' of 'MatMul' Op has type float32 that does not match type float64"
    said = likely_slip(_error('build_tf1_graph', TypeError(message)), np.zeros((2, 3)), None)
    self.assertIn('make_inputs returns float64, ', said)

  def test_something_else(self):
    error = _error('tf1_loss', TypeError('float64 expected'))
    single = {'clicks': np.zeros(8, np.float32)}
    self.assertEqual(likely_slip(error, None, single), '')
    error = _error('tf1_loss', TypeError('a shape is wrong'))
    self.assertEqual(likely_slip(error, None, self.LABELS), '')

  def test_inputs_of_the_variables(self):
    class Case(small_case.SmallCase):
      def build_tf1_graph(self, inputs, training):
        return tf.compat.v1.layers.dense(inputs, 2, name='dense')

      def make_tf2_layer(self):
        return tf.keras.Sequential([tf.keras.layers.Dense(2, name='dense')])

      def make_inputs(self):
        return np.random.RandomState(0).randn(4, 3)

    verdict = tf2verify.verify(Case, stages=['variable_inventory'])
    (hint,) = {one.hint for one in verdict.stages[-1].differences}
    self.assertStartsWith(hint, 'make_inputs returns float64: return x.astype(np.float32)')


class Silent(Exception):
  def __str__(self):
    raise RuntimeError('no text')


class KeyTest(parameterized.TestCase):
  @parameterized.parameters(
    ('tf1_loss', _OF_LABELS),
    ('running tf2_loss as a tf.function', _OF_LABELS),
    ('tf2_metrics', _OF_LABELS),
    ('build_tf1_graph', 'the inputs have: ids, dense, length'),
    ('tf2_train_step', f'the inputs have: ids, dense, length; {_OF_LABELS}'),
    ('make_tf2_layer', ''),
  )
  def test_key_that_is_not_there(self, hook, text):
    self.assertEqual(likely_slip(_error(hook, KeyError('click')), _INPUTS, _LABELS), text)

  def test_an_exception_without_a_text(self):
    class Case(small_case.SmallCase):
      def make_tf2_layer(self):
        raise Silent

    self.assertEqual(likely_slip(_error('make_tf2_layer', Silent()), _INPUTS, None), '')
    verdict = tf2verify.verify(Case, stages=['no_new_variables'])
    self.assertIs(verdict.status, tf2verify.Status.ERROR)
    self.assertIn('Silent: (no message: its __str__ raised RuntimeError)', verdict.to_text())

  @parameterized.parameters(
    (KeyError('clicks'), _LABELS),
    (KeyError(3), _LABELS),
    (KeyError(), _LABELS),
    (KeyError('click'), np.zeros(3)),
    (KeyError('click'), None),
  )
  def test_other_keys(self, cause, labels):
    self.assertEqual(likely_slip(_error('tf1_loss', cause), _INPUTS, labels), '')


class FirstDimensionTest(parameterized.TestCase):
  @parameterized.parameters(
    'build_tf1_graph',
    'running the graph of build_tf1_graph',
    'call_tf2_layer',
    'the gradient of tf2_loss',
    'make_tf1_train_op',
  )
  def test_a_single_other_one(self, hook):
    self.assertEqual(
      likely_slip(_error(hook, ValueError()), _INPUTS, None),
      "the inputs have first dimensions 8, 8, 5 (['length']): a mistake in make_inputs?",
    )

  @parameterized.parameters(
    ({'a': np.zeros(8), 'b': np.zeros(5)},),
    ({'a': np.zeros(8), 'b': np.zeros(8), 'c': np.zeros(8)},),
    ({'a': np.zeros(8), 'b': np.zeros(8), 'rate': np.float32(1.0)},),
    ({'a': np.zeros(8), 'b': np.zeros(8), 'c': np.zeros(5), 'd': np.zeros(5)},),
    (np.zeros(8),),
  )
  def test_no_slip(self, inputs):
    self.assertEqual(likely_slip(_error('build_tf1_graph', ValueError()), inputs, None), '')

  def test_other_hooks(self):
    self.assertEqual(likely_slip(_error('make_tf2_layer', ValueError()), _INPUTS, None), '')


class InPlaceTest(absltest.TestCase):
  def test_operators_that_variables_of_tf1_took(self):
    variable = tf.Variable([1.0])
    for sign, operator_of in (('+', operator.iadd), ('*', operator.imul), ('/', operator.itruediv)):
      with self.subTest(sign), self.assertRaises(RuntimeError) as raised:
        operator_of(variable, 1.0)
      text = likely_slip(_error('build_tf1_graph', raised.exception), _INPUTS, None)
      self.assertIn(f'write `w = w {sign} value`', text)


class LadderTest(absltest.TestCase):
  def _error_of(self, case, stage):
    verdict = tf2verify.verify(case, stages=[stage])
    self.assertEqual(verdict.status, tf2verify.Status.ERROR, verdict.to_text())
    return verdict.first_failure.error.summary

  def test_label_key(self):
    class LabelCase(small_case.SmallCase):
      def make_labels(self):
        return {'clicks': np.zeros(4, np.float32)}

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(labels['click'])

      tf2_loss = tf1_loss

    self.assertEndsWith(
      self._error_of(LabelCase, 'loss'),
      "tf1_loss raised KeyError: 'click'; the labels have: clicks (did you mean 'clicks'?)",
    )

  def test_label_key_of_the_port(self):
    class LabelCase(small_case.SmallCase):
      def make_labels(self):
        return {'clicks': np.zeros(4, np.float32)}

      def tf1_loss(self, outputs, labels):
        return tf.reduce_mean(labels['clicks'])

      def tf2_loss(self, outputs, labels):
        return tf.reduce_mean(labels['click'])

    self.assertEndsWith(
      self._error_of(LabelCase, 'loss'), "; the labels have: clicks (did you mean 'clicks'?)"
    )

  def test_first_dimension(self):
    class OddCase(small_case.SmallCase):
      def make_inputs(self):
        return [np.ones((size, 3), np.float32) for size in (4, 4, 3)]

      def build_tf1_graph(self, inputs, training):
        return tf.add_n(inputs)

      def call_tf2_layer(self, layer, inputs, training):
        return tf.add_n(inputs)

    self.assertEndsWith(
      self._error_of(OddCase, 'variable_inventory'),
      '; the inputs have first dimensions 4, 4, 3 ([2]): a mistake in make_inputs?',
    )


if __name__ == '__main__':
  absltest.main()
