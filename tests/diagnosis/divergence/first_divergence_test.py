"""Tests of tf2verify.diagnosis.divergence.first_divergence."""

import dataclasses
from unittest import mock

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import HandMade, both
from tf2verify.diagnosis.divergence import first_divergence
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors import portions

_RANDOM = np.random.default_rng(0)
_X = _RANDOM.standard_normal((4, 3)).astype(np.float32)
_WEIGHTS = {
  name: _RANDOM.standard_normal((3, 3)).astype(np.float32) for name in ('a', 'b', 'c', 'd')
}


def _softmax(x):
  shifted = np.exp(x - x.max(-1, keepdims=True))
  return shifted / shifted.sum(-1, keepdims=True)


def _layers(g: HandMade, faults=(), relu=(0, 1, 2)):
  """Four dense layers; a layer with a fault has another slope."""
  net = g.input(_X)
  for number, (name, value) in enumerate(_WEIGHTS.items()):
    net = g.op('MatMul', f'{name}/MatMul', net, g.variable(name, value))
    if number in faults:
      net = g.op('LeakyRelu', f'{name}/act', net, alpha=0.3, compute=lambda x: x * np.float32(0.3))
    elif number in relu:
      net = g.op('LeakyRelu', f'{name}/act', net, alpha=0.2)
  g.target('output (the output)', net)


def _divergence(build, other, targets=()):
  one, two = both(build, other)
  return Divergence(one.run(), two.run(), targets)


def _ends(divergence, sources=None):
  ops = divergence.pairing.tf1.ops
  found = divergence.sources() if sources is None else sources
  return [ops[source.regions.tf1.end].name for source in found]


