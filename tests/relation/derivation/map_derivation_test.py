"""Tests of tf2verify.relation.derivation.map_derivation, on graphs made by hand."""

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import both
from tf2verify.records.observation import VariableRecord
from tf2verify.records.op_graph import VARIABLE
from tf2verify.relation.derivation.map_derivation import derive
from tf2verify.relation.derivation.undivided import undivided
from tf2verify.relation.layouts.derived_layouts import layouts_of_pair, splits
from tf2verify.relation.operations.variable_uses import VariableUses

_X = np.ones((2, 3), np.float32)


def square(size=3):
  return np.ones((size, size), np.float32)


def dense(g, x, scope, units=3, inputs=3, kernel='kernel', bias='bias'):
  w = g.variable(f'{scope}/{kernel}', np.ones((inputs, units), np.float32))
  made = g.op('MatMul', f'net/{scope}/MatMul', x, w)
  if not bias:
    return made
  b = g.variable(f'{scope}/{bias}', np.ones(units, np.float32))
  return g.op('AddV2', f'net/{scope}/Add', made, b)


def derived(build, other):
  one, two = both(build, other)
  graphs = one.graph(), two.graph()
  return next(derive(*graphs, *(_variables(graph) for graph in graphs)))


def _variables(graph):
  return [
    VariableRecord(op.name, op.outputs[0][1], 'float32', trainable=True, trainable_flag=True)
    for op in graph.ops
    if op.op_type == VARIABLE
  ]


def names(found):
  return {entry.tf1: entry.tf2 for choice in found.choices for entry in choice.alternatives[0]}


def chain(kernels, ends=('Relu',) * 9, bias='bias'):
  """Returns what builds dense layers of one size, one after the other."""

  def build(g):
    x = g.input(_X)
    for number, (scope, end) in enumerate(zip(kernels, ends, strict=False)):
      x = g.op(end, f'net/{number}', dense(g, x, scope, bias=bias))
    g.target('output y', x)

  return build


def called_twice(g):
  """Two blocks of a product, of which the port calls the first one twice."""
  x = g.input(_X)
  kernel = g.variable('p/one/l/kernel', np.ones((3, 4), np.float32))
  gamma = g.variable('p/one/norm/gamma', np.ones(4, np.float32))
  halves = [
    g.op('Mul', f'net/{n}/Mul', g.op('MatMul', f'net/{n}/MatMul', x, kernel), gamma) for n in (1, 2)
  ]
  x = g.op('ConcatV2', 'net/concat', *halves)
  kernel = g.variable('p/two/l/kernel', np.ones((3, 5), np.float32))
  gamma = g.variable('p/two/norm/gamma', np.ones(4, np.float32))
  for n in (3, 4):
    x = g.op('Mul', f'net/{n}/Mul', g.op('MatMul', f'net/{n}/MatMul', x, kernel), gamma)
  g.target('output y', x)


def called_once(g):
  x = g.input(_X)
  for scope, units in (('a', 4), ('b', 5)):
    kernel = g.variable(f'{scope}/l/weights', np.ones((3, units), np.float32))
    gamma = g.variable(f'{scope}/bn/gamma', np.ones(4, np.float32))
    x = g.op('Mul', f'net/{scope}/Mul', g.op('MatMul', f'net/{scope}/MatMul', x, kernel), gamma)
  g.target('output y', x)


