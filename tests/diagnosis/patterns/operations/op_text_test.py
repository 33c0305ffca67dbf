"""Tests of tf2verify.diagnosis.patterns.operations.op_text."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.patterns.operations.op_text import op_text, value_text

_X = np.ones((2, 3), np.float32)


class TextTest(absltest.TestCase):
  def test_operation_with_what_is_special_about_it(self):
    g = HandMade('tf1')
    x = g.input(_X)
    position, _ = g.op('LeakyRelu', 'act', x, alpha=0.30000001192, T='float32')
    self.assertEqual(op_text(g.graph(), position), 'LeakyRelu(alpha=0.3)')
    position, _ = g.op('Mean', 'mean', x, g.constant([0, 1]), input_names=('input', 'axis'))
    self.assertEqual(op_text(g.graph(), position), 'Mean(axis=[0, 1])')
    position, _ = g.chain(x, 'Exp')
    self.assertEqual(op_text(g.graph(), position), 'Exp')

  def test_operation_without_names_of_its_inputs(self):
    g = HandMade('tf1')
    position, _ = g.op('Custom', 'c', g.input(_X), g.constant(3.0))
    g.ops[position] = g.ops[position].__class__('c', 'Custom', g.ops[position].inputs)
    self.assertEqual(op_text(g.graph(), position), 'Custom(3)')

  def test_a_slice_is_written_as_in_python(self):
    g = HandMade('tf1')
    x = g.input(_X)
    bounds = [g.constant(np.int32(value)) for value in ([0, 6], [0, 0], [1, 2])]
    position, _ = g.op('StridedSlice', 's', x, *bounds, begin_mask=1, end_mask=3)
    self.assertEqual(op_text(g.graph(), position), 'StridedSlice[:, 6::2]')
    bounds = [g.constant(np.int32(value)) for value in ([0, 0, 3], [0, 0, 4], [1, 1, 1])]
    position, _ = g.op(
      'StridedSlice', 't', x, *bounds, ellipsis_mask=1, new_axis_mask=2, shrink_axis_mask=4
    )
    self.assertEqual(op_text(g.graph(), position), 'StridedSlice[..., None, 3]')
    position, _ = g.op('StridedSlice', 'u', x, *bounds[:2], x)
    self.assertStartsWith(op_text(g.graph(), position), 'StridedSlice(')

  def test_values(self):
    self.assertEqual(value_text(np.float32(1e-3)), '0.001')
    self.assertEqual(value_text(np.array([1, 2])), '[1, 2]')
    self.assertEqual(value_text(np.zeros((2, 2), np.int32)), '[[0, 0], [0, 0]]')
    self.assertEqual(value_text(np.ones((2, 2), np.float32)), '1 everywhere')
    self.assertEqual(value_text(np.ones(2, np.float32)), '[1., 1.]')
    self.assertEqual(value_text(b'SAME'), 'SAME')
    self.assertEqual(value_text(0.1), '0.1')
    self.assertIn('...', value_text(np.arange(100)))


if __name__ == '__main__':
  absltest.main()
