"""Tests of tf2verify.diagnosis.patterns.operations.reads."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.divergence.tensors.regions import region_pair
from tf2verify.diagnosis.patterns.operations.reads import tensor_text, with_reads
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.relation.operations.op_pairs import Pairing

_UNMATCHED = GraphDifference(GraphAspect.EXTRA, 'NotEqual', 'NotEqual', '', '', 'NotEqual → …')


def _side(side, chosen, axis=1, also=''):
  """Two states are joined; the port may take one that a mask has chosen from others."""
  g = HandMade(side)
  x, old, lengths = (g.input([1.0], name) for name in ('x', 'old', 'lengths'))
  h, c = g.op('Tanh', 'h', x), g.op('Sigmoid', 'c', x)
  g.target('h', h)
  g.target('c', c)
  state = h
  if chosen:
    mask = g.chain(lengths, 'NotEqual', 'ExpandDims', 'Tile')
    value = h if chosen == 'of h' else c
    state = g.chain(g.op('SelectV2', 'chosen', mask, value, old), 'Identity')
  other = g.op('Neg', 'other', x) if also else x
  end = g.op(
    'ConcatV2', 'bridge', other, state, g.constant(axis), input_names=('first', 'second', 'axis')
  )
  g.target('output', end)
  return g.graph()


def _found(*arguments, **options):
  pairing = Pairing(_side('tf1', False), _side('tf2', *arguments, **options))
  (end,) = (n for n, op in enumerate(pairing.tf1.ops) if op.op_type == 'ConcatV2')
  pair = region_pair(pairing, end, pairing.tf2_of[end])
  return with_reads(pairing.tf1, pairing.tf2, pair, [], [_UNMATCHED])


class WithReadsTest(absltest.TestCase):
  def test_choice_is_named_and_not_its_mask(self):
    for axis in (1, np.int32(-1)):
      (known,) = _found(True, axis=axis)
      self.assertEqual((known.op, known.what), ('bridge', 'second'))
      self.assertEqual((known.tf1, known.tf2), ('h', 'chosen'))

  def test_same_reading_is_none(self):
    self.assertEqual(_found(False), [_UNMATCHED])

  def test_mask_that_tf1_lacks_is_no_other_choice(self):
    self.assertEqual(_found('of h'), [_UNMATCHED])

  def test_many_operations_come_after_what_they_lead_to(self):
    """TF1 divides by an input, the port by what it computes of one."""

    def side(name, computed):
      g = HandMade(name)
      x, sizes = g.input([1.0], 'x'), g.input([2.0], 'sizes')
      if computed:
        sizes = g.chain(sizes, *(f'Neg n{n}' for n in range(computed)))
      g.target('output', g.op('RealDiv', 'div', x, sizes))
      return g.graph()

    def found(computed):
      pairing = Pairing(side('tf1', 0), side('tf2', computed))
      (end,) = (n for n, op in enumerate(pairing.tf1.ops) if op.op_type == 'RealDiv')
      pair = region_pair(pairing, end, pairing.tf2_of[end])
      return with_reads(pairing.tf1, pairing.tf2, pair, [], [_UNMATCHED])

    self.assertEqual(found(3), [_UNMATCHED])
    read, others = found(8)
    self.assertEqual((read.op, read.what, read.tf1), ('div', 'y', 'the input sizes'))
    self.assertEqual((read.tf2, others), ('n7', _UNMATCHED))

  def test_none_where_another_input_differs_too(self):
    self.assertEqual(_found(True, also='other'), [_UNMATCHED])

  def test_a_second_update(self):
    """The port moves an average once more, from where tf1 leaves it."""

    def side(name, times):
      g = HandMade(name)
      average, batch = g.variable('mean', [1.0]), g.input([2.0], 'batch')
      for n in range(times):
        average = g.op('AddV2', f'add_{n}', average, g.op('Sub', f'sub_{n}', batch, average))
        if n == 0:
          g.target('first', average)
      g.target('update of mean', average)
      return g.graph()

    pairing = Pairing(side('tf1', 1), side('tf2', 2))
    (end,) = (n for n, op in enumerate(pairing.tf1.ops) if op.name == 'update of mean')
    pair = region_pair(pairing, end, pairing.tf2_of[end])
    (known,) = with_reads(pairing.tf1, pairing.tf2, pair, [], [_UNMATCHED])
    self.assertEqual(known.tf2, 'a second update of mean')

  def test_what_a_count_is_called(self):
    g = HandMade('tf2')
    steps, one = g.variable('steps', np.int64(3)), g.constant(np.int64(1), 'one')
    after = g.op('AddV2', 'Add', steps, one, compute=np.add)
    cast, other = (
      g.op('Cast', name, key, compute=np.float32) for name, key in (('a', after), ('b', steps))
    )
    sum_of_two = g.op('AddV2', 'c', cast, other)
    graph = g.graph()
    self.assertEqual(tensor_text(graph, after), 'Add (variable steps + 1)')
    self.assertEqual(tensor_text(graph, cast), 'a (Cast of variable steps + 1)')
    self.assertEqual(tensor_text(graph, other), 'b (Cast of variable steps)')
    self.assertEqual(tensor_text(graph, sum_of_two), 'c')


if __name__ == '__main__':
  absltest.main()