class ChainTest(absltest.TestCase):
  def test_layers_that_the_port_calls_twice(self):
    found = derived(called_once, called_twice)
    pairs = {one[0]: other[0] for one, other in names(found).items()}
    self.assertEqual(
      pairs,
      {
        'a/l/weights': 'p/one/l/kernel',
        'b/l/weights': 'p/two/l/kernel',
        'a/bn/gamma': 'p/one/norm/gamma',
        'b/bn/gamma': 'p/two/norm/gamma',
      },
    )
    self.assertEqual((found.tf1_left, found.tf2_left), ((), ()))

  def test_layers_of_one_shape_by_their_place(self):
    found = derived(chain(['a', 'b', 'c']), chain(['z', 'y', 'x']))
    self.assertEqual(
      {one[0]: other[0] for one, other in names(found).items()},
      {
        'a/kernel': 'z/kernel',
        'b/kernel': 'y/kernel',
        'c/kernel': 'x/kernel',
        'a/bias': 'z/bias',
        'b/bias': 'y/bias',
        'c/bias': 'x/bias',
      },
    )
    self.assertEqual((found.tf1_left, found.tf2_left, found.crossed), ((), (), ()))

  def test_a_wrong_activation_unmaps_nothing(self):
    kernels = [f'k{n}' for n in range(6)]
    found = derived(
      chain(kernels), chain([f'o{n}' for n in range(6)], ['Relu', 'Relu', 'Neg', *['Relu'] * 6])
    )
    for number in range(6):
      self.assertEqual(names(found)[(f'k{number}/kernel',)], (f'o{number}/kernel',))

  def test_biases_that_the_port_has_in_addition_are_left(self):
    found = derived(chain(['a', 'b'], bias=''), chain(['z', 'y']))
    self.assertEqual(names(found), {('a/kernel',): ('z/kernel',), ('b/kernel',): ('y/kernel',)})
    self.assertEqual([name for name, _ in found.tf2_left], ['z/bias', 'y/bias'])

  def test_a_layer_that_the_port_lacks_is_left(self):
    def wide(kernels, widths):
      def build(g):
        x = g.input(_X)
        before = 3
        for scope, width in zip(kernels, widths, strict=True):
          x, before = dense(g, x, scope, width, before), width
        g.target('output y', x)

      return build

    found = derived(wide(['a', 'b', 'c'], [4, 5, 3]), wide(['z', 'x'], [4, 3]))
    self.assertEqual(names(found)[('a/kernel',)], ('z/kernel',))
    self.assertIn('b/kernel', [name for name, _ in found.tf1_left])

  def test_an_exchange_of_two_variables_is_not_hidden(self):
    found = derived(chain(['a', 'b', 'c', 'd']), chain(['net/a', 'net/c', 'net/b', 'net/d']))
    self.assertEqual(
      dict(found.crossed),
      {
        'b/kernel': 'net/b/kernel',
        'c/kernel': 'net/c/kernel',
        'b/bias': 'net/b/bias',
        'c/bias': 'net/c/bias',
      },
    )


class BranchTest(absltest.TestCase):
  def branches(self, scopes, order=(0, 1)):
    def build(g):
      x = g.input(_X)
      made = [dense(g, x, scope, bias='') for scope in scopes]
      g.target('output y', g.op('ConcatV2', 'net/concat', *(made[n] for n in order)))

    return build

  def test_branches_are_told_by_their_place_in_a_concatenation(self):
    found = derived(self.branches(['a', 'b']), self.branches(['z', 'y'], (1, 0)))
    self.assertEqual(names(found), {('a/kernel',): ('y/kernel',), ('b/kernel',): ('z/kernel',)})
    self.assertEqual(found.exchangeable, ())

  def test_branches_of_a_sum_can_be_exchanged(self):
    def build(scopes):
      def make(g):
        x = g.input(_X)
        made = [dense(g, x, scope, bias='') for scope in scopes]
        g.target('output y', g.op('AddV2', 'net/sum', *made))

      return make

    found = derived(build(['a', 'b']), build(['z', 'y']))
    self.assertEqual(found.exchangeable, ('a/kernel',))


