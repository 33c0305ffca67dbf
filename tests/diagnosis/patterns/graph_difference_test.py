"""Tests of tf2verify.diagnosis.patterns.graph_difference."""

import functools

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import HandMade, both
from tf2verify.diagnosis.divergence.tensors.regions import region_pair
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.relation.operations.op_pairs import Pairing

_X = np.ones((2, 3), np.float32)
_W = np.ones((3, 3), np.float32)


def _comparison(build, other):
  one, two = both(build, other)
  return GraphComparison(Pairing(one.graph(), two.graph()))


def _everything(build, other):
  return _comparison(build, other).of_everything()


def _facts(differences):
  return [(d.aspect, d.op, d.what, d.tf1, d.tf2) for d in differences]


class OperationsTest(absltest.TestCase):
  def test_equal_graphs_have_no_differences(self):
    def build(g):
      net = g.op('Conv2D', 'conv', g.input(_X), g.variable('w', _W), strides=(1, 2, 2, 1))
      g.target('output', g.op('AddV2', 'add', net, g.constant(1.0)))

    self.assertEqual(_everything(build, build), [])

  def test_attribute(self):
    def build(g, stride=1):
      net = g.op('Conv2D', 'conv', g.input(_X), g.variable('w', _W), strides=(1, stride, stride, 1))
      g.target('output', net)

    [found] = _everything(build, lambda g: build(g, 2))
    self.assertEqual(
      (found.aspect, found.op, found.what), (GraphAspect.ATTRIBUTE, 'conv', 'strides')
    )
    self.assertEqual((found.tf1_value, found.tf2_value), ((1, 1, 1, 1), (1, 2, 2, 1)))

  def test_attribute_of_a_convolution_that_is_spelt_with_another_axis(self):
    def build(g, padding='VALID', of_one_axis=False):
      x, w = g.input(_X), g.variable('w', _W)
      if of_one_axis:
        x, w = g.op('ExpandDims', 'one', x), g.op('ExpandDims', 'other', w)
      net = g.op('Conv2D', 'net/c' if of_one_axis else 'conv', x, w, padding=padding)
      if of_one_axis:
        net = g.op('Squeeze', 'squeezed', net)
      g.target('output', g.op('BiasAdd', 'bias', net, g.variable('b', _X)))

    found = _everything(build, lambda g: build(g, 'SAME', of_one_axis=True))
    self.assertEqual([(d.what, d.tf1, d.tf2) for d in found], [('padding', 'VALID', 'SAME')])
    alike = _everything(build, lambda g: build(g, of_one_axis=True))
    self.assertEqual([known.aspect for known in alike], [GraphAspect.EXTRA])

  def test_what_a_mean_is_taken_of_is_told_with_it(self):
    def build(g):
      net = g.op('Mean', 'm1', g.op('AddV2', 'b', g.input(_X), g.constant(2.0)), compute=np.asarray)
      net = g.op('Maximum', 'bound', net, g.constant(0.12))
      g.target('output', g.op('Sum', 'total', net))

    def other(g, in_order=False):
      net = g.input(_X)
      if in_order:
        net = g.op('Mean', 'n/x1', g.op('Neg', 'n/x2', net), compute=np.asarray)
      net = g.op('Maximum', 'n/x3', net, g.constant(0.12))
      if not in_order:
        net = g.op('Mean', 'n/x4', g.op('Neg', 'n/x5', net), compute=np.asarray)
      g.target('output', g.op('Sum', 'total', net))

    def told(port):
      comparison = _comparison(build, port)
      pairing = comparison._pairing
      pairing.part(
        *[n for n, op in enumerate(pairing.tf1.ops) if op.op_type in ('Mean', 'Maximum')]
      )
      ends = [n for n, op in enumerate(pairing.tf1.ops) if op.op_type == 'Sum']
      return comparison.at(region_pair(pairing, ends[0], pairing.tf2_of[ends[0]]))

    [found] = told(other)
    self.assertEqual(found.tf1_value, ('AddV2', 'Mean', 'Maximum'))
    self.assertEqual(found.tf2_value, ('Maximum', 'Neg', 'Mean'))
    [found] = told(lambda g: other(g, in_order=True))
    self.assertEqual((found.tf1_value, found.tf2_value), (('AddV2',), ('Neg',)))

  def test_attributes_that_say_how_are_silent(self):
    def build(g, number=1):
      net = g.op('If', 'cond', g.input(_X), T=f'{number}', then_branch=f'true_{number}')
      g.target(
        'output', g.op('Neg', 'Neg', net, else_branch=f'false_{number}', Tin=('a',) * number)
      )

    self.assertEqual(_everything(build, lambda g: build(g, 2)), [])

  def test_rounded_attributes_are_alike(self):
    def build(g, alpha=0.2):
      g.target('output', g.op('LeakyRelu', 'act', g.input(_X), alpha=alpha))

    self.assertEqual(_everything(build, lambda g: build(g, float(np.float32(0.2)))), [])
    [found] = _everything(build, lambda g: build(g, 0.3))
    self.assertEqual((found.tf1, found.tf2), ('0.2', '0.3'))

  def test_constant_input(self):
    def build(g, axis=1):
      net = g.op('Mean', 'mean', g.input(_X), g.constant(axis), input_names=('input', 'axis'))
      g.target('output', net)

    self.assertEqual(
      _facts(_everything(build, lambda g: build(g, 0))),
      [(GraphAspect.CONSTANT, 'mean', 'axis', '1', '0')],
    )

  def test_axes_counted_from_the_end_are_the_same(self):
    def build(g, op_type, axis):
      net = g.op(op_type, 'op', g.input(_X), g.constant(axis), input_names=('input', 'dim'))
      g.target('output', net)

    for op_type, same, other in (('Mean', -1, -2), ('ExpandDims', -2, -1)):
      with self.subTest(op_type):
        one = functools.partial(build, op_type=op_type, axis=1)
        others = (functools.partial(build, op_type=op_type, axis=axis) for axis in (same, other))
        found = [_everything(one, build_other) for build_other in others]
        self.assertEqual([len(differences) for differences in found], [0, 1])

  def test_spellings_of_one_operation_are_alike(self):
    def build(g, op_type='BiasAdd'):
      g.target('output', g.op(op_type, 'add', g.input(_X), g.variable('b', _X)))

    self.assertEqual(_everything(build, lambda g: build(g, 'AddV2')), [])


