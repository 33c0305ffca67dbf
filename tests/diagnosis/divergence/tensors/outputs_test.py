"""Tests of tf2verify.diagnosis.divergence.tensors.outputs."""

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.tensors.outputs import (
  comparable_outputs,
  is_opaque,
  output_bytes,
  read_outputs,
  written,
  written_variable,
)
from tf2verify.records.op_graph import TARGET, OpRecord

_X = np.ones((2, 3), np.float32)


def _op(op_type='Op', dtypes=('float32',)):
  outputs = tuple((dtype, (2, 3)) for dtype in dtypes)
  return OpRecord('op', op_type, (), outputs=outputs, tensors=tuple(f'op:{d}' for d in dtypes))


class ComparableOutputsTest(absltest.TestCase):
  def test_outputs_of_both(self):
    pair = _op(dtypes=('float32', 'int32')), _op(dtypes=('float32',))
    self.assertEqual(list(comparable_outputs(*pair)), [0])

  def test_outputs_that_cannot_be_fetched(self):
    pair = _op(dtypes=('variant', 'float32')), _op(dtypes=('float32', 'float32'))
    self.assertEqual(list(comparable_outputs(*pair)), [1])
    self.assertTrue(is_opaque('resource'))
    self.assertFalse(is_opaque('string'))

  def test_gradient_that_is_sparse_on_one_side(self):
    sparse, dense = _op(TARGET, ('float32', 'int64')), _op(TARGET)
    self.assertEqual(list(comparable_outputs(sparse, dense)), [])
    self.assertEqual(list(comparable_outputs(sparse, sparse)), [0, 1])


class ReadOutputsTest(absltest.TestCase):
  def test_only_readers_count(self):
    g = HandMade('tf1')
    x = g.input(_X)
    made = g.op('Two', 'two', x, outputs=2)
    reader, _ = g.op('Neg', 'neg', (made[0], 1))
    self.assertEqual(read_outputs(g.graph(), {reader}), {(made[0], 1)})
    self.assertEqual(read_outputs(g.graph(), set()), set())


class WrittenTest(parameterized.TestCase):
  @parameterized.parameters(
    ('AssignVariableOp', 2.0),
    ('Assign', 2.0),
    ('AssignSubVariableOp', 3.0),
    ('AssignAdd', 7.0),
    ('ScatterUpdate', 2.0),
  )
  def test_state_after_an_update(self, kind, after):
    op = OpRecord('update of v', TARGET, (), attributes=(('op', kind),))
    self.assertEqual(written(op, np.float32(5.0), np.float32(2.0)), after)

  def test_variable(self):
    for name in ('update of a/v', 'update of a/v (2)'):
      self.assertEqual(written_variable(OpRecord(name, TARGET, ())), 'a/v')


class BytesTest(absltest.TestCase):
  def test_bytes(self):
    self.assertEqual(output_bytes(('float32', (4, 8))), 128)
    self.assertEqual(output_bytes(('float64', (4, 8))), 256)
    self.assertEqual(output_bytes(('float32', ())), 4)
    for shape in (None, (None, 3)):
      self.assertGreater(output_bytes(('float32', shape)), 1000)


if __name__ == '__main__':
  absltest.main()
