"""Tests of tf2verify.relation.derivation.flattened_rows, on graphs made by hand."""

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import both
from tf2verify.records.op_graph import VARIABLE
from tf2verify.relation.derivation.flattened_rows import order_of_rows, row_entries
from tf2verify.relation.operations.variable_uses import VariableUses

_SIZES = (2, 5, 4, 3)
_OUTPUTS = 6


def floats(*shape):
  return np.ones(shape, np.float32)


def transposed(g, x, shape, order):
  if order is None:
    return x, shape
  shape = tuple(shape[axis] for axis in order)
  return g.op('Transpose', 'Transpose', x, g.constant(np.array(order)), shape=shape), shape


def dense(g, x, rows, flipped=False):
  kernel = g.variable('w', floats(_OUTPUTS, rows) if flipped else floats(rows, _OUTPUTS))
  made = g.op('MatMul', 'MatMul', x, kernel, shape=(2, _OUTPUTS), transpose_b=flipped)
  g.target('output y', made)


def flattened(order=None, sizes=_SIZES, flipped=False, between='Relu', rest=True):
  """Returns what builds a product behind a tensor that is transposed and flattened."""

  def build(g):
    x, shape = transposed(g, g.input(floats(*sizes)), sizes, order)
    x = g.op(between, between, x, shape=shape)
    rows = int(np.prod(shape[1:])) if rest else shape[-1]
    x = g.op('Reshape', 'Reshape', x, shape=(int(np.prod(shape)) // rows, rows))
    dense(g, g.op('Relu', 'Relu_1', x, shape=(2, rows)), rows, flipped)

  return build


def convolved(data_format):
  """Returns what builds a convolution and a product behind what it yields, flattened."""

  def build(g):
    n, h, w, c = _SIZES
    shape = (n, c, h, w) if data_format == 'NCHW' else _SIZES
    kernel = g.variable('k', floats(1, 1, c, c))
    x = g.op('Conv2D', 'c', g.input(floats(*shape)), kernel, shape=shape, data_format=data_format)
    dense(g, g.op('Reshape', 'Reshape', x, shape=(n, h * w * c)), h * w * c)

  return build


def entries(build, other):
  graphs = [one.graph() for one in both(build, other)]
  sides = [
    VariableUses(g, {op.name: op.outputs[0][1] for op in g.ops if op.op_type == VARIABLE})
    for g in graphs
  ]
  return row_entries(sides, 'w', 'w')


def layouts(build, other):
  return [entry.layout for entry in entries(build, other)]


class FlattenedRowsTest(parameterized.TestCase):
  @parameterized.parameters(
    ((0, 3, 1, 2), None, '(c a b) o -> (a b c) o'),
    (None, (0, 2, 1, 3), '(a b c) o -> (b a c) o'),
    ((0, 2, 1, 3), (0, 3, 1, 2), '(b a c) o -> (c a b) o'),
  )
  def test_orders(self, one, other, layout):
    (entry,) = entries(flattened(one), flattened(other))
    self.assertEqual(entry.layout, layout)
    self.assertEqual(dict(entry.sizes), {'a': 5, 'b': 4, 'c': 3})
    kernel = np.arange(60 * _OUTPUTS, dtype=np.float32).reshape(60, _OUTPUTS)
    (moved,) = entry.to_tf2([kernel])
    x = np.random.RandomState(0).normal(size=_SIZES)
    flat = [x.transpose(order or (0, 1, 2, 3)).reshape(2, -1) for order in (one, other)]
    np.testing.assert_allclose(flat[0] @ kernel, flat[1] @ moved, rtol=1e-5)

  def test_kernels_that_are_kept_transposed(self):
    found = layouts(flattened((0, 3, 1, 2)), flattened(flipped=True))
    self.assertEqual(found, ['(c a b) o -> o (a b c)'])

  def test_axes_of_one_element_are_left_out(self):
    sizes = (2, 1, 4, 3)
    found = layouts(flattened((0, 3, 1, 2), sizes), flattened(sizes=sizes))
    self.assertEqual(found, ['(b a) o -> (a b) o'])

  def test_data_formats(self):
    found = layouts(convolved('NCHW'), convolved('NHWC'))
    self.assertEqual(found, ['(c h w) o -> (h w c) o'])

  def test_sizes_of_axes(self):
    """No transposition is seen, and the sizes allow one order, or two."""
    one, other = flattened(sizes=(2, 3, 5, 4)), flattened()
    self.assertEqual(layouts(one, other), ['(a b c) o -> (b c a) o'])
    one, other = flattened(sizes=(2, 3, 5, 5)), flattened(sizes=(2, 5, 5, 3))
    expected = ['(a b c) o -> (b c a) o', '(a b c) o -> (c b a) o']
    self.assertEqual(layouts(one, other), expected)

  @parameterized.parameters(
    (flattened(), flattened()),
    (flattened((0, 3, 1, 2)), flattened((0, 3, 1, 2))),
    (convolved('NHWC'), convolved('NHWC')),
    # Another number of rows; examples that are moved as well; a product in between.
    (flattened((0, 3, 1, 2)), flattened(sizes=(2, 5, 4, 4))),
    (flattened((3, 0, 1, 2)), flattened()),
    (flattened((0, 3, 1, 2), rest=False), flattened(rest=False)),
    (flattened((0, 3, 1, 2), between='MatMul'), flattened(sizes=(2, 60))),
  )
  def test_nothing_is_found(self, one, other):
    self.assertEqual(layouts(one, other), [])

  def test_the_order_of_rows(self):
    (entry,) = entries(flattened((0, 3, 1, 2)), flattened(flipped=True))
    self.assertEqual(order_of_rows(entry), ('(c a b)', '(a b c)'))


if __name__ == '__main__':
  absltest.main()
