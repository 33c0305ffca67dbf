"""Tests of tf2verify.diagnosis.places.source_records."""

import dataclasses
import math
from unittest import mock

import ml_dtypes
import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.diagnosis.places.source_records import kept_otherwise, statistics
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import TARGET, VARIABLE, OpGraph, OpRecord

_X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)


class StatisticsTest(absltest.TestCase):
  def test_finite_elements(self):
    found = statistics(np.array([[0.0, 2.0], [-1.0, 0.0]], np.float32))
    self.assertEqual((found.shape, found.dtype), ((2, 2), 'float32'))
    self.assertEqual((found.minimum, found.maximum, found.mean), (-1.0, 2.0, 0.25))
    self.assertEqual((found.zeros, found.non_finite), (0.5, 0))

  def test_elements_that_are_not_finite_count_apart(self):
    found = statistics(np.array([np.nan, np.inf, 3.0]))
    self.assertEqual((found.minimum, found.maximum, found.non_finite), (3.0, 3.0, 2))

  def test_nothing_finite_and_nothing_at_all(self):
    for array in (np.array([np.nan]), np.zeros((0, 3))):
      found = statistics(array)
      self.assertTrue(math.isnan(found.minimum) and math.isnan(found.mean))

  def test_booleans_integers_and_bfloat16(self):

    self.assertEqual(statistics(np.array([True, False])).mean, 0.5)
    self.assertEqual(statistics(np.array([1, 3])).maximum, 3.0)
    self.assertEqual(statistics(np.array([1, 3], ml_dtypes.bfloat16)).mean, 2.0)
    self.assertEqual(statistics(np.float32(2.0).reshape(())).shape, ())

  def test_what_holds_no_numbers(self):
    for array in (np.array(['a']), np.array([b'a'], object), np.array([1j])):
      self.assertIsNone(statistics(array))


class KeptOtherwiseTest(absltest.TestCase):
  def _sides(self, kept):
    names = [f'second moment of {name}' for name in ('bias', 'kernel')]
    outputs = (('float32', (3,)),)
    ops = tuple(
      OpRecord(name, VARIABLE, (), outputs=outputs, tensors=(f'{name}:0',)) for name in names
    )
    values = dict(zip((op.tensors[0] for op in ops), kept, strict=True))

    def fetch(tensors):
      return [np.float32([values[name]] * 3) for name in tensors]

    return mock.Mock(op_graph=OpGraph('tf1', ops), layouts={}, fetch=fetch)

  def _found(self, one, other):
    sides = [self._sides(kept) for kept in (one, other)]
    pairing = mock.Mock(pairs=lambda: [(0, 0), (1, 1)])
    pairing.tf1, pairing.tf2 = (side.op_graph for side in sides)
    differs = [f'update of {op.name}' for op in pairing.tf1.ops]
    return [one.tf1_op for one in kept_otherwise(pairing, *sides, 1e-4, differs)]

  def test_squares_of_rounding(self):
    self.assertEmpty(self._found((4e-21, 1e-5), (3e-20, 1e-5)))

  def test_others(self):
    self.assertEqual(self._found((4e-9, 1e-5), (3e-8, 1e-5)), ['second moment of bias'])
    self.assertEqual(self._found((0.0, 0.0), (3e-20, 0.0)), ['second moment of bias'])


class ShownLineTest(absltest.TestCase):
  def _source(self, tf1_chain, tf2_chain):
    def build(g, chain):
      net = g.chain(g.input(_X), *chain)
      g.target('output', g.op('Square', 'end', net))

    one, two = both(lambda g: build(g, tf1_chain), lambda g: build(g, tf2_chain))
    differs = Difference('output', '', Aspect.PRESENCE, '', '', 'run')
    [source] = diagnose('zero_randomness', 'run', (differs,), (), (one.run(), two.run())).sources
    return source

  def test_first_of_a_few(self):
    source = self._source(['Exp a', 'Exp b'], ['Relu c', 'Relu d'])
    self.assertEqual((source.tf1_first, source.tf2_first), ('a', 'c'))

  def test_last_of_many(self):
    source = self._source(['Exp a', 'Exp b'], ['Relu c', *(f'Sqrt r{n}' for n in range(20))])
    self.assertEqual((source.tf1_first, source.tf2_first), ('a', 'r19'))

  def _lines(self, tf1_chain, tf2_chain):
    """Returns the further lines of the port, each of whose operations has a line of its own."""

    def build(g, chain):
      net = g.chain(g.op('Exp', 'start', g.input(_X)), *chain)
      g.target('output', g.op('Square', 'end', net))
      g.ops[:] = [
        op
        if op.is_leaf or op.op_type == TARGET
        else dataclasses.replace(op, source=SourceLine('port.py', number, 'call', op.name))
        for number, op in enumerate(g.ops)
      ]

    one, two = both(lambda g: build(g, tf1_chain), lambda g: build(g, tf2_chain))
    differs = Difference('output', '', Aspect.PRESENCE, '', '', 'run')
    [source] = diagnose('zero_randomness', 'run', (differs,), (), (one.run(), two.run())).sources
    return source.tf2_source.code, [line.code for line in source.tf2_lines]

  def test_lines_of_a_place_are_those_of_its_operations(self):
    self.assertEqual(self._lines(['Exp n'], ['Relu a', 'Relu b']), ('a', ['b', 'end']))

  def test_what_lacks_operations_is_between_two_lines(self):
    self.assertEqual(self._lines(['Exp n'], []), ('end', ['start']))

  def test_first_and_last_of_many_lines(self):
    shown, others = self._lines(['Exp n'], [f'Sqrt r{number}' for number in range(12)])
    self.assertEqual((shown, others), ('r0', ['r1', 'r2', 'r3', 'r10', 'r11', 'end']))

  def test_random_one_of_one_side(self):
    def build(g, drawn=True):
      net = g.input(_X)
      if drawn:
        net = g.op('Mul', 'scaled', net, g.constant(np.float32(2)))
        mask = g.op('RandomUniform', 'drawn', g.constant(1.0), compute=lambda _: _X)
        net = g.op('AddV2', 'masked', net, mask)
      g.target('output', g.op('Square', 'end', net))

    one, two = both(build, lambda g: build(g, False))
    differs = Difference('output', '', Aspect.PRESENCE, '', '', 'run')
    [source] = diagnose('zero_randomness', 'run', (differs,), (), (one.run(), two.run())).sources
    self.assertEqual((source.tf1_first, source.tf2_first), ('drawn', ''))


if __name__ == '__main__':
  absltest.main()
