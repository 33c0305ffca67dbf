"""Tests of tf2verify.sides.tf2.traces.possible_faults."""

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import HandMade
from tf2verify.records.planted_fault import FaultKind
from tf2verify.sides.tf2.traces.possible_faults import possible_faults

_X = np.ones((2, 3), np.float32)
_IMAGE = np.ones((1, 8, 8, 3), np.float32)
_KERNEL = np.ones((3, 3, 3, 3), np.float32)


def _found(build, prefix='', kind=None):
  graph = HandMade('tf2')
  build(graph)
  found = [possible.fault for possible in possible_faults(graph.graph(), prefix)]
  return [str(fault) for fault in found if kind in (None, fault.kind)]


def _conv(size=3, **attributes):
  settled = {'padding': 'SAME', 'strides': (1, 1, 1, 1), 'dilations': (1, 1, 1, 1)}

  def build(g):
    image = g.input(_IMAGE)
    kernel = g.variable('w', np.ones((size, size, 3, 3), np.float32))
    shape = (1, 8, 8, 3)
    given = {**settled, 'data_format': 'NHWC', **attributes}
    g.target('output', g.op('Conv2D', 'conv', image, kernel, shape=shape, **given))

  return build


def _one(op_type, *values, shape=(2, 3), **attributes):
  def build(g):
    inputs = [g.input(_X, 'x'), *(g.constant(value, f'c{n}') for n, value in enumerate(values))]
    g.target('output', g.op(op_type, f'net/{op_type}', *inputs, shape=shape, **attributes))

  return build


class PossibleFaultsTest(parameterized.TestCase):
  def test_attributes(self):
    for build, expected in (
      (_one('LeakyRelu', alpha=0.2), 'alpha 0.2 -> 0.3'),
      (_one('FusedBatchNormV3', epsilon=1e-3, is_training=False), 'epsilon 0.001 -> 1e-05'),
      (_one('FusedBatchNormV3', epsilon=1e-3, is_training=False), 'is_training False -> True'),
      (_one('ResizeBilinear', align_corners=False), 'align_corners False -> True'),
      (_one('Cumsum', exclusive=False), 'exclusive False -> True'),
      (_conv(), 'padding SAME -> VALID'),
      (_conv(), 'dilations (1, 1, 1, 1) -> (1, 2, 2, 1)'),
    ):
      with self.subTest(expected):
        found = _found(build, kind=FaultKind.ATTRIBUTE)
        self.assertTrue(any(text.endswith(expected) for text in found), found)

  def test_padding_that_pads_nothing_is_none(self):
    self.assertEqual(_found(_conv(size=1), kind=FaultKind.ATTRIBUTE), [])

  def test_the_two_decays_of_a_batch_norm_that_keeps_its_averages(self):
    build = _one('FusedBatchNormV3', epsilon=1e-3, exponential_avg_factor=0.003)
    self.assertIn(
      'net/FusedBatchNormV3 (FusedBatchNormV3): exponential_avg_factor 0.003 -> 0.03',
      _found(build, kind=FaultKind.ATTRIBUTE),
    )

  def test_swapped_inputs(self):
    self.assertEqual(
      _found(_one('Sub', _X), kind=FaultKind.SWAPPED_INPUTS),
      ['net/Sub (Sub): inputs 0 and 1 swapped'],
    )
    self.assertEqual(_found(_one('AddV2', _X), kind=FaultKind.SWAPPED_INPUTS), [])

  def test_inputs_that_are_the_same_are_not_swapped(self):
    def twice(g):
      x = g.input(_X)
      g.target('output', g.op('Sub', 'Sub', x, x))

    def one_part(g):
      g.target('output', g.op('ConcatV2', 'concat', g.input(_X), g.constant(1)))

    self.assertEqual(_found(twice, kind=FaultKind.SWAPPED_INPUTS), [])
    self.assertEqual(_found(one_part, kind=FaultKind.SWAPPED_INPUTS), [])

  def test_matrices_are_swapped_where_shapes_allow(self):
    def build(size):
      def made(g):
        one, other = (g.input(np.ones((2, size), np.float32), name) for name in 'xy')
        flags = {'transpose_a': False, 'transpose_b': False}
        g.target('output', g.op('MatMul', 'MatMul', one, other, **flags))

      return made

    self.assertLen(_found(build(2)), 3)
    self.assertEqual(_found(build(3)), [])

  def test_constants(self):
    for value, reader, expected in (
      (np.float32(0.5), 'Mul', '0.5 -> 0.55'),
      (np.zeros(2, np.float32), 'Mul', '[0. 0.] -> [0.1 0.1]'),
      (np.array([[0, 0], [1, 1]]), 'Pad', '[[0 0] [1 1]] -> [[0 0] [0 2]]'),
      (np.array([[0, 0], [0, 1]]), 'Pad', '[[0 0] [0 1]] -> [[0 0] [1 0]]'),
    ):
      with self.subTest(expected):
        found = _found(_one(reader, value), kind=FaultKind.CONSTANT)
        self.assertEqual(found, [f'net/{reader} ({reader}): constant c0 {expected}'])

  def test_axes_and_large_constants_stay(self):
    self.assertEqual(_found(_one('Mean', np.array([1])), kind=FaultKind.CONSTANT), [])
    large = np.ones(100, np.float32)
    self.assertEqual(_found(_one('Mul', large), kind=FaultKind.CONSTANT), [])

  def test_left_out(self):
    for build, expected in (
      (_one('Relu'), ['net/Relu (Relu): left out']),
      (_one('Relu', shape=(2, 1)), []),
      (_one('AddV2', np.float32(1)), ['net/AddV2 (AddV2): left out']),
      (_one('AddV2', np.float32(0)), []),
      (_one('Mul', np.float32(1)), []),
      (_one('Reshape', np.array([2, 3])), []),
    ):
      with self.subTest(str(expected)):
        self.assertEqual(_found(build, kind=FaultKind.BYPASS), expected)

  def test_variables(self):
    def build(g):
      net = g.input(_X)
      for name in ('a', 'b'):
        w = g.variable(name, np.ones((3, 3), np.float32))
        net = g.op('MatMul', f'net/{name}', net, w)
        g.target(f'loss {name}', g.op('L2Loss', f'net/loss_{name}', w))
      g.target('output', net)

    self.assertEqual(
      _found(build, prefix='net/'),
      [
        'a (MatMul): variable a transposed',
        'b (MatMul): variable b transposed',
        'a (MatMul): b read instead of a',
      ],
    )

  def test_loops(self):
    body = HandMade('')
    count = body.input(np.int32(0), 'argument 0')
    net = body.input(_X, 'argument 1')
    body.target('result 0', body.op('AddV2', 'count', count, body.constant(np.int32(1)), shape=()))
    step = body.op('Sub', 'net/step', net, body.constant(np.float32(2)), shape=(2, 3))
    body.target('result 1', step)
    functions = (('body', body.graph()), ('cond', body.graph()))

    def build(g):
      inputs = g.input(np.int32(0), 'n'), g.input(_X, 'x')
      g.target('output', g.op('While', 'net/while', *inputs, functions=functions))

    found = _found(build, prefix='net/')
    self.assertLen(found, 3)  # of the step alone: inputs, constant, left out
    for text in found:
      self.assertStartsWith(text, 'while/body/step (Sub): ')


if __name__ == '__main__':
  absltest.main()
