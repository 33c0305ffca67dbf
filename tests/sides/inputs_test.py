"""Tests of tf2verify.sides.inputs; what is refused is in tests/bad_input_test.py."""

import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.errors import InputsError
from tf2verify.reference.inputs import normal_inputs, varied_inputs
from tf2verify.sides.inputs import checked_inputs


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
