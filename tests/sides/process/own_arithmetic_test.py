"""Tests of tf2verify.sides.process.own_arithmetic."""

import warnings

import numpy as np
from absl.testing import absltest

import tf2verify
from tests.small_case import SmallCase
from tf2verify.sides.process import own_arithmetic


def _quotient():
  return np.zeros(1) / np.zeros(1)


class OwnArithmeticTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.enter_context(warnings.catch_warnings())
    warnings.simplefilter('error')

  def test_it_is_silent_and_the_user_hears_what_they_want(self):
    with np.errstate(all='warn'), own_arithmetic.silent():
      _quotient()
      with own_arithmetic.as_user_wants():
        with self.assertRaises(RuntimeWarning):
          _quotient()
        with own_arithmetic.silent():
          _quotient()
          with own_arithmetic.as_user_wants(), self.assertRaises(RuntimeWarning):
            _quotient()
      _quotient()

  def test_outside_nothing_changes(self):
    with np.errstate(all='ignore'), own_arithmetic.as_user_wants():
      _quotient()
    own = np.errstate(all='raise')
    with own, own_arithmetic.as_user_wants(), self.assertRaises(FloatingPointError):
      _quotient()

  def test_a_case_under_numpy_that_raises(self):
    heard = []

    class Case(SmallCase):
      def make_inputs(self):
        heard.append(np.geterr()['divide'])
        return super().make_inputs()

      def build_tf1_graph(self, inputs, training):
        return super().build_tf1_graph(inputs, training) * 1e38 * 1e38

      def call_tf2_layer(self, layer, inputs, training):
        heard.append(np.geterr()['divide'])
        return super().call_tf2_layer(layer, inputs, training) * 1e38 * 1e37

    with np.errstate(all='raise'):
      verdict = tf2verify.verify(Case, stages=['zero_randomness'])
      self.assertEqual(np.geterr()['divide'], 'raise')
    self.assertEqual(heard[:2], ['raise', 'raise'])
    self.assertNotEqual(verdict.status, tf2verify.Status.ERROR, verdict.to_text())


if __name__ == '__main__':
  absltest.main()
