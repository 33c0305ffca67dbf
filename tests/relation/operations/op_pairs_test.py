"""Tests of tf2verify.relation.operations.op_pairs."""

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.records.op_graph import OpRecord
from tf2verify.relation.operations.op_pairs import Pairing, family, is_backward

_X = np.ones((2, 3), np.float32)


def _pairing(build, other):
  one, two = both(build, other)
  return Pairing(one.graph(), two.graph())


def _names(pairing):
  """Returns pairs by name, without inputs, variables and targets of the same name."""
  found = {}
  for tf1, tf2 in pairing.pairs():
    op = pairing.tf1.ops[tf1]
    if not op.is_leaf and op.op_type != 'target':
      found[op.name] = pairing.tf2.ops[tf2].name
  return found


def _unpaired(graph, partners):
  return [op.name for op, other in zip(graph.ops, partners, strict=True) if other is None]


class PairingTest(absltest.TestCase):
  def test_ends_are_paired_by_what_they_are(self):
    def build(g):
      x, w = g.input(_X), g.variable('w', _X)
      g.target('output a', g.op('Mul', 'net/Mul', x, w))

    def other(g):
      w, x = g.variable('w', _X), g.input(_X)
      g.target('output b', g.op('Neg', 'net/Neg', w))
      g.target('output a', g.op('Mul', 'layer/Multiply', x, w))

    pairing = _pairing(build, other)
    self.assertEqual(pairing.tf2_of, [1, 0, 4, 5])
    self.assertEqual(_names(pairing), {'net/Mul': 'layer/Multiply'})
    self.assertEqual(_unpaired(pairing.tf2, pairing.tf1_of), ['net/Neg', 'output b'])

  def test_lost_relu_shifts_the_numbers_of_names_but_no_pair(self):
    kernels = ('a', 'b', 'c')

    def build(g, relus=(True, True, True), prefix=''):
      net, made = g.input(_X), 0
      for number, (name, relu) in enumerate(zip(kernels, relus, strict=True)):
        suffix = f'_{number}' if number else ''
        net = g.op('MatMul', f'{prefix}MatMul{suffix}', net, g.variable(name, _X))
        if relu:
          net = g.op('Relu', f'{prefix}Relu' + (f'_{made}' if made else ''), net)
          made += 1
      g.target('output', net)

    pairing = _pairing(build, lambda g: build(g, (False, True, True), 'layer/'))
    self.assertEqual(
      _names(pairing),
      {
        'MatMul': 'layer/MatMul',
        'MatMul_1': 'layer/MatMul_1',
        'MatMul_2': 'layer/MatMul_2',
        'Relu_1': 'layer/Relu',
        'Relu_2': 'layer/Relu_1',
      },
    )
    self.assertIn('Relu', _unpaired(pairing.tf1, pairing.tf2_of))

  def test_steps_are_paired_by_what_they_are_used_with(self):
    """The slice of a step goes with the outputs of that step, and not with one of its number."""

    def build(g, at=(0, 1, 2), first=0, gathers='Gather', port=False):
      labels, steps = g.input(_X, 'labels'), []
      for number, column in enumerate(at):
        suffix = f'_{number + first}' if number + first else ''
        begin = g.constant(np.array([0, column]))
        part = g.op('StridedSlice', f'strided_slice{suffix}', labels, begin)
        outputs = g.input(_X, f'outputs {number}')
        steps.append(
          g.op('Log', f'Log{suffix}', g.op(gathers, f'{gathers}{suffix}', outputs, part))
        )
      total = g.op('Pack', 'stack', *steps) if port else g.op('AddN', 'sum', *steps)
      g.target('loss value', g.op('Sum', 'Sum', total))

    for at in ((0, 1, 2), (1, 2, 3)):
      pairing = _pairing(
        lambda g: build(g, first=1), lambda g, at=at: build(g, at, 0, 'Take', port=True)
      )
      found = {n: m for n, m in _names(pairing).items() if 'slice' in n}
      names = ['strided_slice', 'strided_slice_1', 'strided_slice_2']
      with self.subTest(at=at):
        self.assertEqual(found, {f'strided_slice_{n + 1}': names[n] for n in range(3)})

  def test_a_product_that_is_subtracted_is_none_of_the_opposite(self):
    def build(g, kind='AddV2', factor=-1e30, slot=1):
      x, mask = g.input(_X, 'x'), g.input(_X, 'mask')
      product = g.op('Mul', 'mul', g.constant(np.float32(factor)), mask)
      g.target('output', g.op(kind, 'masked', *((x, product) if slot else (product, x))))

    for kind, factor, slot, is_paired in (
      ('Sub', 1e30, 1, False),
      ('AddV2', 1e30, 1, True),  # a wrong sign
      ('Sub', 1e30, 0, True),
      ('Sub', 1e9, 1, True),
    ):
      pairing = _pairing(build, lambda g, given=(kind, factor, slot): build(g, *given))
      with self.subTest(kind=kind, factor=factor, slot=slot):
        self.assertEqual('mul' in _names(pairing), is_paired)

  def test_swapped_inputs_are_paired_all_the_same(self):
    def build(g, swapped=False):
      x, y = g.input(_X, 'x'), g.input(_X, 'y')
      g.target('output', g.op('Sub', 'sub', *((y, x) if swapped else (x, y))))

    self.assertEqual(_names(_pairing(build, lambda g: build(g, True))), {'sub': 'sub'})

  def test_like_operations_of_one_input_go_by_constants(self):
    def build(g, order=(0, 1)):
      x = g.input(_X)
      parts = {n: g.op('Sum', f'side_{n}', x, g.constant(n)) for n in order}
      g.target('output', g.op('AddV2', 'add', parts[0], parts[1]))

    def other(g):
      x = g.input(_X)
      parts = {n: g.op('Sum', f'Sum_{9 - n}', x, g.constant(n)) for n in (1, 0)}
      g.target('output', g.op('AddV2', 'add', parts[0], parts[1]))

    self.assertEqual(
      _names(_pairing(build, other)), {'side_0': 'Sum_9', 'side_1': 'Sum_8', 'add': 'add'}
    )

  def test_readers_of_a_variable_with_other_numbers_of_inputs(self):
    def build(g, parts=(1, 1)):
      x, kernel = g.input(_X), g.variable('kernel', np.ones((3, 4), np.float32))
      g.target('output', g.op('ConcatV2', 'concat', kernel, *[g.constant(0)] * parts[0]))
      g.target('state', g.op('ConcatV2', 'concat_1', kernel, *[x] * parts[1]))

    pairing = _pairing(build, lambda g: build(g, (3, 2)))
    self.assertEqual(_names(pairing), {'concat': 'concat', 'concat_1': 'concat_1'})

  def test_calls_of_a_layer_in_another_order(self):
    def build(g, order=('a', 'b'), middle='Relu'):
      w = g.variable('w', _X)
      for name in order:
        # What is between differs, so that the product is found by its variable alone.
        net = g.op(middle, f'{name}/{middle}', g.op('Neg', f'{name}/Neg', g.input(_X, name)))
        number = order.index(name)
        g.target(f'output {name}', g.op('Square', 'Sq', g.op('MatMul', f'dense_{number}', net, w)))

    def other(g):
      build(g, order=('b', 'a'), middle='Exp')

    pairing = _pairing(build, other)
    found = _names(pairing)
    self.assertEqual((found['dense_0'], found['dense_1']), ('dense_1', 'dense_0'))

  def test_spellings_of_one_operation_go_together(self):
    def build(g, op_type='BiasAdd'):
      g.target('output', g.op(op_type, op_type, g.input(_X), g.variable('bias', _X[0])))

    self.assertEqual(_names(_pairing(build, lambda g: build(g, 'AddV2'))), {'BiasAdd': 'AddV2'})
    self.assertEqual(family('Gather'), family('ResourceGather'))

  def test_other_operations_do_not(self):
    def build(g, op_type='AddV2'):
      g.target('output', g.op(op_type, op_type, g.input(_X), g.variable('bias', _X[0])))

    self.assertEqual(_names(_pairing(build, lambda g: build(g, 'Sub'))), {})

  def test_random_operations_are_paired_where_they_count_alike(self):
    def build(g, draws=2, prefix=''):
      net = g.input(_X)
      for number in range(draws):
        noise = g.op('RandomUniform', f'{prefix}draw_{number}', g.constant((2, 3)))
        net = g.op('Mul', f'{prefix}Mul_{number}', net, noise)
      g.target('output', net)

    pairing = _pairing(build, lambda g: build(g, prefix='layer/x/'))
    self.assertEqual(pairing.tf2_of.count(None), 2)  # the constants
    pairing = _pairing(build, lambda g: build(g, draws=1, prefix='layer/x/'))
    self.assertNotIn('draw_1', _names(pairing))

  def test_what_is_made_of_constants_has_one_kind_of_dtype(self):
    """A mask that is filled with True is not a gradient that starts at one."""

    def build(g, op_type='Exp', dtype='float32'):
      filled = g.op('Fill', f'{op_type}/fill', g.constant((2, 3)), dtype=dtype)
      g.target(f'output {op_type}', g.op(op_type, op_type, filled))

    for dtype, paired in (('float16', True), ('bool', False), ('int32', False)):
      with self.subTest(dtype):
        found = _names(_pairing(build, lambda g, dtype=dtype: build(g, 'Neg', dtype)))
        self.assertEqual(found, {'Exp/fill': 'Neg/fill'} if paired else {})

  def test_constants_have_no_partner(self):
    def build(g):
      g.target('output', g.op('AddV2', 'add', g.input(_X), g.constant(1.0, 'one')))

    pairing = _pairing(build, build)
    self.assertEqual(_unpaired(pairing.tf1, pairing.tf2_of), ['one'])

  def test_every_operation_has_one_partner_at_most(self):
    def build(g, number=3):
      x = g.input(_X)
      for n in range(number):
        g.target(f'output {n}', g.chain(x, f'Neg n{n}', f'Exp e{n}'))

    pairing = _pairing(build, lambda g: build(g, 2))
    taken = [tf2 for _, tf2 in pairing.pairs()]
    self.assertLen(taken, len(set(taken)))
    for tf1, tf2 in pairing.pairs():
      self.assertEqual(pairing.tf1_of[tf2], tf1)

  def test_targets_of_one_name_are_paired_once(self):
    def build(g, times=1):
      w = g.variable('w', _X)
      for _ in range(times):
        g.target('regularization loss w', g.op('Sum', 'loss', w))

    for times in ((2, 1), (1, 2)):
      pairing = _pairing(lambda g: build(g, times[0]), lambda g: build(g, times[1]))  # noqa: B023
      self.assertEqual(sum(1 for _ in pairing.pairs()), 3)

  def test_name_of_another_spelling_is_no_pair(self):
    """`Neg` stands for another thing where one side has more of that name."""

    def build(g):
      g.target('output', g.chain(g.input(_X), 'Exp', 'Neg', 'Exp Exp_1', 'Neg Neg_1'))

    def other(g):
      g.target('output', g.chain(g.input(_X), 'Square', 'Neg', 'Square Square_1'))

    self.assertEqual(_names(_pairing(build, other)), {})

  def test_backward_operations_are_known_by_name(self):
    self.assertTrue(is_backward(OpRecord('gradients/net/Relu_grad/ReluGrad', 'ReluGrad', ())))
    self.assertFalse(is_backward(OpRecord('net/Relu', 'Relu', ())))

  def test_norm_of_all_gradients_reads_them_in_the_order_of_the_variables(self):
    def build(g, order):
      norms = []
      for name in order:
        gradient = g.op('Neg', f'{name}/Neg', g.variable(name, _X))
        g.target(f'gradient {name}', gradient)
        number = f'_{len(norms)}' if norms else ''
        norms.append(g.op('L2Loss', f'L2Loss{number}', gradient, shape=()))
      g.target('norm', g.op('Pack', 'stack', *norms, shape=(2,)))

    pairing = _pairing(lambda g: build(g, 'ab'), lambda g: build(g, 'ba'))
    found = _names(pairing)
    self.assertEqual((found['L2Loss'], found['L2Loss_1']), ('L2Loss_1', 'L2Loss'))


if __name__ == '__main__':
  absltest.main()