class SourcesTest(parameterized.TestCase):
  def test_equal_sides_have_no_source(self):
    divergence = _divergence(_layers, _layers)
    self.assertEqual(divergence.sources(), [])
    self.assertTrue(all(a.identical for a in divergence.agreements.values()))

  def test_one_fault_is_one_source(self):
    [source] = _divergence(_layers, lambda g: _layers(g, faults=(1,))).sources()
    self.assertFalse(source.alone)
    greatest = float(np.abs(source.tf1 - source.tf2).max())
    self.assertAlmostEqual(source.agreement.absolute, greatest, places=5)

  def test_two_faults_are_two_sources_and_the_second_is_seen_alone(self):
    divergence = _divergence(_layers, lambda g: _layers(g, faults=(0, 2)))
    sources = divergence.sources()
    self.assertEqual(_ends(divergence, sources), ['a/act', 'c/act'])
    self.assertEqual([source.alone for source in sources], [False, True])
    # What the second yields from tf1's inputs, not what it yields in the port's run.
    negative = sources[1].tf1 < 0
    np.testing.assert_allclose(sources[1].tf2[negative], sources[1].tf1[negative] * 1.5, rtol=1e-5)

  def test_lost_relu_names_the_layer_behind_it(self):
    divergence = _divergence(_layers, lambda g: _layers(g, relu=(0, 2)))
    [source] = divergence.sources()
    self.assertEqual(_ends(divergence, [source]), ['c/MatMul'])
    ops = divergence.pairing.tf1.ops
    self.assertEqual([ops[n].name for n in source.regions.tf1.inner], ['b/act'])

  def test_what_cannot_run_alone_is_named_before_rounding(self):
    def build(g, ulps, slope):
      norm = g.op('Norm', 'norm', g.input(_X), compute=lambda x: x + np.spacing(x) * ulps)
      rows = g.op('LeakyRelu', 'rows', norm, compute=lambda x: np.where(x > 0, x, x * slope))
      g.target('output', rows)

    for slope, expected in ((0.3, ['rows']), (0.2, ['norm'])):
      one, two = both(
        lambda g: build(g, 0, np.float32(0.2)),
        lambda g, slope=slope: build(g, 1, np.float32(slope)),
      )
      port = two.run()
      with mock.patch.object(port, 'recompute', lambda requests: [None for _ in requests]):
        divergence = Divergence(one.run(), port, [])
      self.assertEqual(_ends(divergence), expected)

  def test_sizes_that_each_side_reads_for_itself_are_no_source(self):
    def build(g, read, slope):
      x = g.input(_X)
      size = g.op('Shape', 'Shape', x, dtype='int32', shape=(2,))
      taken = g.op('StridedSlice', 'size', size, compute=lambda s: s[read], dtype='int32', shape=())
      rows = g.op('Tile', 'rows', x, taken, compute=lambda x, n: x[: min(n, 3)])
      g.target('output', g.op('LeakyRelu', 'act', rows, compute=lambda x: x * np.float32(slope)))

    divergence = _divergence(lambda g: build(g, 0, 0.2), lambda g: build(g, 1, 0.3))
    self.assertEqual(_ends(divergence), ['act'])
    self.assertEqual(_ends(_divergence(lambda g: build(g, 0, 0.2), lambda g: build(g, 1, 0.2))), [])

  def test_a_wrong_size_is_found_where_something_is_computed_by_it(self):
    def build(g, read):
      x = g.input(_X)
      size = g.op('Shape', 'Shape', x, dtype='int32', shape=(2,))
      taken = g.op('StridedSlice', 'size', size, compute=lambda s: s[read], dtype='int32', shape=())
      g.target('output', g.op('RealDiv', 'mean', x, taken, compute=lambda x, n: x / np.float32(n)))

    [source] = _divergence(lambda g: build(g, 0), lambda g: build(g, 1)).sources()
    ends = source.regions.tf1.end, source.regions.tf1.inner
    self.assertEqual(ends, (3, (2,)))

  def test_difference_that_only_grows_has_one_source(self):
    def build(g, fault=1.0):
      net = g.op('Mul', 'scale', g.input(_X), g.constant(np.float32(fault)))
      for number in range(6):
        net = g.op('Mul', f'grow_{number}', net, g.constant(np.float32(7)))
        net = g.op('Square', f'square_{number}', net)
        net = g.op('Mul', f'shrink_{number}', net, g.constant(np.float32(0.01)))
      g.target('output', net)

    divergence = _divergence(build, lambda g: build(g, 1 + 2e-5))
    self.assertEqual(_ends(divergence), ['scale'])
    relative = [size for _, size in divergence.growth(2)]
    self.assertGreater(relative[-1], 10 * relative[0])

  def test_rounding_is_no_source_where_there_is_another(self):
    def build(g, rounding=0.0, slope=0.2):
      x = g.input(_X)
      net = g.op('Exp', 'Exp', x, compute=lambda x: np.exp(x) * np.float32(1 + rounding))
      g.target('output', g.op('LeakyRelu', 'act', net, compute=lambda x: x * np.float32(slope)))

    divergence = _divergence(build, lambda g: build(g, 2e-7, 0.3))
    self.assertEqual(_ends(divergence), ['act'])
    divergence = _divergence(build, lambda g: build(g, 2e-7))
    self.assertEqual(_ends(divergence), ['Exp'])

  def test_difference_that_is_taken_back_is_no_source_where_there_is_another(self):
    def build(g, other=1.0, fault=1.0):
      there = g.op('Mul', 'there', g.input(_X), g.constant(np.float32(other)))
      back = g.op('Mul', 'back', there, g.constant(np.float32(1 / other)))
      net = g.op('Neg', 'net', back)
      g.target('output', g.op('Mul', 'end', net, g.constant(np.float32(fault))))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, 4.0, 2.0))), ['end'])
    self.assertEqual(_ends(_divergence(build, lambda g: build(g, 4.0))), ['there'])

  def test_shape_that_is_taken_back_is_no_source_where_there_is_another(self):
    def build(g, pad=1, fault=1.0):
      there = g.op('Pad', 'there', g.input(_X), compute=lambda x: np.pad(x, ((0, pad), (0, 0))))
      back = g.op('Slice', 'back', there, compute=lambda x: x[: len(_X)])
      g.target('output', g.op('Mul', 'end', back, g.constant(np.float32(fault))))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, 2, 2.0))), ['end'])

  def test_two_spellings_of_equal_values_are_not_blamed(self):
    def build(g, spelt_out=False, scale=1.0):
      x = g.input(_X)
      if spelt_out:
        net = g.op('Mul', 'layer/Mul', x, g.constant(np.float32(0.2)))
        net = g.op('Maximum', 'layer/Maximum', x, net, compute=np.maximum)
      else:
        net = g.op('LeakyRelu', 'LeakyRelu', x)
      net = g.op('Mul', 'scale', net, g.constant(np.float32(scale)))
      g.target('output', g.op('MatMul', 'MatMul', net, g.variable('a', _WEIGHTS['a'])))

    self.assertEqual(_divergence(build, lambda g: build(g, True)).sources(), [])
    # A fault behind them is the only source; the spellings are still not blamed.
    divergence = _divergence(build, lambda g: build(g, True, 2.0))
    [source] = divergence.sources()
    self.assertEqual(_ends(divergence, [source]), ['scale'])
    self.assertEqual((source.regions.tf1.inner, source.regions.tf2.inner), ((), ()))

  def test_operation_that_yields_the_same_is_no_source_for_the_inputs_of_another(self):
    """Both sides negate a tensor, in two places: pairs by name that are no counterparts."""

    def build(g, early=True, fault=1.0):
      scaled = g.op('Mul', 'scaled', g.input(_X), g.constant(np.float32(fault)))
      inner = g.op('Exp', 'inner', scaled, compute=np.exp if early else lambda x: np.exp(-x))
      # The same in the end, up to rounding: 1 / exp(x), and exp(-x).
      net = g.op('Inv', 'net', inner, compute=lambda x: 1 / x if early else x)
      g.target('output', g.op('MatMul', 'MatMul', net, g.variable('a', _WEIGHTS['a'])))

    found = _divergence(build, lambda g: build(g, False)).sources()
    divergence = _divergence(build, lambda g: build(g, False))
    self.assertNotIn('net', _ends(divergence, found))

  def test_mask_of_great_numbers_hides_nothing(self):
    """Scores without their scale, all in one region with the mask; as an attention may be."""

    def build(g, scale=0.5, spelt=False):
      x = g.input(_X)
      keep = np.float32([[1, 0, 1]])
      scores = g.op('MatMul', 'scores', x, g.variable('a', _WEIGHTS['a']))
      if spelt:
        net = g.op(
          'Select', 'masked', scores, compute=lambda s: np.where(keep, s * scale, -1e9).astype('f')
        )
      else:
        net = g.op('Mul', 'scaled', scores, g.constant(np.float32(scale)))
        net = g.op('Mul', 'kept', net, g.constant(keep))
        net = g.op('Sub', 'masked', net, g.constant((1 - keep) * np.float32(1e9)))
      g.target('output', g.op('Softmax', 'softmax', net, compute=_softmax))

    divergence = _divergence(build, lambda g: build(g, 0.8))
    [source] = divergence.sources()
    self.assertEqual(_ends(divergence, [source]), ['scaled'])
    for kind in ('Select', 'Sub'):  # with a partner of its own type, and paired by name
      with self.subTest(kind):

        def other(g, kind=kind):
          build(g, 0.8, True)
          g.ops[-3] = dataclasses.replace(g.ops[-3], op_type=kind)

        divergence = _divergence(build, other)
        [source] = divergence.sources()
        self.assertEqual(_ends(divergence, [source]), ['masked' if kind == 'Sub' else 'softmax'])
        self.assertGreater(source.agreement.relative, 0.05)

  def test_mask_that_is_added_in_another_order_is_rounding(self):
    def build(g, first=True, slope=0.2):
      x = g.input(_X)
      mask = g.constant(np.float32([[0, -1e9, 0]]))
      one, other = g.variable('a', _WEIGHTS['a'][:1]), g.variable('b', _WEIGHTS['b'][:1])
      sums = (mask, one, other) if first else (one, other, mask)
      net = g.op('AddN', 'masked', x, *sums, compute=lambda *them: sum(them[1:], them[0]))
      net = g.op('Softmax', 'softmax', net, compute=_softmax)
      g.target('output', g.op('Mul', 'end', net, g.constant(np.float32(slope))))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, False, 0.3))), ['end'])

  def test_axes_of_length_one_are_no_source(self):
    def build(g, keepdims=False, slope=0.2):
      squeezed = g.op('Mean', 'Mean', g.input(_X), compute=lambda x: x.mean(1, keepdims=keepdims))
      net = g.op('Mul', 'gate', squeezed, g.constant(np.float32(slope)))
      net = net if keepdims else g.op('Reshape', 'column', net, compute=lambda x: x[:, None])
      g.target('output', g.op('Exp', 'end', net))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, True))), [])
    divergence = _divergence(build, lambda g: build(g, True, 0.3))
    [source] = divergence.sources()
    self.assertEqual(_ends(divergence, [source]), ['gate'])
    self.assertEqual((source.tf1.shape, source.tf2.shape), ((4,), (4, 1)))
    self.assertEqual(source.tf2_as_tf1.shape, (4,))
    self.assertLess(source.agreement.absolute, np.inf)

  def test_axis_that_is_broadcast_otherwise_is_one_where_it_begins(self):
    def build(g, keepdims=False):
      x = g.input(_X[:3])
      mean = g.op('Mean', 'Mean', x, compute=lambda x: x.mean(1, keepdims=keepdims))
      net = g.op('Exp', 'Exp', mean)
      g.target('output', g.op('Sub', 'end', x, net))

    divergence = _divergence(build, lambda g: build(g, True))
    self.assertEqual(_ends(divergence), ['Mean'])
    [source] = divergence.sources()
    self.assertEqual((source.tf1.shape, source.tf2.shape), ((3,), (3, 1)))

  def test_output_of_another_shape_is_one_where_it_begins(self):
    def build(g, keepdims=False):
      mean = g.op('Mean', 'Mean', g.input(_X), compute=lambda x: x.mean(1, keepdims=keepdims))
      g.target('output', g.op('Exp', 'Exp', mean))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, True))), ['Mean'])

  def test_many_ways_from_where_a_shape_begins_to_differ(self):
    def build(g, keepdims=False):
      net = g.op('Mean', 'Mean', g.input(_X), compute=lambda x: x.mean(1, keepdims=keepdims))
      for number in range(60):  # 2 ** 60 ways, as from the norm of all gradients
        other = g.op('Square', f'square_{number}', net)
        net = g.op('Sub', f'sub_{number}', net, g.op('Sub', f'inner_{number}', other, net))
        net = g.op('Mul', f'mul_{number}', net, g.constant(np.float32(0.4)))
      g.target('output', net)

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, True))), ['Mean'])

  def test_swapped_inputs_of_a_subtraction(self):
    def build(g, swapped=False):
      x = g.input(_X)
      parts = g.op('Exp', 'Exp', x), g.op('Neg', 'Neg', x)
      g.target('output', g.op('Sub', 'sub', *(parts[::-1] if swapped else parts)))

    divergence = _divergence(build, lambda g: build(g, True))
    self.assertEqual(_ends(divergence), ['sub'])
    self.assertEqual(_ends(_divergence(build, build)), [])

  def test_other_sign_that_is_taken_back_is_no_source(self):
    def build(g, negated=True, reduce='Sum', factor=2.0):
      x = g.input(_X)
      each = g.op('Exp', 'Exp', x)
      each = g.op('Neg', 'Neg', each) if negated else each
      each = g.op('MatMul', 'mixed', each, g.variable('a', _WEIGHTS['a']))
      each = g.op('Mul', 'weighted', each, g.constant(np.full((4, 3), factor, np.float32)))
      total = g.op(reduce, 'total', each)
      g.target('output', total if negated else g.op('Neg', 'turned', total))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, False))), [])
    self.assertEqual(_ends(_divergence(build, lambda g: build(g, False, 'Mean'))), ['output'])
    found = _divergence(build, lambda g: build(g, False, factor=3.0)).sources()
    self.assertTrue(found[0].layout.negated, 'an edit has to have the sign of the port')
    np.testing.assert_allclose(found[0].tf2_as_tf1, 1.5 * found[0].tf1, rtol=1e-6)

  def test_other_sign_begins_where_it_does(self):
    def build(g, swapped=False):
      x = g.input(_X)
      parts = g.op('Exp', 'Exp', x), g.variable('b', _X + 7.0)
      net = g.op('Sub', 'sub', *(parts[::-1] if swapped else parts))
      net = g.op('Mul', 'scaled', net, g.constant(np.full((4, 3), 0.5, np.float32)))
      g.target('output', g.op('Relu', 'relu', net))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, True))), ['sub'])

  def test_swapped_inputs_of_a_concatenation(self):
    def build(g, swapped=False):
      x = g.input(_X)
      parts = g.op('Exp', 'Exp', x), g.op('Neg', 'Neg', x)
      g.target('output', g.op('ConcatV2', 'concat', *(parts[::-1] if swapped else parts)))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, True))), ['concat'])

  def test_operation_fed_from_another_layer(self):
    def build(g, wired_to=0):
      x = g.input(_X)
      first = g.op('Exp', 'first', x)
      second = g.op('Exp', 'second', first)
      g.target('other', second)
      fed = (second, first)[wired_to]
      g.target('output', g.op('MatMul', 'MatMul', fed, g.variable('a', _WEIGHTS['a'])))

    divergence = _divergence(build, lambda g: build(g, 1))
    self.assertEqual(_ends(divergence), ['MatMul'])

  def test_shapes_that_differ(self):
    def build(g, axis=0):
      net = g.op('Sum', 'Sum', g.input(_X), compute=lambda x: x.sum(axis))
      g.target('output', g.chain(net, 'Neg', 'Exp'))

    divergence = _divergence(build, lambda g: build(g, 1))
    [source] = divergence.sources()
    self.assertEqual(_ends(divergence, [source]), ['Sum'])
    self.assertEqual((source.tf1.shape, source.tf2.shape), ((3,), (4,)))
    self.assertEqual(source.agreement.absolute, np.inf)

  def test_part_that_cannot_be_run_from_the_inputs_of_tf1_is_passed_over(self):
    def build(g, axis=0):
      net = g.op('Sum', 'Sum', g.input(_X), compute=lambda x: x.sum(axis))
      size = 3 if axis == 0 else 4
      weights = g.variable('w', np.ones((size, 2), np.float32))
      g.target('output', g.op('MatMul', 'MatMul', net, weights))

    divergence = _divergence(build, lambda g: build(g, 1))
    self.assertEqual(_ends(divergence), ['Sum'])

  @parameterized.parameters(np.float32('nan'), np.float32('inf'))
  def test_not_finite_on_one_side(self, value):
    def build(g, wrong=False):
      def compute(x):
        y = np.exp(x)
        if wrong:
          y[0, 0] = value
        return y

      g.target('output', g.chain(g.op('Exp', 'Exp', g.input(_X), compute=compute), 'Neg'))

    divergence = _divergence(build, lambda g: build(g, True))
    self.assertEqual(_ends(divergence), ['Exp'])
    self.assertEqual(divergence.output_agreement(1).absolute, np.inf)

  def test_nan_on_both_sides_agrees(self):
    def build(g):
      g.target('output', g.op('Sqrt', 'Sqrt', g.input(-np.abs(_X))))

    with np.errstate(invalid='ignore'):
      self.assertEqual(_divergence(build, build).sources(), [])

  @parameterized.parameters(
    (np.array([1, 2]), np.array([1, 3])),
    (np.array([True, False]), np.array([True, True])),
    (np.array([b'a', b'b'], object), np.array([b'a', b'c'], object)),
    (np.zeros((0, 2), np.float32), np.zeros((2, 0), np.float32)),
    (np.float32(1.0), np.float32(2.0)),
  )
  def test_outputs_of_every_kind(self, tf1, tf2):
    def build(g, value=tf1):
      g.target('output', g.op('Make', 'make', g.input(_X), compute=lambda x: value))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, tf2))), ['make'])
    self.assertEqual(_ends(_divergence(build, build)), [])

  def test_target_that_is_an_input_passed_through(self):
    def build(g, through=True):
      x = g.input(_X)
      g.target('output', x if through else g.op('Neg', 'Neg', x))

    divergence = _divergence(build, lambda g: build(g, False))
    self.assertEqual(_ends(divergence), ['output'])
    self.assertEqual(_ends(_divergence(build, build)), [])

  def test_target_that_is_a_constant(self):
    def build(g, value=1.0):
      g.target('output', g.constant(np.float32(value)))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, 2.0))), ['output'])
    self.assertEqual(_ends(_divergence(build, build)), [])

  def test_only_what_is_behind_the_targets_is_looked_at(self):
    def build(g, faults=(1.0, 1.0)):
      x = g.input(_X)
      for number, fault in enumerate(faults):
        g.target(f'output {number}', g.op('Mul', f'm{number}', x, g.constant(np.float32(fault))))

    def other(g):
      build(g, (2.0, 2.0))

    self.assertEqual(_ends(_divergence(build, other, ['output 1'])), ['m1'])
    self.assertEqual(_ends(_divergence(build, other, ['output 7'])), ['m0', 'm1'])
    self.assertEqual(_ends(_divergence(build, other)), ['m0', 'm1'])

  def test_all_writes_to_a_variable_are_behind_its_state(self):
    def build(g, faults=(1.0, 1.0)):
      x = g.input(_X)
      for fault, name in zip(faults, ('update of v', 'update of v (2)'), strict=True):
        value = g.op('Mul', f'{name}/m', x, g.constant(np.float32(fault)))
        g.target(name, value, op='AssignVariableOp')

    divergence = _divergence(build, lambda g: build(g, (1.0, 2.0)), ['update of v'])
    self.assertEqual(_ends(divergence), ['update of v (2)/m'])

  def test_outputs_that_nobody_reads_may_hold_anything(self):
    def build(g, reserve=0.0):
      net = g.op(
        'FusedBatchNormV3',
        'norm',
        g.input(_X),
        outputs=2,
        compute=lambda x: (x * 2, np.full(3, reserve, np.float32)),
      )
      g.target('output', net)

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, 1.0))), [])

  def test_opaque_values_are_never_fetched(self):
    def build(g, fault=1.0):
      x = g.input(_X)
      made = g.op('ListOf', 'list', x, dtype='variant', compute=lambda x: x)
      net = g.op('StackOf', 'stack', made, compute=lambda x: x * np.float32(fault))
      g.target('output', net)

    one, two = both(build, lambda g: build(g, 2.0))
    tf1, tf2 = one.run(), two.run()
    divergence = Divergence(tf1, tf2, [])
    self.assertEqual(_ends(divergence), ['stack'])
    for run in (tf1, tf2):
      self.assertFalse([names for names in run.fetched if f'{run.op_graph.side}/list:0' in names])

  def test_sources_that_share_unpaired_operations_are_one(self):
    def build(g, act='Relu'):
      net = g.chain(g.input(_X), f'{act} act')
      for name, value in list(_WEIGHTS.items())[:2]:
        g.target(f'output {name}', g.op('MatMul', f'{name}/m', net, g.variable(name, value)))

    divergence = _divergence(build, lambda g: build(g, 'Neg'))
    self.assertEqual(_ends(divergence), ['act'])

  def test_a_factor_at_another_place_is_no_source(self):
    def build(g, early=True, fault=1.0):
      x = g.input(_X)
      one, two = (0.5, 1.0) if early else (1.0, 0.5)
      net = g.op('Mul', 'weighted', x, g.constant(np.float32(one)))
      net = g.op('Sum', 'sum', net, compute=lambda x: np.sum(x, 1))
      net = g.op('Mul', 'factor', net, g.constant(np.float32(two)))
      other = g.op('Mean', 'mean', x, compute=lambda x: np.mean(x, 1) * np.float32(fault))
      g.target('output', g.op('AddV2', 'add', net, other))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, False, 2.0))), ['mean'])
    # Alone it is one, where it is not made up for.
    wrong = _divergence(build, lambda g: build(g, True, 2.0))
    self.assertEqual(_ends(wrong), ['mean'])

  def test_what_several_sources_read_is_one_if_it_explains_them(self):
    def build(g, act='Relu', faults=(1.0, 1.0)):
      net = g.chain(g.input(_X), f'{act} act')
      for fault, (name, value) in zip(faults, list(_WEIGHTS.items())[:2], strict=True):

        def times(x, w, fault=fault):
          return np.matmul(x, w) * np.float32(fault)

        made = g.op('MatMul', f'{name}/m', net, g.variable(name, value), compute=times)
        g.target(f'output {name}', made)

    self.assertEqual(
      _ends(_divergence(build, lambda g: build(g, 'Neg', (1.0, 3.0)))), ['act', 'b/m']
    )
    # Where it explains none, all readers are sources, of which the first one is shown.
    several = _divergence(build, lambda g: build(g, 'Neg', (2.0, 3.0)))
    self.assertEqual(_ends(several, several.all_sources()), ['a/m', 'b/m'])

  def test_gradient_that_is_sparse_on_one_side_is_not_compared(self):
    def build(g, sparse=True, fault=1.0):
      up = g.op('Mul', 'gradients/Mul', g.input(_X), g.constant(np.float32(fault)))
      if sparse:
        g.target('gradient w', up, g.constant(np.arange(4)))
      else:
        g.target('gradient w', g.op('Neg', 'gradients/dense', up))

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, False))), [])
    divergence = _divergence(build, lambda g: build(g, False, 2.0))
    self.assertEqual(_ends(divergence), ['gradients/Mul'])