class SpellingsTest(absltest.TestCase):
  def test_a_sum_of_a_list_of_two(self):
    def build(g, kind='AddN', of=2):
      x = g.input(_X)
      parts = [g.op('Exp', 'Exp', x), g.op('Neg', 'Neg', x), g.op('Tanh', 'Tanh', x)][:of]
      g.target('output', g.op(kind, 'sum', *parts))

    self.assertEqual(_everything(build, lambda g: build(g, 'AddV2')), [])
    self.assertLen(_everything(build, lambda g: build(g, 'Sub')), 1)
    self.assertLen(_everything(lambda g: build(g, of=3), lambda g: build(g, 'AddV2')), 1)

  def test_padding_of_a_kernel_of_one_position(self):
    def build(g, padding='SAME', size=1):
      image = g.input(np.ones((1, 5, 5, 2), np.float32))
      kernel = g.variable('w', np.ones((size, size, 2, 2), np.float32))
      g.target('output', g.op('Conv2D', 'conv', image, kernel, padding=padding, compute=None))

    self.assertEqual(_paddings(build, 1), [])
    self.assertEqual(_paddings(build, 3), ['padding'])


def _paddings(build, size):
  one, two = (HandMade(side) for side in ('tf1', 'tf2'))
  build(one, 'SAME', size)
  build(two, 'VALID', size)
  comparison = GraphComparison(Pairing(one.graph(), two.graph()))
  positions = [n for n, op in enumerate(one.graph().ops) if op.op_type == 'Conv2D']
  return [known.what for n in positions for known in comparison.of_operations(n, n)]


