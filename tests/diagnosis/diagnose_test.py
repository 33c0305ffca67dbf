"""Tests of tf2verify.diagnosis.diagnose."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.diagnose import diagnose
from tf2verify.records.diagnosis import GraphAspect
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.observation import SourceLine
from tf2verify.records.tensor_key import TensorKey

_RUN = 'inference, distinct values'
_RANDOM = np.random.default_rng(0)
_X = _RANDOM.standard_normal((4, 3)).astype(np.float32)
_W = _RANDOM.standard_normal((3, 3)).astype(np.float32)
_ARRAY = ArrayDifference((4, 3), 'float32', 1, 12, (0, 0), 1.0, 2.0, 1.0, 1.0, 1e-6, 1e-5)


def _differs(quantity='output', subject='(the output)', run=_RUN, array=_ARRAY, port_name=''):
  key = TensorKey(quantity, subject, run, port_name)
  return Difference.of(key, Aspect.VALUES, array=array)


def _layers(g, relu=True, scale=1.0, depth=3, act='Relu'):
  net = g.input(_X)
  for number in range(depth):
    net = g.op('MatMul', f'layer_{number}/MatMul', net, g.variable(f'layer_{number}/w', _W))
    if number or relu:
      net = g.op(act, f'layer_{number}/{act}', net)
    net = g.op('Mul', f'layer_{number}/Mul', net, g.constant(np.float32(scale)))
  g.target('output (the output)', net)


def _diagnosis(build, other, *differences, stage='zero_randomness', **arguments):
  one, two = both(build, other)
  found = differences or (_differs(),)
  return diagnose(stage, _RUN, found, (), (one.run(), two.run()), **arguments)


class DiagnoseTest(absltest.TestCase):
  def test_fault_is_named_with_what_differs_in_the_graphs(self):
    found = _diagnosis(_layers, lambda g: _layers(g, relu=False))
    [source] = found.sources
    self.assertEqual((source.tf1_op, source.tf2_op), ('layer_0/Mul', 'layer_0/Mul'))
    self.assertEqual((source.tf1_path, source.tf2_path), (('Relu', 'Mul'), ('Mul',)))
    self.assertEqual([d.aspect for d in source.differences], [GraphAspect.MISSING])
    self.assertFalse(source.alone)
    self.assertEqual(source.tf1_output.shape, (4, 3))
    self.assertGreater(source.tf1_output.zeros, source.tf2_output.zeros)
    self.assertEqual((found.run, found.operations, found.paired), (_RUN, 14, 13))
    self.assertEqual(found.growth[-1].op, 'output (the output)')
    self.assertGreaterEqual(found.seconds, 0)

  def test_equal_graphs_say_so(self):
    found = _diagnosis(_layers, _layers)
    self.assertEqual((found.sources, found.growth, found.causes), ((), (), ()))
    self.assertIn('traced as a graph, the port agrees with tf1', found.notes[0])

  def test_what_is_no_number_is_not_said_to_agree(self):
    missing = Difference('output', 'b', Aspect.PRESENCE, '(3,)', 'missing', _RUN)
    self.assertEqual(_diagnosis(_layers, _layers, missing).notes, ())

  def test_many_sources_are_counted(self):
    found = _diagnosis(
      lambda g: _layers(g, depth=15, act='Neg'),
      lambda g: _layers(g, scale=2.0, depth=15, act='Neg'),
    )
    self.assertLen(found.sources, 12)
    self.assertIn('3 more such operations', found.notes)

  def test_growth_is_thinned_out(self):
    found = _diagnosis(
      lambda g: _layers(g, depth=40, act='LeakyRelu'),
      lambda g: _layers(g, relu=False, depth=40, act='LeakyRelu'),
    )
    self.assertLen(found.growth, 48)
    self.assertEqual(found.growth[0].op, 'layer_0/Mul')
    self.assertEqual(found.growth[-1].op, 'output (the output)')

  def test_initial_values_that_differ_are_where_the_sides_part(self):
    one, two = both(lambda g: _layers(g, scale=1.0), lambda g: _layers(g, scale=1.0 + 1e-7))
    lines = SourceLine('m.py', 3, 'net', 'w = get()'), SourceLine('p.py', 4, 'call', 'w = add()')
    found = diagnose(
      'seeded_constant',
      _RUN,
      (_differs(), _differs('initial value', 'w', port_name='v')),
      (
        FailedTensor('initial value', 'w', _RUN, np.ones(4), np.zeros(4)),
        FailedTensor('initial value', 'w', 'another run', np.ones(4), np.zeros(4)),
      ),
      (one.run(), two.run()),
      variable_lines={'w': lines},
    )
    [source] = found.sources
    self.assertTrue(source.is_initial_value)
    self.assertEqual((source.tf1_op, source.tf2_op), ('w', 'v'))
    self.assertEqual((source.tf1_source, source.tf2_source), lines)
    self.assertEqual([cause.rule for cause in found.causes], ['initializer_scale'])
    self.assertEqual(found.growth, ())

  def test_rounding_that_does_not_reach_what_differs_is_no_divergence(self):
    def sides():
      one, two = both(
        lambda g: _layers(g, act='Neg'), lambda g: _layers(g, act='Neg', scale=1.0 + 1e-7)
      )
      return one.run(), two.run()

    self.assertEqual(diagnose('seeded_constant', _RUN, (_differs(),), (), sides()).sources, ())
    small = _differs(array=dataclasses.replace(_ARRAY, greatest_absolute=1e-6))
    self.assertNotEmpty(diagnose('seeded_constant', _RUN, (small,), (), sides()).sources)

  def test_without_runs_there_is_no_source(self):
    found = diagnose('zero_randomness', '', (_differs(),), (), None)
    self.assertEqual((found.sources, found.notes, found.operations), ((), (), 0))

  def test_not_traceable_is_a_note(self):
    found = diagnose('zero_randomness', _RUN, (_differs(),), (), None, 'it calls .numpy()')
    self.assertEqual(found.sources, ())
    self.assertEqual(
      found.notes,
      ('the port cannot be traced as a graph, so no operation is named: it calls .numpy()',),
    )

  def test_differences_of_other_runs_are_left_alone(self):
    def build(g, faults=(1.0, 1.0)):
      x = g.input(_X)
      for name, fault in zip('ab', faults, strict=True):
        g.target(f'output {name}', g.op('Mul', f'Mul_{name}', x, g.constant(np.float32(fault))))

    found = _diagnosis(
      build,
      lambda g: build(g, (2.0, 2.0)),
      _differs(subject='b'),
      _differs(subject='a', run='training, constant'),
    )
    self.assertEqual([source.tf1_op for source in found.sources], ['Mul_b'])

  def test_names_of_the_port_are_no_part_of_the_target(self):
    def build(g, fault=1.0):
      w = g.variable('w', _W)
      g.target('gradient w', g.op('Mul', 'gradients/Mul', w, g.constant(np.float32(fault))))
      g.target('gradient other', g.op('Neg', 'gradients/Neg', w))

    found = _diagnosis(
      build, lambda g: build(g, 2.0), _differs('gradient', 'w', port_name='v'), stage='gradients'
    )
    self.assertEqual([source.tf1_op for source in found.sources], ['gradients/Mul'])
    self.assertEqual(found.operations, 3)


class GradientsTest(absltest.TestCase):
  def _build(self, g, slope=0.2, through=()):
    x, w = g.input(_X), g.variable('w', _W)
    dot = g.op('MatMul', 'MatMul', x, w, through={1: through})
    act = g.op('LeakyRelu', 'act', dot, alpha=slope, compute=lambda x: x * np.float32(slope))
    back = g.op('ReluGrad', 'gradients/grad', act, dot)
    g.target('output (the output)', act)
    g.target('gradient w', back)

  def test_sources_of_the_forward_pass_come_alone(self):
    found = _diagnosis(
      self._build,
      lambda g: self._build(g, 0.3),
      _differs('gradient', 'w'),
      stage='gradients',
    )
    self.assertEqual([source.tf1_op for source in found.sources], ['act'])

  def test_gradient_path(self):
    found = _diagnosis(
      self._build,
      lambda g: self._build(g, through=('StopGradient',)),
      Difference('gradient', 'w', Aspect.PRESENCE, '(3, 3)', 'None', _RUN),
      stage='gradients',
    )
    self.assertEqual([d.tf2 for d in found.gradient_differences], ['StopGradient'])
    self.assertEqual([source.absolute for source in found.sources], [0.0])
    self.assertEqual(
      _diagnosis(
        self._build, lambda g: self._build(g, through=('StopGradient',))
      ).gradient_differences,
      (),
    )


class StoppedTest(absltest.TestCase):
  def _found(self, fault, stops):
    def build(g, scale=1.0, through=()):
      weights = g.variable('w', _W)
      net = g.op('Neg', 'net', weights, through={0: through})
      g.target('output (the output)', net)
      kernel = g.constant(np.float32(scale))
      g.target('gradient w', g.op('Mul', 'gradients/net', weights, kernel))

    return _diagnosis(
      build, lambda g: build(g, fault, stops), _differs('gradient', 'w'), stage='gradients'
    )

  def test_stop_is_the_place(self):
    found = self._found(2.0, ('StopGradient',))
    self.assertEqual([cause.rule for cause in found.causes], ['stop_gradient'])
    self.assertEqual([source.tf1_op for source in found.sources], ['net'])
    self.assertEqual(found.sources[0].tf2_path, ('StopGradient', 'Neg'))

  def test_without_a_stop_the_backward_pass_is(self):
    found = self._found(2.0, ('Identity',))
    self.assertEqual([source.tf1_op for source in found.sources], ['gradients/net'])


class UpdatesTest(absltest.TestCase):
  def _build(self, g, writes=1):
    x = g.input(_X)
    for number in range(writes):
      name = 'update of v' + (f' ({number + 1})' if number else '')
      g.target(name, x, op='AssignVariableOp')
    g.target('update of v/other', x, op='AssignVariableOp')

  def test_number_of_writes(self):
    state = _differs('state after the call', 'v', port_name='w')
    found = _diagnosis(self._build, lambda g: self._build(g, 2), state)
    self.assertEqual(found.updates, (('v', 1, 2),))
    self.assertEqual(found.notes, ())
    found = _diagnosis(self._build, lambda g: self._build(g, 0), state)
    self.assertEqual(found.updates, (('v', 1, 0),))

  def test_equal_numbers_are_nothing(self):
    state = _differs('state after the call', 'v')
    self.assertEqual(_diagnosis(self._build, self._build, state).updates, ())


if __name__ == '__main__':
  absltest.main()
