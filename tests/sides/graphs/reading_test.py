"""Tests of tf2verify.sides.graphs.reading."""

import dataclasses

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.op_graph import CONSTANT, INPUT, TARGET, VARIABLE
from tf2verify.sides.graphs.reading import GraphReader, Target, regularization_target
from tf2verify.tensorflow_internals.graphs import set_input

v1 = tf.compat.v1


def _read(graph, targets, variables=(), writes=()):
  """Reads the operations behind some tensors; every placeholder is an input."""
  inputs = {op.name: f'[{op.name}]' for op in graph.get_operations() if op.type == 'Placeholder'}
  reader = GraphReader(graph, {name: name for name in variables}, inputs, {})
  found = [Target(f'output {n}', (tensor.name,)) for n, tensor in enumerate(targets)]
  return reader.read(found, [op.name for op in writes], 'tf1')


def _by_name(op_graph):
  return {op.name: op for op in op_graph.ops}


class LeavesTest(absltest.TestCase):
  def test_inputs_variables_constants_and_targets(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [2, 3], name='x')
      w = v1.get_variable('w', [3, 4])
      net = tf.add(tf.matmul(x, w, name='dot'), 2.0, name='sum')
      tf.nn.relu(net, name='unused')
    found = _read(graph, [net], ['w'])
    self.assertEqual(
      [op.op_type for op in found.ops], [INPUT, VARIABLE, 'MatMul', CONSTANT, 'AddV2', TARGET]
    )
    ops = _by_name(found)
    self.assertEqual(ops['dot'].inputs, ((0, 0), (1, 0)))
    self.assertEqual(ops['dot'].input_names, ('a', 'b'))
    self.assertEqual(ops['dot'].attribute('transpose_b'), False)
    self.assertEqual(ops['dot'].outputs, (('float32', (2, 4)),))
    self.assertEqual(ops['dot'].tensors, ('dot:0',))
    self.assertEqual(ops['sum/y'].constant, 2.0)
    self.assertEqual(ops['w'].outputs, (('float32', (3, 4)),))
    self.assertEqual(ops['output 0'].inputs, ((4, 0),))

  def test_what_was_put_between_later(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      net = tf.subtract(x, tf.tanh(x, name='tanh'), name='sub')
      made = tf.multiply(graph.get_tensor_by_name('tanh:0'), 2.0, name='twice')
      set_input(net.op, 1, made)
    ops = _by_name(_read(graph, [net]))
    self.assertLen(ops['sub'].inputs, 2)
    self.assertEqual([*ops].index('sub'), [*ops].index('twice') + 1)

  def test_reference_and_resource_variables_are_the_same_leaf(self):
    for use_resource in (False, True):
      with self.subTest(use_resource=use_resource), tf.Graph().as_default() as graph:
        w = v1.get_variable('w', [3], use_resource=use_resource)
        net = tf.add(w, tf.identity(w), name='sum')
        found = _read(graph, [net], ['w'])
        self.assertEqual([op.op_type for op in found.ops], [VARIABLE, 'AddV2', TARGET])
        self.assertEqual(found.ops[1].inputs, ((0, 0), (0, 0)))
        self.assertEqual(found.ops[0].outputs, (('float32', (3,)),))
        with v1.Session(graph=graph) as session:
          session.run(v1.global_variables_initializer())
          self.assertEqual(session.run(found.ops[0].tensors[0]).shape, (3,))

  def test_large_constants_have_no_value(self):
    with tf.Graph().as_default() as graph:
      net = tf.constant(np.ones(5000, np.float32), name='large') + tf.constant(
        np.ones(5000, np.float32), name='too'
      )
    self.assertIsNone(_by_name(_read(graph, [net]))['large'].constant)

  def test_outputs_that_are_an_input_a_variable_or_a_constant(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.string, [None], name='x')
      w = v1.get_variable('w', [3], use_resource=True)
      found = _read(graph, [x, w.read_value(), tf.constant(1.0)], ['w'])
    types = [found.ops[op.inputs[0][0]].op_type for op in found.ops if op.op_type == TARGET]
    self.assertEqual(types, [INPUT, VARIABLE, CONSTANT])
    self.assertEqual(found.ops[0].outputs, (('string', (None,)),))

  def test_unknown_rank(self):
    with tf.Graph().as_default() as graph:
      net = tf.negative(v1.placeholder(tf.float32, name='x'), name='net')
    self.assertEqual(_by_name(_read(graph, [net]))['net'].outputs, (('float32', None),))

  def test_constants_by_name_of_a_placeholder(self):
    with tf.Graph().as_default() as graph:
      net = tf.negative(v1.placeholder(tf.float32, [], name='captured'), name='net')
    reader = GraphReader(graph, {}, {}, {'captured': np.float32(3.0)})
    found = reader.read([Target('output', (net.name,))], (), 'tf2')
    self.assertEqual((found.ops[0].op_type, found.ops[0].constant), (CONSTANT, 3.0))


class UpdateTest(absltest.TestCase):
  def test_a_write_that_runs_before_an_output_only_by_control(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      w = v1.get_variable('w', [3], use_resource=True)
      with tf.control_dependencies([w.assign_sub(x * 2.0)]):
        net = tf.negative(x, name='net')
        after = tf.negative(w.read_value(), name='after')
      before = tf.negative(w, name='before')
    found = _read(graph, [net, after, before], ['w'])
    self.assertIn('update of w', [op.name for op in found.ops if op.op_type == TARGET])
    ops = _by_name(found)
    read = {name: found.ops[ops[name].inputs[0][0]].name for name in ('after', 'before')}
    self.assertEqual(read, {'after': 'w after its update', 'before': 'w'})

  def test_what_a_loop_reads_by_a_handle_after_a_write(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      w = v1.get_variable('w', [3], use_resource=True)

      def looped(name):
        return tf.while_loop(lambda n, _: n < 2, lambda n, y: (n + 1, y * w), (0, x), name=name)[1]

      before = looped('before')
      with tf.control_dependencies([before, w.assign_sub(x * 2.0)]):
        after = looped('after')
    found = _read(graph, [before, after], ['w'])
    read = {
      op.name: [found.ops[n].name for n, _ in op.inputs if found.ops[n].op_type == VARIABLE]
      for op in found.ops
      if op.op_type.endswith('While')
    }
    self.assertEqual(read, {'before': ['w'], 'after': ['w after its update']})


class PassingTest(absltest.TestCase):
  def test_what_passes_a_value_on_is_no_operation(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [2], name='x')
      net = tf.negative(tf.stop_gradient(tf.identity(x)), name='net')
      passed = tf.identity(net)
    found = _read(graph, [passed])
    self.assertEqual([op.op_type for op in found.ops], [INPUT, 'Neg', TARGET])
    # In the order of the computation.
    self.assertEqual(found.ops[1].through, (('Identity', 'StopGradient'),))
    self.assertEqual(found.ops[2].through, (('Identity',),))

  def test_overridden_and_custom_gradients_are_marked(self):
    @tf.custom_gradient
    def twice(x):
      return x * 2.0, lambda up: up

    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [2], name='x')
      with graph.gradient_override_map({'Identity': 'Zeros'}):
        passed = tf.identity(x)
      with graph.gradient_override_map({'Neg': 'Zeros'}):
        negative = tf.negative(passed, name='net')
      net = tf.exp(twice(negative), name='exp')
    ops = _by_name(_read(graph, [net]))
    self.assertEqual(ops['net'].through, (('gradient of Zeros',),))
    self.assertEqual(ops['net'].attribute('_gradient_op_type'), 'Zeros')
    self.assertIn('custom gradient', ops['exp'].through[0])

  def test_names_of_many_inputs(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [2], name='x')
      net = tf.concat([x, x, -x], 0, name='concat')
    self.assertEqual(
      _by_name(_read(graph, [net]))['concat'].input_names,
      ('values[0]', 'values[1]', 'values[2]', 'axis'),
    )


class UpdatesTest(absltest.TestCase):
  def test_writes_to_variables_are_targets(self):
    for use_resource in (False, True):
      with self.subTest(use_resource=use_resource), tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [3], name='x')
        v = v1.get_variable('v', [3], use_resource=use_resource)
        update = v1.assign_sub(v, tf.exp(x, name='step'))
        group = tf.group(update, v1.assign(v, x).op)
        found = _read(graph, [x], ['v'], [group])
      ops = _by_name(found)
      kinds = ('AssignSubVariableOp', 'AssignVariableOp')
      kinds = kinds if use_resource else ('AssignSub', 'Assign')
      self.assertEqual(ops['update of v'].attribute('op'), kinds[0])
      self.assertEqual(ops['update of v (2)'].attribute('op'), kinds[1])
      self.assertEqual(found.ops[ops['update of v'].inputs[0][0]].name, 'step')
      self.assertEqual(list(found.targets())[-2:], ['update of v', 'update of v (2)'])

  def test_targets_alone_are_those_of_the_whole(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      v = v1.get_variable('v', [3], use_resource=True)
      update = v1.assign_sub(v, tf.exp(x)).op
      targets = [Target('output 0', (tf.tanh(x * v).name,))]
    reader = GraphReader(graph, {'v': 'v'}, {'x': 'x'}, {})
    alone = reader.read_targets(targets, [update.name], 'tf2')
    whole = GraphReader(graph, {'v': 'v'}, {'x': 'x'}, {}).read(targets, [update.name], 'tf2')
    ends = [op for op in whole.ops if op.op_type == TARGET]
    self.assertEqual([op.name for op in alone.ops], ['output 0', 'update of v'])
    for one, other in zip(alone.ops, ends, strict=True):
      bare = dataclasses.replace(other, inputs=(), through=())
      self.assertEqual(vars(one), vars(bare))

  def test_updates_of_others_are_not(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      local = v1.get_variable('local', [3])
      found = _read(graph, [x], [], [v1.assign(local, x).op])
    self.assertEqual(list(found.targets()), ['output 0'])


class FunctionsTest(absltest.TestCase):
  def _loop(self, slope):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      _, net = tf.while_loop(
        lambda i, _: i < 3, lambda i, s: (i + 1, tf.nn.leaky_relu(s, slope)), [0, x], name='loop'
      )
      return _read(graph, [net])

  def test_loop_has_its_functions(self):
    loop = next(op for op in self._loop(0.25).ops if op.functions)
    self.assertEndsWith(loop.op_type, 'While')
    self.assertEqual([name for name, _ in loop.functions], ['body', 'cond'])
    body = dict(loop.functions)['body']
    leaky = next(op for op in body.ops if op.op_type == 'LeakyRelu')
    self.assertAlmostEqual(leaky.attribute('alpha'), 0.25)
    self.assertIn('argument 0', [op.name for op in body.ops])
    self.assertIn('result 0', body.targets())

  def test_condition_has_its_branches(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], name='x')
      flag = v1.placeholder(tf.bool, [], name='flag')
      net = tf.cond(flag, lambda: tf.exp(x), lambda: -x)
      found = _read(graph, [net])
    condition = next(op for op in found.ops if op.functions)
    types = [[op.op_type for op in function.ops] for _, function in condition.functions]
    self.assertEqual([name for name, _ in condition.functions], ['then_branch', 'else_branch'])
    self.assertIn('Exp', types[0])
    self.assertIn('Neg', types[1])

  def test_loop_of_control_flow_v1_is_read(self):
    """A builder may turn control flow v2 off; the loop is a cycle of operations then."""
    enabled = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
      found = self._loop(0.25)
    finally:
      if enabled:
        v1.enable_control_flow_v2()
    types = [op.op_type for op in found.ops]
    self.assertIn('LeakyRelu', types)
    self.assertIn('Exit', types)


class SourceTest(absltest.TestCase):
  def test_operations_know_the_line_that_made_them(self):
    def lines(op):
      return next((f.lineno for f in reversed(op.traceback) if f.filename == __file__), None)

    with tf.Graph().as_default() as graph:
      net = tf.exp(v1.placeholder(tf.float32, [3], name='x'), name='net')
    inputs = {'x': 'x'}
    reader = GraphReader(graph, {}, inputs, {})
    found = _by_name(reader.read([Target('output', (net.name,))], (), 'tf1'))['net']
    if found.source is not None:  # a test file of tf2verify's own checkout may count as no user's
      self.assertEqual(found.source.line, lines(net.op))


class TargetNameTest(absltest.TestCase):
  def test_names_are_unique(self):
    name = regularization_target(('a', 'b'), 3, ())
    self.assertEqual(name, 'regularization loss a, b')
    self.assertEqual(regularization_target((), 3, ()), 'regularization loss number 3')
    again = regularization_target(('a', 'b'), 4, {name})
    self.assertEqual(again, 'regularization loss a, b (2)')
    self.assertEqual(regularization_target(('a', 'b'), 5, {name, again})[-4:], ' (3)')


if __name__ == '__main__':
  absltest.main()
