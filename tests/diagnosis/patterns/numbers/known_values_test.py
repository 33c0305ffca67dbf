"""Tests of tf2verify.diagnosis.patterns.numbers.known_values."""

import numpy as np
from absl.testing import absltest

from tf2verify.diagnosis.patterns.numbers.known_values import (
  computed_number,
  known_value,
  same_everywhere,
)
from tf2verify.diagnosis.patterns.operations.op_text import op_text
from tf2verify.records.op_graph import CONSTANT, INPUT, OpGraph, OpRecord

_FLOAT, _INT = (('float32', ()),), (('int32', ()),)


def _constant(name, value):
  value = np.asarray(value)
  return OpRecord(name, CONSTANT, (), outputs=((value.dtype.name, value.shape),), constant=value)


class KnownValuesTest(absltest.TestCase):
  """`x * rsqrt(cast(shape[-1]))`, of a known shape, and what is read from outside."""

  graph = OpGraph(
    'tf1',
    (
      _constant('shape', np.int32([2, 5, 16])),
      _constant('last', np.int32([-1])),
      OpRecord(
        'size',
        'StridedSlice',
        ((0, 0), (1, 0)),
        attributes=(('shrink_axis_mask', 1),),
        outputs=_INT,
      ),
      OpRecord('cast', 'Cast', ((2, 0),), outputs=_FLOAT),
      OpRecord('root', 'Rsqrt', ((3, 0),), outputs=_FLOAT),
      OpRecord('x', INPUT, (), outputs=_FLOAT),
      OpRecord('scaled', 'Mul', ((5, 0), (4, 0)), ('x', 'y'), outputs=_FLOAT),
      OpRecord('drawn', 'RandomUniform', ((0, 0),), outputs=_FLOAT),
    ),
  )

  def test_numbers_of_constants(self):
    self.assertEqual(known_value(self.graph, 2), 16)
    self.assertEqual(known_value(self.graph, 4), np.float32(0.25))
    self.assertEqual(computed_number(self.graph, 4).dtype, np.float32)

  def test_nothing_else_is_known(self):
    for position in (5, 6, 7):
      self.assertIsNone(known_value(self.graph, position))
    self.assertIsNone(computed_number(self.graph, 0), 'a constant itself')
    self.assertIsNone(computed_number(self.graph, 2), 'a size')

  def test_text_of_what_reads_it(self):
    self.assertEqual(op_text(self.graph, 6), 'Mul(y=0.25)')

  def test_number_of_all_elements(self):
    graph = OpGraph(
      'tf1',
      (
        OpRecord('shape', INPUT, (), outputs=_INT),
        _constant('minus', np.float32(-1e9)),
        OpRecord('filled', 'Fill', ((0, 0), (1, 0)), outputs=_FLOAT),
        OpRecord('tiled', 'Tile', ((2, 0), (0, 0)), outputs=_FLOAT),
        OpRecord('zeros', 'ZerosLike', ((3, 0),), outputs=_FLOAT),
        _constant('two', np.float32([1, 2])),
        OpRecord('cast', 'Cast', ((0, 0),), outputs=_FLOAT),
      ),
    )
    found = [same_everywhere(graph, position) for position in range(len(graph.ops))]
    below = np.float32(-1e9)
    self.assertEqual(found, [None, below, below, below, 0.0, None, None])

  def test_the_order_of_axes_that_tf1_makes_for_a_softmax(self):
    graph = OpGraph(
      'tf1',
      (
        *(_constant(name, np.int32(value)) for name, value in zip('abc', (0, 2, 1), strict=True)),
        OpRecord('range', 'Range', ((0, 0), (1, 0), (2, 0)), outputs=(('int32', (2,)),)),
        OpRecord('last', 'Pack', ((1, 0),), attributes=(('axis', 0),), outputs=(('int32', (1,)),)),
        OpRecord('perm', 'ConcatV2', ((3, 0), (4, 0), (0, 0)), outputs=(('int32', (3,)),)),
        OpRecord('ones', 'Fill', ((5, 0), (2, 0)), outputs=(('int32', (0, 1, 2)),)),
        OpRecord('long', 'Range', ((0, 0), (6, 0), (2, 0)), outputs=(('int32', (9,)),)),
        _constant('nine', np.int32(9)),
        OpRecord('many', 'Range', ((0, 0), (8, 0), (2, 0)), outputs=(('int32', (9,)),)),
      ),
    )
    np.testing.assert_array_equal(known_value(graph, 5), [0, 1, 2])
    self.assertEqual(known_value(graph, 6).shape, (0, 1, 2))
    self.assertIsNone(known_value(graph, 9))  # too long to be read


if __name__ == '__main__':
  absltest.main()