class MissingTest(absltest.TestCase):
  def _build(self, g, *between):
    net = g.op('MatMul', 'MatMul', g.input(_X), g.variable('a', _W))
    net = g.chain(net, *between)
    g.target('output', g.op('MatMul', 'end', net, g.variable('b', _W)))

  def test_missing_extra_and_replaced(self):
    for tf1, tf2, aspect in (
      (['Relu'], [], GraphAspect.MISSING),
      ([], ['Relu'], GraphAspect.EXTRA),
      (['Relu'], ['Elu'], GraphAspect.REPLACED),
    ):
      with self.subTest(aspect.value):
        [found] = _everything(
          lambda g: self._build(g, *tf1),  # noqa: B023
          lambda g: self._build(g, *tf2),  # noqa: B023
        )
        self.assertEqual(found.aspect, aspect)
        self.assertEqual((found.tf1_value, found.tf2_value), (tuple(tf1), tuple(tf2)))

  def test_long_chains_are_cut(self):
    read, found = _everything(
      lambda g: self._build(g, *[f'Exp e{n}' for n in range(12)]), lambda g: self._build(g)
    )
    self.assertEqual((read.aspect, read.tf1), (GraphAspect.WIRING, 'e11'), 'what they lead to')
    self.assertEqual(found.tf1.count('Exp'), 8)
    self.assertEndsWith(found.tf1, '… 4 more')

  def test_what_stands_on_both_sides_is_not_missing(self):
    self.assertEqual(
      [
        (d.aspect, d.tf1_value)
        for d in _everything(
          lambda g: self._build(g, 'Relu', 'Exp'), lambda g: self._build(g, 'Exp')
        )
      ],
      [(GraphAspect.MISSING, ('Relu',))],
    )


class WiringTest(absltest.TestCase):
  def test_order_of_inputs(self):
    def build(g, swapped=False):
      x = g.input(_X)
      parts = g.op('Exp', 'Exp', x), g.op('Neg', 'Neg', x)
      g.target('output', g.op('Sub', 'sub', *(parts[::-1] if swapped else parts)))

    found = _everything(build, lambda g: build(g, True))
    self.assertEqual(
      _facts(found),
      [
        (GraphAspect.ORDER, 'sub', 'x', 'Exp', 'Neg'),
        (GraphAspect.ORDER, 'sub', 'y', 'Neg', 'Exp'),
      ],
    )

  def test_input_from_elsewhere(self):
    def build(g, wired_to=0):
      x = g.input(_X)
      first = g.op('Exp', 'first', x)
      second = g.op('Exp', 'second', first)
      g.target('other', second)
      fed = (second, first, x)[wired_to]
      g.target('output', g.op('MatMul', 'end', fed, g.variable('w', _W)))

    [found] = _everything(build, lambda g: build(g, 1))
    self.assertEqual(_facts([found]), [(GraphAspect.WIRING, 'end', 'x', 'second', 'first')])
    [found] = _everything(build, lambda g: build(g, 2))
    self.assertEqual(found.tf2, 'the input (the input)')

  def test_number_in_place_of_what_is_brought_into_a_shape(self):
    def build(g, masks=True):
      x = g.input(_X)
      kept = g.op('Exp', 'kept', x)
      g.target('other', kept)
      one = g.constant(np.float32(1))
      mask = g.op('ExpandDims', 'mask', kept, g.constant(np.int32(1))) if masks else one
      g.target('output', g.op('Mul', 'end', x, mask))

    [found] = _everything(build, lambda g: build(g, False))
    self.assertEqual(_facts([found]), [(GraphAspect.WIRING, 'end', 'y', 'mask', '1')])

  def test_input_from_elsewhere_beside_numbers_that_one_side_packs(self):
    def build(g, fed=1, packed=False, end=2):
      x = g.input(_X)
      parts = [g.op('Exp', 'first', x)]
      parts.append(g.op('Neg', 'second', parts[0]))
      g.target('other', parts[1])
      size = g.constant(np.int32([2, 2]))
      if packed:
        numbers = [g.constant(np.int32(n)) for n in (2, end)]
        size = g.op('Pack', 'size', *numbers, axis=0)
      g.target('output', g.op('Slice', 'end', parts[fed], g.constant(np.int32([0, 0])), size))

    found = _everything(build, lambda g: build(g, 0, packed=True))
    self.assertEqual(_facts(found), [(GraphAspect.WIRING, 'end', 'x', 'second', 'first')])
    [found] = _everything(build, lambda g: build(g, 1, packed=True, end=1))
    self.assertEqual(found.op, 'size')

  def test_input_from_elsewhere_of_operations_of_another_shape(self):
    def build(g, fed=1, extra=''):
      x = g.input(_X)
      parts = [g.op('Exp', 'first', x)]
      parts.append(g.op('Neg', 'second', parts[0]))
      g.target('other', parts[1])
      net = g.op(extra, 'extra', parts[fed]) if extra else parts[fed]
      g.target('output', g.op('MatMul', 'end', net, g.variable('w', _W)))

    wiring = (GraphAspect.WIRING, 'end', 'x', 'second', 'first')
    # That the port keeps an axis of size 1, say, is not what is wrong with it.
    found = _everything(build, lambda g: build(g, 0, 'Reshape'))
    self.assertEqual(_facts(found), [wiring])
    found = _everything(build, lambda g: build(g, 0, 'Tanh'))
    self.assertEqual(_facts(found), [(GraphAspect.EXTRA, 'extra', '', '', 'Tanh')])
    found = _everything(build, lambda g: build(g, 1, 'Reshape'))
    self.assertEqual(_facts(found), [(GraphAspect.EXTRA, 'extra', '', '', 'Reshape')])

  def test_other_variable(self):
    def build(g, names=('a', 'b')):
      x = g.input(_X)
      variables = {name: g.variable(name, _W) for name in 'ab'}
      net = g.op('MatMul', 'first', x, variables[names[0]])
      g.target('output', g.op('MatMul', 'second', net, variables[names[1]]))

    comparison = _comparison(build, lambda g: build(g, ('b', 'a')))
    texts = {text for d in comparison.of_everything() for text in (d.tf1, d.tf2)}
    self.assertContainsSubset({'variable a', 'variable b'}, texts)

  def test_number_of_inputs(self):
    def build(g, parts=2):
      x = g.input(_X)
      g.target('output', g.op('ConcatV2', 'concat', *[x] * parts))

    one, two = both(build, lambda g: build(g, 3))
    pairing = Pairing(one.graph(), two.graph())
    if pairing.tf2_of[1] is None:
      pairing.add(1, 1)
    [found] = GraphComparison(pairing).at(region_pair(pairing, 1, 1))
    self.assertEqual((found.what, found.tf1_value, found.tf2_value), ('number of inputs', 2, 3))


