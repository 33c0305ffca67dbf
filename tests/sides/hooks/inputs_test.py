"""Tests of tf2verify.sides.hooks.inputs; what is refused is in tests/bad_input_test.py."""

import collections
import functools

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.errors import InputsError
from tf2verify.reference.inputs import normal_inputs, varied_inputs
from tf2verify.sides.hooks.inputs import checked_inputs


class NormalInputsTest(absltest.TestCase):
  def test_are_seeded(self):
    np.testing.assert_array_equal(normal_inputs((2, 3)), normal_inputs((2, 3)))
    self.assertFalse(np.array_equal(normal_inputs((2, 3)), normal_inputs((2, 3), seed=1)))

  def test_are_the_same_in_every_version(self):
    np.testing.assert_array_equal(
      normal_inputs((3,)), np.array([1.7640524, 0.4001572, 0.978738], np.float32)
    )


class VariedInputsTest(absltest.TestCase):
  def test_constant_floating_inputs_are_varied(self):
    inputs = {'image': np.ones((2, 3), np.float32), 'state': np.zeros(4, np.float64)}
    varied, replaced = varied_inputs(inputs)
    self.assertEqual(replaced, ("['image']", "['state']"))
    for name, array in varied.items():
      self.assertLen(np.unique(array), array.size)
      self.assertEqual(array.dtype, inputs[name].dtype)

  def test_all_others_are_left_alone(self):
    inputs = [normal_inputs((3,)), np.ones(3, np.int64), np.ones((), np.float32)]
    varied, replaced = varied_inputs(inputs)
    self.assertEqual(replaced, ())
    for before, after in zip(inputs, varied, strict=True):
      np.testing.assert_array_equal(before, after)


class CheckedInputsTest(absltest.TestCase):
  def test_strings_and_scalars_pass(self):
    checked = checked_inputs({'text': np.array(['a', 'bc']), 'rate': np.float32(0.5)})
    self.assertEqual(checked['rate'].shape, ())

  def test_dtypes_of_tensorflow_in_any_byte_order_pass(self):
    for dtype in ('>f4', '<i8', np.uint16, bool, np.complex128, ml_dtypes.bfloat16):
      self.assertEqual(checked_inputs(np.ones(2, dtype)).dtype, dtype)

  def test_a_mask_that_hides_nothing_passes(self):
    checked = checked_inputs(np.ma.masked_greater(normal_inputs((3,)), 99))
    self.assertIs(type(checked), np.ndarray)

  def test_keys_of_one_type_pass(self):
    self.assertEqual(list(checked_inputs({2: np.ones(1), 0: np.ones(1)})), [2, 0])


_Pair = collections.namedtuple('_Pair', ['a', 'ab'])
_ONES = np.ones((2, 3), np.float32)


class _Sparse:
  """As of scipy."""

  def toarray(self):
    return _ONES


class _Frame:
  """As of pandas."""

  def __array__(self, dtype=None, copy=None):
    return _ONES

  def __iter__(self):
    return iter(['column'])


