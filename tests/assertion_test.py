"""`tf2verify.assert_equivalent`, as users without a class of their own call it."""

import contextlib
import functools

import numpy as np
from absl.testing import absltest

import tf2verify

# isort: split
import tensorflow as tf

from tests import small_case
from tf2verify.errors import CaseDefinitionError

v1 = tf.compat.v1
_INPUTS = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


def _dense(inputs):
  return v1.layers.dense(inputs, 2, name='dense')


def _two(inputs, is_training):
  net = v1.layers.dense(inputs['left'], 2, name='dense') + inputs['right']
  return v1.layers.dropout(net, training=is_training)


class _Two(tf.keras.layers.Layer):
  def __init__(self, scale=1.0):
    super().__init__()
    self.dense = tf.keras.layers.Dense(2, name='dense')
    self.scale = scale

  def call(self, inputs, training=False):
    return self.dense(inputs['left']) * self.scale + inputs['right']


def _keras_dense():
  return tf.keras.layers.Dense(2, name='dense')


class AssertEquivalentTest(absltest.TestCase):
  def test_a_function_and_a_class_under_the_shim(self):
    verdict = tf2verify.assert_equivalent(
      small_case.model, small_case.Port, _INPUTS, stages=['seeded_num_random_ops']
    )
    self.assertTrue(verdict.passed)
    self.assertEqual((verdict.case, verdict.run_again), ('model', ''))
    self.assertIn('assertion_test', verdict.module)

  def test_a_function_that_makes_the_layer_and_one_that_makes_the_inputs(self):
    verdict = tf2verify.assert_equivalent(
      _dense, _keras_dense, lambda: _INPUTS, training=False, stages=['gradients']
    )
    self.assertEqual([stage.stage for stage in verdict.stages][-1], 'gradients')

  def test_a_difference_is_an_assertion_error_with_the_report(self):
    inputs = {'left': _INPUTS, 'right': np.ones((4, 2), np.float32)}
    with self.assertRaises(AssertionError) as raised:
      tf2verify.assert_equivalent(
        _two, lambda: _Two(2.0), inputs, training=False, stages=['zero_randomness']
      )
    self.assertIn("_two: stage 'zero_randomness' FAILED", str(raised.exception))
    self.assertNotIn('run again', str(raised.exception))
    tf2verify.assert_equivalent(_two, _Two, inputs, training=False, stages=['zero_randomness'])

  def test_whether_it_is_trained_is_passed_on_by_the_name_that_the_function_has(self):
    inputs = {'left': _INPUTS, 'right': np.ones((4, 2), np.float32)}
    with self.assertRaisesRegex(AssertionError, 'dropout only in tf1'):
      # The port has no dropout, which only training shows.
      tf2verify.assert_equivalent(_two, _Two, inputs, training=True, stages=['zero_randomness'])

  def test_tolerances(self):
    inputs = {'left': _INPUTS, 'right': np.ones((4, 2), np.float32)}
    for wide in (None, tf2verify.Tolerance(rtol=0.01, atol=0.01)):
      with contextlib.ExitStack() as stack:
        if wide is None:
          stack.enter_context(self.assertRaises(AssertionError))
        tf2verify.assert_equivalent(
          _two, lambda: _Two(1.001), inputs, training=False, tolerance=wide,
          stages=['zero_randomness'],
        )  # fmt: skip

  def test_names_of_variables(self):
    names = {'dense/kernel': 'other/kernel', 'dense/bias': 'other/bias'}
    for named in (names, lambda name: name.replace('dense', 'other')):
      verdict = tf2verify.assert_equivalent(
        _dense, lambda: tf.keras.layers.Dense(2, name='other'), _INPUTS, training=False,
        variable_names=named, stages=['variable_inventory'],
      )  # fmt: skip
      self.assertTrue(verdict.passed)
    with self.assertRaisesRegex((AssertionError, tf2verify.Tf2VerifyError), 'variable_names'):
      tf2verify.assert_equivalent(
        _dense, _keras_dense, _INPUTS, training=False, variable_names={'dense/kernl': 'x'},
        stages=['variable_inventory'],
      )  # fmt: skip

  def test_losses_by_the_names_of_the_hooks(self):
    def call(scale):
      return tf2verify.assert_equivalent(
        _dense, _keras_dense, _INPUTS,
        training=False,
        labels=np.zeros((4, 2), np.float32),
        stages=['loss'],
        tf1_loss=lambda outputs, labels: v1.losses.mean_squared_error(labels, outputs),
        tf2_loss=lambda outputs, labels: scale * tf.reduce_mean((outputs - labels) ** 2),
      )  # fmt: skip

    self.assertTrue(call(1.0).passed)
    with self.assertRaisesRegex(AssertionError, "stage 'loss' FAILED"):
      call(2.0)

  def test_stage_that_is_asked_for_and_cannot_run(self):
    arguments = _dense, _keras_dense, _INPUTS
    with self.assertRaisesRegex(AssertionError, 'loss was asked for and was not run: the case de'):
      tf2verify.assert_equivalent(*arguments, training=False, stages=['loss'])
    with self.assertRaisesRegex(CaseDefinitionError, 'stages is empty'):
      tf2verify.assert_equivalent(*arguments, stages=[])

  def test_functions_that_take_arguments(self):
    creates = tf.keras.layers.Dense
    for arguments, labels, said in (
      (
        (_keras_dense, _dense, _INPUTS),
        None,
        'layer, the function _dense, takes inputs, .*swapped',
      ),
      (
        (_dense, creates, _INPUTS),
        None,
        r'layer, the class Dense, takes units, .*a function that creates .*lambda: Dense\(\.\.\.\)',
      ),
      (
        (_dense, lambda x: creates(2)(x), _INPUTS),
        None,
        r'layer, the function <lambda>, takes x, .*creates the port, a Keras layer or tf.Module',
      ),
      (
        (_dense, _keras_dense, lambda n: _INPUTS),
        None,
        r'inputs, the function <lambda>, takes n, .*pass the arrays, or lambda: inputs\(',
      ),
      (
        (_dense, _keras_dense, _INPUTS),
        lambda n: _INPUTS,
        r'labels, the function <lambda>, takes n',
      ),
    ):
      with self.subTest(said), self.assertRaisesRegex(AssertionError, f'case side: .*{said}'):
        tf2verify.assert_equivalent(
          *arguments, labels=labels, training=False, stages=['no_new_variables']
        )

  def test_function_that_is_given_its_arguments_by_a_decorator(self):
    @functools.wraps(tf.keras.layers.Dense)
    def configured():
      return tf.keras.layers.Dense(2, name='dense')

    def failing():
      raise TypeError('of its own')

    arguments = {'training': False, 'stages': ['no_new_variables']}
    self.assertTrue(tf2verify.assert_equivalent(_dense, configured, _INPUTS, **arguments).passed)
    with self.assertRaisesRegex(AssertionError, 'make_tf2_layer raised TypeError: of its own'):
      tf2verify.assert_equivalent(_dense, failing, _INPUTS, **arguments)

  def test_arguments_of_no_use(self):
    for arguments, hooks, said in (
      (
        (_dense, _keras_dense(), _INPUTS),
        {},
        r'layer is a Dense that has already been created.*lambda: D',
      ),
      ((_INPUTS, _keras_dense, _INPUTS), {}, 'tf1_function is array'),
      (
        (_dense, _keras_dense, _INPUTS),
        {'tf_loss': abs},
        r'tf_loss is not an attribute.*tf[12]_loss\?',
      ),
      (
        (_dense, _keras_dense, _INPUTS),
        {'make_tf2_optimizer': 'adam'},
        'make_tf2_optimizer is a str; it is called again for every run: pass a function',
      ),
      (
        (_dense, _keras_dense, _INPUTS),
        {'tf1_loss': lambda self, outputs, labels: outputs},
        'tf1_loss has the parameter self; a hook is passed here as a function without it',
      ),
      (
        (_dense, _keras_dense, _INPUTS),
        {'tf1_loss': lambda outputs: outputs},
        r'assert_equivalent: tf1_loss cannot be called: too many .*; pass a function without self, '
        r'tf1_loss=lambda outputs, labels: \.\.\.',
      ),
      ((_dense, _keras_dense, _INPUTS), {'training': 'no'}, "training is 'no'; it must be False"),
      ((_dense, _keras_dense, _INPUTS), {'training': 1}, 'training is 1; it must be False'),
      ((_dense, _keras_dense, _INPUTS), {'stages': ['gradient']}, "did you mean 'gradients'"),
      ((_dense, _keras_dense, _INPUTS), {'make_inputs': abs}, 'make_inputs is not an attribute'),
    ):
      with self.subTest(said), self.assertRaisesRegex(tf2verify.Tf2VerifyError, said):
        tf2verify.assert_equivalent(*arguments, **hooks)


if __name__ == '__main__':
  absltest.main()
