"""Tests of tf2verify.diagnosis.patterns.operations.lstm_cells and hard_sigmoids."""

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import HandMade
from tf2verify.diagnosis.patterns.operations.hard_sigmoids import (
  hard_sigmoid_slopes,
  plain_sigmoids,
)
from tf2verify.diagnosis.patterns.operations.lstm_cells import LstmCell, lstm_cells


def cell(side, order, forget_bias=1.0, sigmoid='Sigmoid', forget='f'):
  """Returns the graph of a cell whose blocks stand in an order."""
  graph = HandMade(side)
  memory, net = graph.variable('memory', np.ones(3)), graph.input(np.ones(12))
  split = graph.op('Split', 'split', net, outputs=4)
  gates = {name: (split[0], number) for number, name in enumerate(order)}
  if forget_bias:
    gates['f'] = graph.op('AddV2', 'biased', gates['f'], graph.constant(forget_bias))
  i, f, o = (gate(graph, name, gates[name], sigmoid) for name in 'ifo')
  candidate = graph.op('Tanh', 'candidate', gates['c'])
  kept = graph.op('Mul', 'kept', f if forget == 'f' else o, memory)
  memory = graph.op('AddV2', 'memory', kept, graph.op('Mul', 'new', i, candidate))
  graph.target('output', graph.op('Mul', 'hidden', o, graph.op('Tanh', 'shown', memory)))
  return graph.graph()


def gate(graph, name, key, kind):
  if kind == 'Sigmoid':
    return graph.op('Sigmoid', f'{name}/Sigmoid', key)
  if kind == 'relu6':
    shifted = graph.op('AddV2', f'{name}/Add', key, graph.constant(3.0))
    clipped = graph.op('Relu6', f'{name}/Relu6', shifted)
    return graph.op('RealDiv', f'{name}/RealDiv', clipped, graph.constant(6.0))
  scaled = graph.op('Mul', f'{name}/Mul', key, graph.constant(float(kind)))
  shifted = graph.op('AddV2', f'{name}/Add', scaled, graph.constant(0.5))
  low = graph.op('Minimum', f'{name}/Minimum', shifted, graph.constant(1.0))
  return graph.op('Maximum', f'{name}/Maximum', low, graph.constant(0.0))


class LstmCellsTest(parameterized.TestCase):
  @parameterized.product(order=('icfo', 'ifco', 'fico'), forget_bias=(0.0, 1.0))
  def test_order_and_forget_bias(self, order, forget_bias):
    found = lstm_cells(cell('tf1', order, forget_bias))
    self.assertEqual(found, {LstmCell(order, forget_bias)})

  def test_offset_of_a_hard_sigmoid_is_no_forget_bias(self):
    found = lstm_cells(cell('tf1', 'ifco', 1.0, '0.2'))
    self.assertEqual(found, {LstmCell('ifco', 1.0)})

  def test_in_a_loop(self):
    graph = HandMade('tf1')
    body = (('body', cell('tf1', 'icfo')),)
    graph.target('output', graph.op('While', 'while', graph.input(1.0), functions=body))
    self.assertEqual(lstm_cells(graph.graph()), {LstmCell('icfo', 1.0)})

  def test_gate_used_twice_is_no_cell(self):
    self.assertEmpty(lstm_cells(cell('tf1', 'icfo', forget='o')))

  def test_sum_of_products_is_no_cell(self):
    graph = HandMade('tf1')
    one, other = graph.variable('one', np.ones(3)), graph.variable('other', np.ones(3))
    products = [graph.op('Mul', f'mul_{n}', one, other) for n in range(2)]
    graph.target('output', graph.op('AddV2', 'add', *products))
    self.assertEmpty(lstm_cells(graph.graph()))


class HardSigmoidTest(parameterized.TestCase):
  @parameterized.parameters(('0.2', 0.2), ('0.16666667', 1 / 6), ('relu6', 1 / 6))
  def test_slopes(self, kind, slope):
    graph = cell('tf1', 'ifco', sigmoid=kind)
    self.assertEqual((hard_sigmoid_slopes(graph), plain_sigmoids(graph)), ({slope}, 0))

  def test_sigmoid_has_none(self):
    graph = cell('tf1', 'ifco')
    self.assertEqual((hard_sigmoid_slopes(graph), plain_sigmoids(graph)), (set(), 3))

  def test_other_clipped_line_is_none(self):
    self.assertEmpty(hard_sigmoid_slopes(cell('tf1', 'ifco', sigmoid='0.25')))


if __name__ == '__main__':
  absltest.main()
