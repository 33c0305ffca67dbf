"""Tests of tf2verify.numerics.tolerance."""

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.errors import CaseDefinitionError
from tf2verify.numerics import tolerance
from tf2verify.numerics.tolerance import Tolerance, as_table

_VALUES = tolerance.VALUE_TOLERANCES


class ToleranceTest(parameterized.TestCase):
  def test_keeps_figures_as_floats(self):
    self.assertEqual(Tolerance(rtol=0, atol=np.float32(0.5)), Tolerance(0.0, 0.5))
    self.assertIs(type(Tolerance(rtol=0, atol=np.float32(0.5)).atol), float)

  @parameterized.parameters(float('nan'), float('inf'), -1e-6)
  def test_refuses_figures_out_of_range(self, figure):
    with self.assertRaisesRegex(CaseDefinitionError, 'rtol = .*must be finite and not negative'):
      Tolerance(rtol=figure, atol=0.0)

  @parameterized.parameters('1e-6', None, True, 1j)
  def test_refuses_what_is_no_number(self, figure):
    with self.assertRaisesRegex(CaseDefinitionError, 'atol = .*must be a number'):
      Tolerance(rtol=0.0, atol=figure)


class ToleranceTableTest(parameterized.TestCase):
  def test_float32_has_the_figures_of_the_guide(self):
    guide = Tolerance(rtol=1e-6, atol=1e-5)
    self.assertEqual(_VALUES.for_dtype(np.dtype('float32')), guide)
    self.assertEqual(tolerance.GRADIENT_TOLERANCES.for_dtype(np.dtype('float32')), guide)

  @parameterized.parameters('float64', 'float32', 'float16', ml_dtypes.bfloat16)
  def test_relative_allowance_is_between_1_and_64_epsilons(self, dtype):
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    for table in (_VALUES, tolerance.GRADIENT_TOLERANCES):
      found = table.for_dtype(np.dtype(dtype))
      self.assertBetween(found.rtol / epsilon, 1, 64)
      self.assertGreaterEqual(found.atol, found.rtol)

  def test_regularization_losses_have_a_relative_allowance_only(self):
    for name, found in tolerance.REGULARIZATION_TOLERANCES:
      self.assertEqual(found.atol, 0.0, name)
      self.assertGreaterEqual(found.rtol, dict(_VALUES)[name].rtol)

  def test_float8_allows_one_step(self):
    for name, found in _VALUES:
      if name.startswith('float8'):
        limits = ml_dtypes.finfo(getattr(ml_dtypes, name))
        self.assertEqual(found.rtol, float(limits.eps), name)
        self.assertEqual(found.atol, float(limits.smallest_subnormal), name)

  @parameterized.parameters('int32', 'uint8', 'bool', 'S3', 'U3', object, ml_dtypes.int4)
  def test_everything_else_is_exact(self, dtype):
    self.assertEqual(_VALUES.for_dtype(np.dtype(dtype)), Tolerance(0.0, 0.0))

  def test_byte_order_does_not_matter(self):
    self.assertEqual(_VALUES.for_dtype(np.dtype('>f4')), _VALUES.for_dtype(np.dtype('<f4')))


class AsTableTest(parameterized.TestCase):
  def test_none_is_the_default(self):
    self.assertIs(as_table(None, _VALUES), _VALUES)

  def test_a_table_is_itself(self):
    self.assertIs(as_table(_VALUES, tolerance.GRADIENT_TOLERANCES), _VALUES)

  def test_one_tolerance_holds_for_all_floating_dtypes_only(self):
    table = as_table(Tolerance(0.5, 0.25), _VALUES)
    for dtype in ('float16', 'float32', 'float64', 'complex64', ml_dtypes.bfloat16):
      self.assertEqual(table.for_dtype(np.dtype(dtype)), Tolerance(0.5, 0.25))
    self.assertEqual(table.for_dtype(np.dtype('int32')), Tolerance(0.0, 0.0))

  @parameterized.parameters('float16', np.float16, np.dtype('float16'))
  def test_a_mapping_overrides_by_dtype(self, key):
    table = as_table({key: Tolerance(0.5, 0.25)}, _VALUES)
    self.assertEqual(table.for_dtype(np.dtype('float16')), Tolerance(0.5, 0.25))
    self.assertEqual(table.for_dtype(np.dtype('float32')), _VALUES.for_dtype(np.dtype('float32')))

  def test_a_mapping_takes_tensorflow_dtypes(self):
    class TensorFlowDtype:
      as_numpy_dtype = ml_dtypes.bfloat16

    table = as_table({TensorFlowDtype(): Tolerance(0.5, 0.25)}, _VALUES)
    self.assertEqual(table.for_dtype(np.dtype(ml_dtypes.bfloat16)), Tolerance(0.5, 0.25))

  @parameterized.parameters(
    (1e-5, r'relative or absolute; maybe you meant Tolerance\(rtol=1e-05, atol=1e-05\)'),
    ((1e-6, 1e-5), r'maybe you meant Tolerance\(rtol=1e-06, atol=1e-05\)'),
    (Tolerance, 'This is the class'),
    ('tight', 'it must be a Tolerance'),
    (True, 'it must be a Tolerance'),
    ({'float32': 1e-5}, r"gradient_tolerance\['float32'\] = 1e-05.*maybe you meant"),
    ({'rtol': 1e-5, 'atol': 1e-6}, r"'rtol', which is not a dtype.*belong in Tolerance"),
    ({'float23': Tolerance(0, 0)}, "'float23', which is not a dtype; allowed are float32"),
    ({None: Tolerance(0, 0)}, 'None, which is not a dtype'),
    ({'int32': Tolerance(0, 0)}, 'int32, which is always compared exactly'),
    ({'float32': Tolerance(0, 0), np.float32: Tolerance(0, 0)}, 'two entries for float32'),
  )
  def test_refuses(self, declared, text):
    with self.assertRaisesRegex(CaseDefinitionError, f'(?i){text}'):
      as_table(declared, _VALUES, 'gradient_tolerance')


if __name__ == '__main__':
  absltest.main()