class RefusedTest(parameterized.TestCase):
  @parameterized.parameters(
    (np.array(['2020-01-01'], 'datetime64[D]'), r"dtype datetime64\[D\], .*'int64'\) counts its "),
    (np.array([3], 'timedelta64[s]'), r"dtype timedelta64\[s\], which TensorFlow does not have"),
    (np.zeros(3, [('a', 'f4')]), r'dtype \[\(.*give an array for each field, {name: x\[name'),
    (np.ones(3, np.longdouble), r'dtype (float128|longdouble|float\d+), .*x.astype\(np.float32\)'),
    (np.ones(3, np.clongdouble), r'dtype complex\d+, .*x.astype\(np.complex64\)'),
  )  # fmt: skip
  def test_dtype_that_tensorflow_does_not_have(self, values, said):
    with self.assertRaisesRegex(InputsError, r"make_inputs\(\)\['x'\] has " + said):
      checked_inputs({'x': values})

  @parameterized.parameters(
    ({'x': _ONES, 's': 2.5}, r"\['s'\] is of type float; .*: write np.float32\(2.5\); if it is"),
    ({'x': _ONES, 's': 2}, r'write np.int32\(2\)'),
    ({'x': _ONES, 's': True}, r'write np.bool_\(True\)'),
    ({'x': _ONES, 's': 'abc'}, r"write np.array\('abc'\)"),
    ({'x': _ONES, 's': 'abc' * 99}, r'write np.array\(x\)'),
    ({0: 2.5, 1: _ONES}, r'\(\)\[0\] .*write np.float32\(2.5\)'),
    ([_ONES, 2.5], r'\(\)\[1\] .*write np.float32\(2.5\)'),
    (_Pair([_ONES], 2.5), r'\(\)\.ab .*write np.float32\(2.5\)'),
    (2.5, r'\(\) is of type float; .*write np.float32\(2.5\)'),
    ([[1.0, 2.0]], r'\(\)\[0\]\[0\] .*a list means several inputs.*np.asarray\(the list\) for one'),
    ({'x': (1, 2)}, r"\['x'\]\[0\] .*a list means several inputs"),
  )  # fmt: skip
  def test_value_of_python(self, inputs, said):
    with self.assertRaisesRegex(InputsError, said):
      checked_inputs(inputs)

  @parameterized.parameters(
    ((one for one in [_ONES]), r'generator; .*only one element after another: .*np.stack\(list'),
    (map(abs, [_ONES]), r'map; .*np.stack\(list'),
    ({1.0, 2.0}, r'set; .*a set has no order.*np.array\(sorted\(x\)\)'),
    (len, r'builtin_function_or_method; .*was returned and not called'),
    (functools.partial(np.ones, 3), r'partial; .*was returned and not called'),
    (range(3), r'range; .*return `np.asarray\(x\)`'),
    (collections.deque([1.0]), r'deque; .*return `np.asarray\(x\)`'),
    (_Frame(), r'_Frame; .*return `np.asarray\(x\)`'),
    (_Sparse(), r'_Sparse; .*return `x.toarray\(\)`'),
    (object(), r'object; .*return arrays made of what it holds'),
  )  # fmt: skip
  def test_other_object(self, inputs, said):
    with self.assertRaisesRegex(InputsError, r'make_inputs\(\) is of type ' + said):
      checked_inputs(inputs)

  def test_mask_that_hides_elements(self):
    masked = np.ma.masked_greater(np.arange(6.0), 3)
    with self.assertRaisesRegex(
      InputsError,
      r"make_labels\(\)\['y'\] is a masked array \(2 of 6 elements masked\); .*x.filled\(value\)",
    ):
      checked_inputs({'y': masked}, 'make_labels')

  def test_keys_that_cannot_be_sorted(self):
    inputs = [{'deep': {0: _ONES, 'b': _ONES, 1: _ONES}}]
    with self.assertRaisesRegex(
      InputsError,
      r"make_inputs\(\)\[0\]\['deep'\] has keys that cannot be sorted: 0 \(int\), 'b' \(str\); ",
    ):
      checked_inputs(inputs)

  def test_the_place_of_the_hook_is_named(self):
    line = self.test_the_place_of_the_hook_is_named.__code__.co_firstlineno
    with self.assertRaisesRegex(InputsError, rf'\(make_inputs: .*inputs_test.py:{line}\)$'):
      checked_inputs(None, made_by=self.test_the_place_of_the_hook_is_named)
    with self.assertRaisesRegex(InputsError, r'missing `return`$'):
      checked_inputs(None, made_by=checked_inputs)


class StringsTest(parameterized.TestCase):
  @parameterized.parameters(
    (['ann', 'bob', 'évé'],), ([[b'ann'], [b'bob']],), (['ann', b'bob', ''],), (np.str_('ann'),)
  )
  def test_strings_of_python_are_taken_as_bytes(self, names):
    array = np.array(names, object)
    found = checked_inputs({'user': array})['user']
    self.assertEqual((found.dtype.kind, found.shape), ('S', array.shape))
    wanted = [one if isinstance(one, bytes) else one.encode() for one in array.flat]
    self.assertEqual(list(found.flat), wanted)

  @parameterized.parameters(([None, 'bob'],), ([1, 'bob'],), ([],), ([[1.0], [1.0, 2.0]],))
  def test_other_objects_are_refused(self, elements):
    with self.assertRaisesRegex(InputsError, r"make_inputs\(\)\['user'\] has dtype object"):
      checked_inputs({'user': np.array(elements, object)})


if __name__ == '__main__':
  absltest.main()
