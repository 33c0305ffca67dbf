"""Tests of sides.graphs.rewriting.update_formulas: the formulas against TensorFlow's kernels."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.sides.graphs.rewriting.update_formulas import FORMULAS
from tf2verify.tensorflow_internals import graphs

_RANDOM = np.random.default_rng(0)
_SCALARS = {
  'alpha': 0.1,
  'lr': 0.1,
  'momentum': 0.8,
  'beta1': 0.9,
  'beta2': 0.99,
  'beta1_power': 0.81,
  'beta2_power': 0.98,
  'epsilon': 0.01,
  'rho': 0.7,
  'l1': 0.3,
  'l2': 0.05,
  'l2_shrinkage': 0.03,
  'lr_power': -0.5,
  'beta': 0.9,
  'logbase': 1.2,
  'sign_decay': 0.8,
}
_INTEGERS = {
  'global_step': np.int64(2),
  'begin': np.array([1, 0]),
  'end': np.array([3, 2]),
  'strides': np.array([1, 1]),
}
_FLAGS = ('use_nesterov', 'update_slots', 'multiply_linear_by_lr')


def _value(name):
  if name in _SCALARS:
    return np.float32(_SCALARS[name])
  if name in _INTEGERS:
    return _INTEGERS[name]
  if name == 'indices':
    return np.array([[2], [0]], np.int32)
  # Where a root is drawn, of what an optimizer would hold there.
  value = _RANDOM.uniform(0.5, 1.5, (4, 3)).astype(np.float32)
  if name == 'mg':
    return value * np.float32(0.1)
  return value


class FormulaTest(parameterized.TestCase):
  @parameterized.parameters(*sorted(FORMULAS))
  def test_formula_is_that_of_the_kernel(self, op_type):
    definition = graphs.op_definition(op_type)
    flags = [one.name for one in definition.attr if one.name in _FLAGS]
    for flag in (False, True) if flags else (False,):
      with self.subTest(flag=flag):
        self._compare(op_type, definition, dict.fromkeys(flags, flag))

  def _compare(self, op_type, definition, attributes):
    variables, given, arguments = {}, {}, {}
    for argument in definition.input_arg:
      value = _value(argument.name)
      if argument.name == 'indices' and 'Nd' not in op_type:
        value = value[:, 0]
      if argument.name in ('grad', 'updates') and ('Sparse' in op_type or 'Scatter' in op_type):
        value = value[:2]
      if argument.name == 'value' and 'Slice' in op_type:
        value = value[:2, :2]
      if argument.type == tf.resource.as_datatype_enum:
        variables[argument.name] = variable = tf.Variable(value)
        arguments[argument.name] = variable.handle
      else:
        arguments[argument.name] = tf.constant(value)
      given[argument.name] = tf.constant(value)
    made = FORMULAS[op_type](given, attributes)
    getattr(tf.raw_ops, op_type)(**arguments, **attributes)
    self.assertEqual(set(made), set(variables))
    for name, variable in variables.items():
      np.testing.assert_allclose(made[name], variable, rtol=1e-5, atol=1e-6, err_msg=name)


if __name__ == '__main__':
  absltest.main()
