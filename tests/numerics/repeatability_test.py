import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.numerics import repeatability
from tf2verify.records.repetition import RunOp
from tf2verify.records.tensor_key import TensorKey, numbered


def run(**values):
  return {TensorKey('output', name, 'training'): value for name, value in values.items()}


def op(op_type, inputs, output, produced=True, name=''):
  value = np.array(output, np.float32)
  return RunOp(op_type, name, tuple(inputs), (value,), None, (produced,) * len(inputs))


class SameBitsTest(parameterized.TestCase):
  @parameterized.parameters(
    (np.float32([1.0, np.nan]),),
    (np.array(['a', 'b'], object),),
    (np.zeros((0, 3)),),
    (np.array(3, np.int64),),
    (np.array([True, False]),),
  )
  def test_same(self, value):
    self.assertTrue(repeatability.same_bits(value, value.copy()))
    self.assertEqual(repeatability.digest(value), repeatability.digest(value.copy()))
    self.assertEmpty(repeatability.varying(run(x=value), run(x=value.copy())))

  @parameterized.parameters(
    (np.float32([0.0]), np.float32([-0.0])),
    (np.float32([1.0]), np.nextafter(np.float32([1.0]), np.float32(2))),
    (np.float32([1.0]), np.float64([1.0])),
    (np.zeros(3), np.zeros((3, 1))),
    (np.array(['a'], object), np.array(['b'], object)),
    (np.array([1]), np.array([2])),
    (np.float32([np.nan]), np.float32([1.0])),
  )
  def test_other(self, first, second):
    self.assertFalse(repeatability.same_bits(first, second))
    self.assertNotEqual(repeatability.digest(first), repeatability.digest(second))
    self.assertLen(repeatability.varying(run(x=first), run(x=second)), 1)


class VaryingTest(absltest.TestCase):
  def test_share_and_greatest_differences(self):
    first = np.float32([[1.0, 2.0], [4.0, 0.0]])
    second = np.float32([[1.0, 3.0], [4.5, 0.0]])
    (found,) = repeatability.varying(run(x=first), run(x=second))
    self.assertEqual((found.mismatched, found.size), (2, 4))
    self.assertEqual((found.greatest_absolute, found.greatest_relative), (1.0, 0.5))
    self.assertEqual(found.share, '2 of 4 (50.0 %)')
    self.assertEqual(str(found), 'output x [training]')

  def test_shape_dtype_and_presence(self):
    one, other = np.zeros(2, np.float32), np.zeros(3, np.float32)
    (shape,) = repeatability.varying(run(x=one), run(x=other))
    self.assertEqual(shape.other, 'its shape varies: (2,), (3,)')
    (dtype,) = repeatability.varying(run(x=one), run(x=one.astype(np.float64)))
    self.assertEqual(dtype.other, 'its dtype varies: float32, float64')
    (absent,) = repeatability.varying(run(x=one), {})
    self.assertEqual(absent.other, 'in one run only')
    (nothing,) = repeatability.varying(run(x=None), run(x=one))
    self.assertEqual(nothing.other, 'None in one run only')
    self.assertEmpty(repeatability.varying(run(x=None), run(x=None)))

  def test_two_tensors_of_one_name_are_told_apart(self):
    key = TensorKey('output', 'x', 'training')
    same, other = (key, np.zeros(1)), (key, np.ones(1))
    (found,) = repeatability.varying(numbered([same, same]), numbered([same, other]))
    self.assertEqual((found.key.name, found.greatest_absolute), ('x (2)', 1.0))

  def test_integers_and_what_has_no_difference(self):
    (found,) = repeatability.varying(run(x=np.array([7, 8])), run(x=np.array([7, 4])))
    self.assertEqual((found.mismatched, found.greatest_absolute), (1, 4.0))
    (found,) = repeatability.varying(run(x=np.array([np.inf])), run(x=np.array([1.0])))
    self.assertNotEqual(found.greatest_absolute, found.greatest_absolute)


class RememberedTest(absltest.TestCase):
  def test_large_runs_are_digests(self):
    first = run(x=np.zeros(4), y=np.ones(4))
    second = run(x=np.zeros(4), y=np.full(4, 2.0))
    whole, large = repeatability.Remembered(first, 8), repeatability.Remembered(first, 7)
    self.assertTrue(whole.is_whole)
    self.assertFalse(large.is_whole)
    self.assertEqual([v.mismatched for v in whole.varying(second)], [4])
    found = [(v.key.name, v.other) for v in large.varying(second)]
    self.assertEqual(found, [('y', 'different bits')])
    self.assertEmpty(large.varying(first))


class FirstVariationTest(absltest.TestCase):
  def test_same_inputs_other_outputs(self):
    first = [op('MatMul', ['a'], [1.0]), op('Softmax', ['b'], [1.0, 2.0]), op('Sum', ['c'], [3.0])]
    second = [op('MatMul', ['a'], [1.0]), op('Softmax', ['b'], [1.0, 2.5]), op('Sum', ['d'], [4.0])]
    found = repeatability.first_variation(first, second)
    self.assertEqual((found.op_type, found.variation.mismatched), ('Softmax', 1))
    self.assertIn('1 of 2 (50.0 %) elements of what it gives differ, by up to 0.5', str(found))

  def test_what_only_passes_a_variation_on_is_not_it(self):
    first, second = [op('Sum', ['c'], [3.0])], [op('Sum', ['d'], [4.0])]
    self.assertIsNone(repeatability.first_variation(first, second))

  def test_a_value_of_python(self):
    first = [op('AddV2', ['a'], [3.0], produced=False)]
    second = [op('AddV2', ['b'], [4.0], produced=False)]
    found = repeatability.first_variation(first, second)
    self.assertIn('its input 0 differs, and no operation computed it: Python did', found.why)

  def test_another_order_of_operations(self):
    first = [op('Sin', ['a'], [1.0]), op('Cos', ['a'], [2.0])]
    found = repeatability.first_variation(first, first[::-1])
    self.assertIn('in the other run Cos is in its place', found.why)
    found = repeatability.first_variation(first, first[:1])
    self.assertEqual((found.op_type, found.why), ('Cos', 'only one of the two runs has it'))

  def test_nothing_varies(self):
    ops = [op('Sin', ['a'], [np.nan])]
    self.assertIsNone(repeatability.first_variation(ops, ops))


if __name__ == '__main__':
  absltest.main()