class ExchangedNamesTest(parameterized.TestCase):
  """Variables that the port uses for each other, whose names are not those of tf1."""

  @staticmethod
  def blocks(names, ends=('Relu', 'Tanh')):
    """Returns what builds blocks of two layers each, the second one after the first."""

    def build(g):
      x = g.input(_X)
      for n, (block, scopes) in enumerate(names):
        for scope, end in zip(scopes, ends, strict=True):
          x = g.op(end, f'net/{n}/{scope}', dense(g, x, f'{block}{scope}', bias=''))
      g.target('output y', x)

    return build

  @parameterized.parameters(
    ((('', ('memory_layer', 'query_layer')),), (('m_', ('query', 'memory')),), 2),
    ((('', ('memory_layer', 'query_layer')),), (('m_', ('memory', 'query')),), 0),
    ((('', ('q', 'k')),), (('', ('key', 'query')),), 2),
    ((('', ('transform', 'gate')),), (('', ('h', 't')),), 0),
    ((('', ('dense', 'dense_1')),), (('', ('dense_5', 'dense_4')),), 0),
  )
  def test_words(self, tf1, tf2, count):
    self.assertLen(derived(self.blocks(tf1), self.blocks(tf2)).crossed, count)

  @parameterized.parameters(
    ((0, 0, 0), 0),
    ((0, 0, 1), 2),
    ((1, 0, 0), 2),
    ((0, 0, 1, 0, 0), 2),
    ((0, 1), 0),
    ((1, 1, 1), 0),
  )
  def test_other_blocks(self, order, count):
    tf1 = [(f'unit_{n}/', ('conv1', 'conv2')) for n in range(len(order))]
    tf2 = [(f'block{n}_', 'ba' if turned else 'ab') for n, turned in enumerate(order)]
    found = derived(self.blocks(tf1), self.blocks(tf2))
    self.assertLen(found.crossed, count)
    if count:
      turned = order.index(1)
      self.assertIn((f'unit_{turned}/conv1/kernel', f'block{turned}_a/kernel'), found.crossed)

  def test_numbers_of_keras_in_any_order(self):
    tf1 = [(f'unit_{n}/', ('conv1', 'conv2')) for n in range(3)]
    tf2 = [('', names) for names in (('c', 'c_1'), ('c_2', 'c_3'), ('c_5', 'c_4'))]
    self.assertEqual(derived(self.blocks(tf1), self.blocks(tf2)).crossed, ())


class GatedTest(parameterized.TestCase):
  @staticmethod
  def gated(blocks, bend, gate_first=False):
    """Returns what builds gated layers: t · h(x) + (1 - t) · x, with names of h and t."""

    def build(g):
      x = g.input(np.ones((2, 4), np.float32))
      for n, (through, gate) in enumerate(blocks):
        order = [(gate, 'Sigmoid'), (through, bend)]
        made = {
          scope: g.op(kind, f'net/{n}/{scope}', dense(g, x, scope, inputs=4, bias=''))
          for scope, kind in (order if gate_first else order[::-1])
        }
        rest = g.op('Sub', f'net/{n}/rest', g.constant(1.0), made[gate])
        parts = [
          g.op('Mul', f'net/{n}/through', made[through], made[gate]),
          g.op('Mul', f'net/{n}/around', rest, x),
        ]
        x = g.op('AddV2', f'net/{n}/sum', *parts)
      g.target('output y', x)

    return build

  @parameterized.parameters('Relu', 'Sigmoid')
  def test_what_is_computed_of_them_tells_the_gate(self, bend):
    one = self.gated([('h0', 't0'), ('h1', 't1')], bend)
    other = self.gated([('a', 'b'), ('c', 'd')], bend, gate_first=True)
    found = derived(one, other)
    self.assertEqual(
      {one[0].split('/')[0]: other[0].split('/')[0] for one, other in names(found).items()},
      {'h0': 'a', 't0': 'b', 'h1': 'c', 't1': 'd'},
    )
    self.assertEqual(found.exchangeable, ())


def attention(names, scores):
  """Returns what builds attention whose scores are made by a function of query and key."""

  def build(g):
    x = g.input(_X)
    query, key, value = (dense(g, x, name) for name in names[:3])
    weights = g.op('Softmax', 'net/softmax', scores(g, query, key))
    g.target('output y', dense(g, g.op('MatMul', 'net/context', weights, value), names[3]))

  return build


def transposed(g, x, name):
  return g.op('Transpose', name, x, g.constant(np.array([1, 0])))


class UndividedTest(parameterized.TestCase):
  @parameterized.parameters(((2, 1, 4), True), ((2, 2), False))
  def test_a_slice_that_adds_an_axis_divides_nothing(self, shape, is_whole):
    """A query is read as a whole where its score multiplies it by a vector."""

    def build(g):
      kernel = g.variable('query/kernel', np.ones((3, 4), np.float32))
      made = g.op('MatMul', 'net/query', g.input(_X), kernel, shape=(2, 4))
      bounds = [g.constant(np.array([0, 0])) for _ in range(3)]
      net = g.op('StridedSlice', 'net/slice', made, *bounds, shape=shape)
      score = g.variable('score', np.ones(4, np.float32))
      net = g.op('Mul', 'net/mul', g.op('Tanh', 'net/tanh', net, shape=shape), score, shape=shape)
      g.target('output y', g.op('Sum', 'net/sum', net, shape=(2, 1)))

    graph = both(build, build)[0].graph()
    whole = undivided(VariableUses(graph, {v.name: v.shape for v in _variables(graph)}))
    self.assertEqual('query/kernel' in whole, is_whole)


