import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.records.observation import VariableRecord
from tf2verify.relation.layouts.variable_layouts import Layouts, layout_of


def record(shape, dtype='float32', name='bias'):
  return VariableRecord(name, shape, dtype, trainable=True, trainable_flag=True)


class LayoutOfTest(parameterized.TestCase):
  @parameterized.parameters(
    ((1, 6), (6,)),
    ((6,), (1, 6)),
    ((7, 1), (7,)),
    ((1, 1, 8, 4), (8, 4)),
    ((), (1,)),
    ((1, 1), (1,)),
    ((3, 1, 2), (3, 2, 1)),
  )
  def test_axes_of_length_one_are_no_difference(self, tf1, tf2):
    layout = layout_of(record(tf1), record(tf2, name='d/bias'))
    value = np.arange(np.prod(tf1), dtype=np.float32).reshape(tf1)
    self.assertEqual(layout.to_tf2(value).shape, tf2)
    np.testing.assert_array_equal(layout.to_tf1(layout.to_tf2(value)), value)

  @parameterized.parameters(
    ((8, 4), (4, 8)),
    ((2, 3), (6,)),
    ((2, 2), (4,)),
    ((1, 6), (1, 6)),
    ((None, 6), (6,)),
    ((None,), (1, None)),
    ((6,), (7,)),
  )
  def test_other_shapes_have_no_layout(self, tf1, tf2):
    self.assertIsNone(layout_of(record(tf1), record(tf2)))

  def test_another_dtype_has_none(self):
    self.assertIsNone(layout_of(record((1, 6)), record((6,), 'float64')))


class LayoutsTest(absltest.TestCase):
  def test_what_is_not_known_stays_as_it_is(self):
    layouts = Layouts([layout_of(record((1, 6)), record((6,), name='d/bias'))])
    value = np.zeros(6, np.float32)
    self.assertEqual(layouts.to_tf1('d/bias', value).shape, (1, 6))
    self.assertIs(layouts.to_tf1('d/kernel', value), value)
    self.assertIs(layouts.to_tf2('d/kernel', value), value)
    self.assertEqual(layouts.shape_of('d/bias', (6,)), (1, 6))
    self.assertEqual(layouts.shape_of('d/kernel', (6,)), (6,))

  def test_a_slot_of_another_shape_stays_as_it_is(self):
    layouts = Layouts([layout_of(record((1, 6)), record((6,), name='d/bias'))])
    self.assertEqual(layouts.to_tf1('d/bias', np.zeros(())).shape, ())


if __name__ == '__main__':
  absltest.main()