class UpdateTest(absltest.TestCase):
  """`AssignSub` of a step against `Assign` of the new value."""

  def _build(self, g, kind='AssignSubVariableOp', momentum=0.9):
    mean = g.variable('moving_mean', np.float32([1.0, 2.0]))
    batch = g.op('Mean', 'mean', g.input(_X[:, :2]), compute=lambda x: x.mean(0))
    if kind.startswith('AssignSub'):
      step = g.op('Sub', 'step', mean, batch)
      step = g.op('Mul', 'scaled', step, g.constant(np.float32(1 - momentum)))
      g.target('update of moving_mean', step, op=kind)
    else:
      kept = g.op('Mul', 'kept', mean, g.constant(np.float32(momentum)))
      new = g.op('Mul', 'new', batch, g.constant(np.float32(1 - momentum)))
      g.target('update of moving_mean', g.op('AddV2', 'sum', kept, new), op=kind)

  def test_equal_states_are_not_blamed(self):
    found = _divergence(self._build, lambda g: self._build(g, 'AssignVariableOp')).sources()
    self.assertTrue(all(source.agreement.is_rounding for source in found))

  def test_other_states_are(self):
    divergence = _divergence(self._build, lambda g: self._build(g, 'AssignVariableOp', 0.99))
    self.assertEqual(_ends(divergence), ['update of moving_mean'])

  def test_same_kind_is_compared_as_it_is(self):
    divergence = _divergence(self._build, lambda g: self._build(g, momentum=0.99))
    self.assertEqual(_ends(divergence), ['scaled'])

  def test_variable_that_only_the_write_knows_is_not_compared_with_a_step(self):
    def build(g, adds=True):
      one = g.constant(np.float32(1.0))
      if adds:
        g.target('update of count', one, op='AssignAddVariableOp')
      else:
        count = g.variable('count', np.float32(5.0))
        g.target('update of count', g.op('AddV2', 'add', count, one), op='AssignVariableOp')

    self.assertEqual(_ends(_divergence(build, lambda g: build(g, False))), [])