class AttentionTest(parameterized.TestCase):
  def tf1(self, g):
    attention('qkvo', lambda g, q, k: g.op('MatMul', 'net/scores', q, k, transpose_b=True))(g)

  @parameterized.named_parameters(
    ('a transposed key', lambda g, q, k: g.op('MatMul', 'p/m', q, transposed(g, k, 'p/t'))),
    (
      'key times query, transposed afterwards',
      lambda g, q, k: transposed(g, g.op('MatMul', 'p/m', k, transposed(g, q, 'p/t')), 'p/u'),
    ),
    ('einsum', lambda g, q, k: g.op('Einsum', 'p/m', q, k, equation='td,sd->ts')),
    ('einsum of key and query', lambda g, q, k: g.op('Einsum', 'p/m', k, q, equation='sd,td->ts')),
    (
      'einsum, transposed by another one',
      lambda g, q, k: g.op(
        'Einsum', 'p/u', g.op('Einsum', 'p/m', q, k, equation='td,sd->st'), equation='st->ts'
      ),
    ),
  )
  def test_query_and_key_in_any_order_of_the_product(self, scores):
    found = derived(self.tf1, attention(['query', 'key', 'value', 'out'], scores))
    pairs = {one[0]: other[0] for one, other in names(found).items()}
    self.assertEqual(pairs['q/kernel'], 'query/kernel')
    self.assertEqual(pairs['k/bias'], 'key/bias')
    self.assertEqual((found.crossed, found.exchangeable), ((), ()))

  def test_a_port_that_exchanges_query_and_key_is_not_hidden(self):
    found = derived(
      self.tf1,
      attention(
        ['p/q', 'p/k', 'p/v', 'p/o'],
        lambda g, q, k: g.op('Einsum', 'p/m', q, k, equation='td,sd->st'),
      ),
    )
    self.assertEqual(
      dict(found.crossed),
      {f'{one}/{kind}': f'p/{one}/{kind}' for one in 'qk' for kind in ('kernel', 'bias')},
    )

  def test_context_that_is_written_the_other_way_round(self):
    def build(g):
      x = g.input(_X)
      query, key, value = (dense(g, x, name) for name in ('query', 'key', 'value'))
      scores = g.op('MatMul', 'p/scores', key, query, transpose_b=True)
      weights = transposed(g, g.op('Softmax', 'p/softmax', transposed(g, scores, 'p/t')), 'p/u')
      context = g.op('MatMul', 'p/context', value, weights, transpose_a=True)
      g.target('output y', dense(g, transposed(g, context, 'p/v'), 'out'))

    found = derived(self.tf1, build)
    pairs = {one[0]: other[0] for one, other in names(found).items()}
    self.assertEqual(
      [pairs[f'{one}/kernel'] for one in 'qkv'], ['query/kernel', 'key/kernel', 'value/kernel']
    )