class NormalizationTest(parameterized.TestCase):
  def _fused(self, g, epsilon):
    net = g.op('FusedBatchNormV3', 'norm', g.input(_X), g.variable('mean', _X[0]), epsilon=epsilon)
    g.target('output', net)

  def _spelt_out(self, g, epsilon):
    x, mean = g.input(_X), g.variable('mean', _X[0])
    added = g.op('AddV2', 'layer/add', mean, g.constant(np.float32(epsilon)))
    g.target('output', g.op('Mul', 'layer/Mul', x, g.op('Rsqrt', 'layer/Rsqrt', added)))

  def test_epsilon_of_fused_and_unfused_spellings(self):
    for epsilons, count in (((1e-3, 1e-3), 0), ((1e-3, 1e-5), 1)):
      comparison = _comparison(
        lambda g: self._fused(g, epsilons[0]),  # noqa: B023
        lambda g: self._spelt_out(g, epsilons[1]),  # noqa: B023
      )
      found = [d for d in comparison.of_everything() if d.what == 'epsilon']
      self.assertLen(found, count)

  def test_epsilon_where_the_sums_are_partners(self):
    def build(g, epsilon=1e-3):
      self._spelt_out(g, epsilon)

    found = _facts(_everything(build, lambda g: build(g, 1e-5)))
    # No constant beside it. The root says so as well, but that is no source.
    self.assertEqual(found[0], (GraphAspect.ATTRIBUTE, 'layer/add', 'epsilon', '0.001', '1e-05'))
    self.assertEqual({what for _, _, what, _, _ in found}, {'epsilon'})
    self.assertEqual(_everything(build, build), [])

  def test_epsilon_of_one_spelling_is_named_once(self):
    found = _everything(lambda g: self._fused(g, 1e-3), lambda g: self._fused(g, 1e-5))
    self.assertEqual(_facts(found), [(GraphAspect.ATTRIBUTE, 'norm', 'epsilon', '0.001', '1e-05')])

  @parameterized.parameters((0.9, 0.99), (0.999, 0.99))
  def test_momentum(self, *momenta):
    def build(g, momentum=momenta[0]):
      mean, batch = g.variable('mean', _X[0]), g.input(_X[0])
      one, kept = g.constant(np.float32(1.0)), g.constant(np.float32(momentum))
      step = g.op('Mul', 'step', g.op('Sub', 'diff', mean, batch), g.op('Sub', 'rate', one, kept))
      g.target('update of mean', step, op='AssignSubVariableOp')

    one, two = both(build, lambda g: build(g, momenta[1]))
    pairing = Pairing(one.graph(), two.graph())
    names = [op.name for op in pairing.tf1.ops]
    comparison = GraphComparison(pairing)
    found = comparison.of_everything()
    self.assertNotEmpty(found, names)
    self.assertTrue(any(f'{momenta[0]:g}' in d.tf1 for d in found), found)