class GrowthTest(absltest.TestCase):
  def test_growth_goes_from_the_source_to_what_differs(self):
    divergence = _divergence(_layers, lambda g: _layers(g, faults=(1,)))
    [source] = divergence.sources()
    growth = divergence.growth(source.regions.tf1.end)
    names = [divergence.pairing.tf1.ops[n].name for n, _ in growth]
    self.assertEqual(names, ['b/act', 'c/MatMul', 'c/act', 'd/MatMul', 'output (the output)'])
    self.assertTrue(all(relative > 0.01 for _, relative in growth))


class PortionsTest(absltest.TestCase):
  def test_little_is_fetched_at_once(self):
    def build(g, fault=False):
      net = g.input(_X)
      for number in range(10):
        factor = np.float32(2.0 if fault and number == 4 else 1.5)
        net = g.op('Mul', f'm{number}', net, g.constant(factor), shape=(4, 3))
      g.target('output', net)

    one, two = both(build, lambda g: build(g, True))
    with mock.patch.object(portions, '_PORTION_BYTES', 1):
      tf1 = one.run()
      divergence = Divergence(tf1, two.run(), [])
    self.assertLessEqual(max(len(names) for names in tf1.fetched), 2)
    self.assertEqual(_ends(divergence), ['m4'])

  def test_parts_run_alone_in_groups(self):
    with mock.patch.object(first_divergence, '_PARTS', 1):
      divergence = _divergence(_layers, lambda g: _layers(g, faults=(0, 2)))
      self.assertEqual(_ends(divergence), ['a/act', 'c/act'])

  def test_search_ends_some_way_behind_the_first_source(self):
    def build(g, faults=()):
      net = g.input(_X)
      for number in range(30):
        factor = np.float32(1.5 if number in faults else 1.0)
        net = g.op('Mul', f'm{number}', net, g.constant(factor), shape=(4, 3))
      g.target('output', net)

    with (
      mock.patch.object(first_divergence, '_PARTS', 2),
      mock.patch.multiple(portions, _FURTHER=4, _PORTION_BYTES=1),
    ):
      divergence = _divergence(build, lambda g: build(g, (2, 4, 29)))
    self.assertTrue(divergence.is_cut_short)
    self.assertEqual(_ends(divergence), ['m2', 'm4'])
    divergence = _divergence(build, lambda g: build(g, (2, 4, 29)))
    self.assertFalse(divergence.is_cut_short)
    self.assertEqual(_ends(divergence), ['m2', 'm4', 'm29'])


if __name__ == '__main__':
  absltest.main()