class LayoutTest(absltest.TestCase):
  def test_a_fused_product_and_its_parts(self):
    def fused(g):
      x = g.input(_X)
      made = dense(g, x, 'qkv', 9)
      parts = [g.op('Neg', f'net/part{n}', made, compute=lambda a: a[:, :3]) for n in range(3)]
      g.target('output y', dense(g, g.op('AddV2', 'net/sum', *parts[:2]), 'out'))

    def split(g):
      x = g.input(_X)
      parts = [g.op('Neg', f'net/part{n}', dense(g, x, n)) for n in 'qkv']
      together = g.op('AddV2', 'net/sum', *parts[:2])
      g.target('output y', dense(g, g.op('Mul', 'net/all', together, parts[2]), 'o'))

    found = derived(fused, split)
    self.assertEqual(names(found)[('qkv/kernel',)], ('q/kernel', 'k/kernel', 'v/kernel'))
    self.assertEqual(names(found)[('qkv/bias',)], ('q/bias', 'k/bias', 'v/bias'))
    choice = next(one for one in found.choices if one.alternatives[0][0].tf1 == ('qkv/kernel',))
    self.assertLen(choice.alternatives, 6)

  def test_a_square_matrix_that_is_read_the_other_way_round(self):
    def build(is_transposed):
      def make(g):
        x = g.input(_X)
        w = g.variable('w', square())
        if is_transposed:
          w = g.op('Transpose', 'net/t', w, compute=np.transpose)
        g.target('output y', g.op('MatMul', 'net/MatMul', x, w))

      return make

    found = derived(build(False), build(True))
    (entry,) = found.choices[0].alternatives[0]
    self.assertEqual(entry.layout, 'a b -> b a')

  def test_layouts_of_two_shapes(self):
    for one, other, layout in (
      ((7, 7, 4, 5), (196, 5), 'a b c d -> (a b c) d'),
      ((6, 6), (6, 2, 3), 'a (b c) -> a b c'),
      ((6, 6), (2, 3, 6), '(a b) c -> a b c'),
      ((3, 4), (4, 3), 'a b -> b a'),
      ((1, 6), (6,), '1 a -> a'),
      ((3, 4), (3, 4), ''),
    ):
      self.assertEqual(layouts_of_pair(one, other)[0], layout)
    self.assertEqual(layouts_of_pair((3, 4), (5, 3)), [])

  def test_parts_that_do_not_make_the_whole(self):
    self.assertEmpty(splits('w', (3, 9), [('a', (3, 3)), ('b', (3, 3))]))
    self.assertEmpty(splits('w', (3, 4), [('a', (2, 5)), ('b', (2, 3))]))
    self.assertEmpty(splits('w', (4, 4), [('a', (2, 4)), ('b', (4, 2))]))

  def test_parts_along_any_axis(self):
    for whole, parts, layout in (
      ((3, 4), ((3, 1), (3, 3)), 'a (z1+z2) -> (a z1) 1, a z2'),
      ((3, 4), ((3,), (3, 3)), 'a (z1+z2) -> (a z1), a z2'),
      ((4,), ((1,), (3,)), '(z1+z2) -> z1, z2'),
      ((4,), ((1, 1), (3,)), '(z1+z2) -> 1 z1, z2'),
      ((3, 5), ((3, 2), (3, 3)), 'a (z1+z2) -> a z1, a z2'),
      ((5, 3), ((2, 3), (3, 3)), '(z1+z2) b -> z1 b, z2 b'),
      ((5, 3), ((3, 2), (3, 3)), '(z1+z2) b -> b z1, b z2'),
      ((4, 3), ((1, 3), (3, 3)), '(z1+z2) b -> z1 b, z2 b'),
      ((7, 4, 5), ((7, 2, 5), (7, 2, 5)), 'a (z1+z2) c -> a z1 c, a z2 c'),
      ((2, 4), ((4,), (4, 1)), '(z1+z2) a -> (z1 a), (z2 a) 1'),
      ((2, 4, 5), ((4, 5), (4, 5)), '(z1+z2) a b -> (z1 a) b, (z2 a) b'),
      ((4, 5, 2), ((4, 5), (4, 5)), 'a b (z1+z2) -> a (b z1), a (b z2)'),
      ((5, 1), ((2, 1), (3, 1)), '(z1+z2) 1 -> z1 1, z2 1'),
    ):
      found = splits('w', whole, [(f'p{n}', part) for n, part in enumerate(parts)])
      self.assertEqual(found[0].layout if found else None, layout, whole)
      if found:
        value = np.arange(np.prod(whole), dtype=np.float32).reshape(whole)
        moved = found[0].to_tf2([value])
        self.assertEqual([part.shape for part in moved], list(parts))
        np.testing.assert_array_equal(found[0].to_tf1(moved)[0], value)

  def test_many_parts_have_one_order(self):
    parts = [(f'p{n}', (2, 3)) for n in range(5)]
    (entry,) = splits('w', (10, 3), parts)
    self.assertEqual(entry.tf2, tuple(name for name, _ in parts))

  def test_square_parts_that_one_side_transposes(self):
    parts = [('a', (3, 3)), ('b', (3, 3))]
    self.assertEqual(splits('w', (3, 6), parts)[0].layout, 'a (z1+z2) -> a z1, a z2')
    self.assertEqual(
      splits('w', (3, 6), parts, is_transposed=True)[0].layout, 'a (z1+z2) -> z1 a, z2 a'
    )


if __name__ == '__main__':
  absltest.main()
