"""Tests of tf2verify.diagnosis.divergence.tensors.variable_views."""

from absl.testing import absltest

from tf2verify.diagnosis.divergence.tensors.variable_views import variable_views
from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import INPUT, TARGET, VARIABLE, OpGraph, OpRecord

_SHAPE = (3, 5)
_LAYOUTS = {'kernel': Relayout(_SHAPE, (1, 0), (5, 3))}


def _op(name, op_type, inputs=(), shape=_SHAPE):
  keys = tuple((n, 0) for n in inputs)
  return OpRecord(name, op_type, keys, outputs=(('float32', shape),), tensors=(f'{name}:0',))


class VariableViewsTest(absltest.TestCase):
  def test_what_belongs_to_a_variable(self):
    ops = (
      _op('kernel', VARIABLE),
      _op('first moment of kernel', VARIABLE),
      _op('other', VARIABLE),
      _op('x', INPUT, shape=(4, 3)),
      _op('forward', 'MatMul', (3, 0)),  # of the kernel's shape by chance
      _op('gradient', 'MatMul', (3, 4)),
      _op('scaled', 'Mul', (5, 1)),
      _op('norm', 'Sum', (6,), ()),
      _op('moved', 'Sub', (0, 6)),
      _op('of both', 'Add', (8, 2)),
      _op('gradient kernel', TARGET, (5,)),
      _op('update of kernel', TARGET, (8,)),
      _op('update of other', TARGET, (2,)),
      _op('loss (total)', TARGET, (7,)),
    )
    views = variable_views(OpGraph('tf1', ops), _LAYOUTS)
    found = {ops[n].name for n, _ in views}
    self.assertEqual(
      found,
      {
        *('kernel', 'first moment of kernel', 'gradient', 'scaled', 'moved', 'of both'),
        *('gradient kernel', 'update of kernel'),
      },
    )
    self.assertEqual(set(map(id, views.values())), {id(_LAYOUTS['kernel'])})

  def test_without_layouts(self):
    self.assertEqual(variable_views(OpGraph('tf1', (_op('kernel', VARIABLE),)), {}), {})


if __name__ == '__main__':
  absltest.main()
