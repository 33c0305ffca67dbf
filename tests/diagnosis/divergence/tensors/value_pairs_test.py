"""Tests of tf2verify.diagnosis.divergence.tensors.value_pairs."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.relation.operations.op_pairs import Pairing

_RANDOM = np.random.default_rng(0)
_X = _RANDOM.standard_normal((4, 3)).astype(np.float32)
_W = _RANDOM.standard_normal((3, 3)).astype(np.float32)


def _frequencies(g, other=False, fault=1.0):
  """`x / base ** p` against `x * base ** -p`: a pair by its name that is negated."""
  powers = g.op('Range', 'range', compute=lambda: np.arange(3, dtype=np.float32))
  base = g.constant(np.float32(7.0))
  exponent = g.op('RealDiv', 'truediv', powers, g.constant(np.float32(-3.0 if other else 3.0)))
  power = g.op('Pow', 'pow', base, exponent, compute=np.power)
  inverse = power if other else g.op('RealDiv', 'truediv_1', g.constant(np.float32(1.0)), power)
  scaled = g.op('Mul', 'scaled', g.input(_X), inverse)
  net = g.op('Mul', 'end', scaled, g.constant(np.float32(fault)))
  g.target('output', g.op('MatMul', 'MatMul', net, g.variable('w', _W)))


def _pairs(divergence):
  ops, others = divergence.pairing.tf1.ops, divergence.pairing.tf2.ops
  return {ops[n].name: others[m].name for n, m in divergence.pairing.pairs()}


def _divergence(build, other):
  one, two = (side.run() for side in both(build, other))
  return Divergence(one, two, ())


class ValuePairsTest(absltest.TestCase):
  def test_what_yields_the_same_is_a_pair_whatever_its_name(self):
    divergence = _divergence(_frequencies, lambda g: _frequencies(g, True, 2.0))
    pairs = _pairs(divergence)
    self.assertEqual(pairs['truediv_1'], 'pow')
    self.assertEqual(pairs['scaled'], 'scaled')
    self.assertEqual(pairs['end'], 'end')  # which differ: paired by their inputs

  def test_steps_of_a_formula_paired_differences_are_no_pairs(self):
    """Batch norm as `x * s + (b - m * s)`, and as `(x - m) * s + b`; what comes after differs."""

    def build(g, other=False):
      x, scale = g.input(_X), g.variable('scale', _W[0])
      mean, beta = g.input(_X[0], 'mean'), g.variable('beta', _W[1])
      if other:
        net = g.op('Mul', 'mul', g.op('Sub', 'sub', x, mean), scale)
        net = g.op('AddV2', 'add', net, beta)
      else:
        shift = g.op('Sub', 'shift', beta, g.op('Mul', 'shifted', mean, scale))
        net = g.op('AddV2', 'add', g.op('Mul', 'mul', x, scale), shift)
      factor = g.constant(np.float32(2.0 if other else 3.0))
      g.target('output', g.op('Mul', 'end', net, factor))

    pairs = _pairs(_divergence(build, lambda g: build(g, True)))
    self.assertEqual(pairs['add'], 'add')
    self.assertEqual(pairs['end'], 'end')
    self.assertNotIn('mul', pairs)

  def test_a_name_alone_makes_no_pair(self):
    """`Einsum` of either side is the first one made, and those are two different ones."""

    def build(g, early=False):
      x = g.input(_X)
      y = g.input(2 * _X, 'y')
      if early:
        y = g.op('Einsum', 'einsum', y, compute=lambda y: 3 * y)
        x = g.chain(x, 'Exp', 'Square')
      else:
        y = g.op('Mul', 'tripled', y, g.constant(np.float32(3.0)))
        x = g.op('Einsum', 'einsum', g.chain(x, 'Exp'), compute=np.square)
      g.target('output', g.op('Sub', 'sub', x, y))

    one, two = (side.run() for side in both(build, lambda g: build(g, True)))
    pairing = Pairing(one.op_graph, two.op_graph)
    names = {pairing.tf1.ops[n].name: pairing.tf2.ops[m].name for n, m in pairing.pairs()}
    self.assertNotIn('einsum', names)
    pairs = _pairs(_divergence(build, lambda g: build(g, True)))
    self.assertEqual((pairs['einsum'], pairs['tripled']), ('Square', 'einsum'))

  def test_transposed_and_reshaped_tensors_are_pairs(self):
    def build(g, heads_first=False):
      x = g.input(_X)
      if heads_first:
        net = g.op('Transpose', 'turn', x, compute=np.transpose)
        net = g.op('Exp', 'exp_of_heads', net)
        net = g.op('Transpose', 'turn_1', net, compute=np.transpose)
      else:
        net = g.op('Exp', 'exp_of_rows', x)
        net = g.op('Reshape', 'flat', net, compute=lambda x: x.reshape(1, 12))
        net = g.op('Reshape', 'rows', net, compute=lambda x: x.reshape(4, 3))
      g.target('output', g.op('MatMul', 'MatMul', net, g.variable('w', _W)))

    pairs = _pairs(_divergence(build, lambda g: build(g, True)))
    self.assertEqual(pairs['exp_of_rows'], 'exp_of_heads')

  def test_constants_of_one_value_are_no_pairs(self):
    def build(g, other=False):
      x = g.input(_X)
      ones = g.op('Fill', 'ones', compute=lambda: np.ones((4, 3), np.float32))
      both = (x, ones) if other else (ones, x)
      kind = ('Keep', 'Take') if other else ('Take', 'Keep')
      a = g.op(kind[0], kind[0], both[0], compute=lambda x: np.ones_like(x))
      b = g.op(kind[1], kind[1], both[1], compute=lambda x: np.ones_like(x))
      g.target('output', g.op('AddV2', 'sum', g.op('Mul', 'Mul', a, b), x))

    pairs = _pairs(_divergence(build, lambda g: build(g, True)))
    self.assertNotEqual(pairs.get('Take'), 'Keep')

  def test_a_number_is_a_pair_but_for_one_that_people_write(self):
    """A loss is a number of its own; 12 is how many elements there are, and anything else."""

    def build(g, scale=1.0, other=False):
      x = g.op('Mul', 'scaled', g.input(_X), g.constant(np.float32(scale)))
      kind = ('Max', 'Min') if other else ('Sum', 'Mean')
      one = g.op(kind[0], 'one', x, compute=lambda x: np.sum(x, dtype=np.float32))
      two = g.op(kind[1], 'two', x, compute=lambda x: np.float32(x.size))
      g.target('output', g.op('Mul', 'Mul', one, g.chain(two, 'Neg')))

    pairs = _pairs(_divergence(build, lambda g: build(g, other=True)))
    self.assertEqual(pairs['one'], 'one')
    self.assertNotIn('two', pairs)

  def test_a_setting_is_no_pair_of_what_follows_from_a_count_of_the_same_value(self):
    """A schedule at a step at which the rest of it is 1."""

    def build(g, other=False):
      span = g.constant(np.float32(0.00937))
      step = g.variable('step', np.float32(0.0))
      if other:
        rest = g.op('Sub', 'rest', g.constant(np.float32(1.0)), step)
        net = g.op('Mul', 'scaled', span, rest)
      else:
        net = g.op('Mul', 'product', g.op('Neg', 'minus', g.op('Neg', 'plus', span)), step)
      g.target('output', g.op('AddV2', 'end', net, g.input(_X)))

    pairs = _pairs(_divergence(build, lambda g: build(g, True)))
    self.assertNotIn('minus', pairs)
    self.assertEqual(pairs['end'], 'end')

  def test_nothing_is_fetched_where_all_operations_have_partners(self):
    def build(g, slope=0.2):
      net = g.op('Mul', 'net', g.input(_X), g.constant(np.float32(slope)))
      g.target('output', g.op('MatMul', 'MatMul', net, g.variable('w', _W)))

    one, two = (side.run() for side in both(build, lambda g: build(g, 0.3)))
    Divergence(one, two, ())
    self.assertLen([names for names in two.fetched if names], 2)  # to compare, and to judge


if __name__ == '__main__':
  absltest.main()