class GradientTest(absltest.TestCase):
  def test_marks_on_the_way(self):
    def build(g, marks=(), override=None):
      x = g.op('Exp', 'Exp', g.input(_X))
      more = {'_gradient_op_type': override} if override else {}
      net = g.op('MatMul', 'end', x, g.variable('w', _W), through={0: marks}, **more)
      g.target('output', net)

    comparison = _comparison(build, lambda g: build(g, ('Identity', 'StopGradient')))
    [found] = comparison.of_gradients()
    self.assertEqual(
      _facts([found]), [(GraphAspect.GRADIENT, 'end', 'x', 'unchanged', 'StopGradient')]
    )
    self.assertEqual(_comparison(build, lambda g: build(g, ('Identity',))).of_gradients(), [])
    [found] = _comparison(lambda g: build(g, override='Mine'), build).of_gradients()
    self.assertEqual((found.tf1, found.tf2), ('gradient of Mine', 'unchanged'))

  def test_mark_before_a_target(self):
    def build(g, through=()):
      g.target('output a', g.op('Exp', 'Exp', g.input(_X)), through=through)

    [found] = _comparison(lambda g: build(g, ('StopGradient',)), build).of_gradients()
    self.assertEqual(found.op, 'the output a')


class FunctionsTest(absltest.TestCase):
  def _loop(self, g, slope=0.2, order=(0, 1)):
    body = HandMade('')
    arguments = [body.input(_X, f'argument {n}') for n in range(2)]
    net = body.op('MatMul', 'dot', *(arguments[n] for n in order))
    body.target('result 0', body.op('LeakyRelu', 'act', net, alpha=slope))
    x, w = g.input(_X), g.variable('w', _W)
    g.target('output', g.op('While', 'loop', x, w, functions=(('body', body.graph()),)))

  def test_bodies_of_loops_are_compared(self):
    [found] = _everything(self._loop, lambda g: self._loop(g, 0.3))
    self.assertEqual(
      _facts([found]),
      [(GraphAspect.ATTRIBUTE, 'loop, in its body: act', 'alpha', '0.2', '0.3')],
    )
    self.assertEqual(_everything(self._loop, self._loop), [])

  def test_arguments_go_by_what_the_caller_gives(self):
    def other(g):
      body = HandMade('')
      w, x = (body.input(_X, f'argument {n}') for n in range(2))
      net = body.op('MatMul', 'dot', x, w)
      body.target('result 1', body.op('LeakyRelu', 'act', net, alpha=0.2))
      x, w = g.input(_X), g.variable('w', _W)
      g.target('output', g.op('While', 'loop', w, x, functions=(('body', body.graph()),)))

    found = [d for d in _everything(self._loop, other) if 'in its body' in d.op]
    self.assertEqual(found, [])


if __name__ == '__main__':
  absltest.main()
