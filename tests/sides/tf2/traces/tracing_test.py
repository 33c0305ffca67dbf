"""Tests of tf2verify.sides.tf2.traces.tracing."""

from unittest import mock

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.variables import given_variables
from tf2verify.sides.tf2.traces.tracing import NotTraceable, TracedPort
from tf2verify.sides.tf2.traces.ways_to_trace import trace
from tf2verify.tensorflow_internals import autograph

_X = np.array([1.0, -2.0, 3.0], np.float32)


def _run(compute, variables=(), inputs=_X, values=None):
  """Returns the run of a traced computation on `inputs`; variables go by their names."""
  traced = trace(compute, inputs)
  names = {id(variable.handle): variable.name.partition(':')[0] for variable in variables}
  given = values or {names[id(v.handle)]: v.numpy() for v in variables}
  by_name = {names[id(variable.handle)]: variable for variable in variables}
  return TracedPort(traced, names, given.__getitem__, by_name, prefix='').run()


def _outputs(run):
  targets = [op for op in run.op_graph.ops if op.op_type == 'target']
  found = {op.name: run.fetch(op.tensors)[0] for op in targets}
  run.close()
  return found


class TraceTest(absltest.TestCase):
  def test_computation_yields_what_it_yields_eagerly(self):
    w = tf.Variable([1.0, 2.0, 3.0], name='w')

    def compute(x):
      return {'output': tf.nn.relu(x * w + 1.0)}

    run = _run(compute, [w])
    self.assertEqual(run.op_graph.side, 'tf2')
    expected = compute(tf.constant(_X))['output']
    np.testing.assert_array_equal(_outputs(run)['output'], expected)

  def test_numbers_that_follow_from_shapes_are_read(self):
    def compute(x):
      return {'output': tf.stack([x[n] for n in range(int(tf.shape(x)[0]) - 1)])}

    run = _run(compute)
    np.testing.assert_array_equal(_outputs(run)['output'], _X[:2])
    with self.assertRaisesRegex(NotTraceable, 'TypeError'):
      trace(lambda x: {'output': x * float(tf.reduce_sum(x))}, _X)

  def test_values_of_variables_are_given(self):
    w = tf.Variable([1.0, 2.0, 3.0], name='w')
    run = _run(lambda x: {'output': x * w}, [w], values={'w': np.float32([5, 5, 5])})
    np.testing.assert_array_equal(_outputs(run)['output'], _X * 5)
    np.testing.assert_array_equal(w, [1, 2, 3])

  def test_values_are_given_in_portions(self):
    variables = [tf.Variable([float(n)], name=f'v{n}') for n in range(3)]
    with mock.patch.object(given_variables, '_PORTION_BYTES', 1):
      run = _run(lambda x: {'output': x * tf.add_n([v * 1.0 for v in variables])}, variables)
      np.testing.assert_array_equal(_outputs(run)['output'], _X * 3)

  def test_dtypes(self):
    for dtype in ('float64', 'bfloat16', 'float16', 'int32', 'bool', 'complex64'):
      with self.subTest(dtype):
        w = tf.Variable(tf.cast([1, 0, 1], dtype), name='w')
        found = _outputs(_run(lambda x: {'output': tf.identity(w)}, [w]))['output']  # noqa: B023
        np.testing.assert_array_equal(found, w.numpy())
        self.assertEqual(found.dtype, w.numpy().dtype)

  def test_strings_and_nests(self):
    inputs = {'words': np.array([b'a', b'bc']), 'many': (np.arange(3), np.zeros((0, 2), np.int64))}

    def compute(fed):
      size = tf.size(fed['many'][1], tf.int64)
      joined = tf.strings.join([fed['words'], fed['words']])
      return {'joined': joined, 'many': fed['many'][0] + size, 'empty': fed['many'][1]}

    found = _outputs(_run(compute, inputs=inputs))
    self.assertEqual(found['joined'].tolist(), [b'aa', b'bcbc'])
    np.testing.assert_array_equal(found['many'], [0, 1, 2])
    self.assertEqual(found['empty'].shape, (0, 2))

  def test_eager_tensors_are_constants(self):
    table = tf.constant([10.0, 20.0, 30.0])
    run = _run(lambda x: {'output': x + table, 'same': table, 'number': 3.0, 'fed': x})
    constants = [op.constant for op in run.op_graph.ops if op.op_type == 'Const']
    self.assertTrue(any(np.array_equal(value, table) for value in constants))
    found = _outputs(run)
    np.testing.assert_array_equal(found['output'], _X + np.array(table))
    np.testing.assert_array_equal(found['same'], [10, 20, 30])
    np.testing.assert_array_equal(found['fed'], _X)
    self.assertEqual(found['number'], 3.0)

  def test_indexed_slices_are_two_tensors(self):
    w = tf.Variable(np.ones((4, 2), np.float32), name='w')

    def compute(x):
      gathered = tf.gather(w, tf.cast(tf.abs(x), tf.int32))
      return {'gradient w': tf.gradients(tf.reduce_sum(gathered), [w])[0]}

    run = _run(compute, [w])
    target = run.op_graph.ops[run.op_graph.targets()['gradient w']]
    values, indices = run.fetch(target.tensors)
    run.close()
    self.assertEqual((values.shape, indices.tolist()), ((3, 2), [1, 2, 3]))

  def test_state_written_and_read_again(self):
    """Eagerly, a read sees the writes before it; so it does in the graph."""
    count = tf.Variable(5.0, name='count')

    def compute(x):
      before = x * count
      count.assign_add(1.0)
      after = x * count
      return {'before': before, 'after': after}

    run = _run(compute, [count])
    for _ in range(2):
      found = {
        name: run.fetch(run.op_graph.ops[n].tensors)[0]
        for name, n in run.op_graph.targets().items()
        if not name.startswith('update')
      }
      np.testing.assert_array_equal(found['before'], _X * 5)
      np.testing.assert_array_equal(found['after'], _X * 6)
    self.assertIn('update of count', run.op_graph.targets())
    run.close()
    self.assertEqual(count.numpy(), 5.0)


class UserCodeTest(absltest.TestCase):
  def test_function_inside_is_inlined(self):
    @tf.function
    def inner(x):
      return tf.exp(x, name='inside')

    run = _run(lambda x: {'output': inner(x) * 2.0})
    types = [op.op_type for op in run.op_graph.ops]
    self.assertIn('Exp', types)
    self.assertFalse([kind for kind in types if 'Call' in kind])
    np.testing.assert_allclose(_outputs(run)['output'], 2 * np.exp(_X), rtol=1e-6)

  def test_control_flow_over_tensors_is_rewritten(self):
    def user(x):
      y = -x
      if tf.reduce_sum(x) > 0:
        y = tf.exp(x)
      for _ in tf.range(2):
        y = y + 1.0
      return y

    def compute(x):
      return {'output': autograph.converted(user)(x)}

    run = _run(compute)
    self.assertTrue(any(op.functions for op in run.op_graph.ops))
    np.testing.assert_allclose(_outputs(run)['output'], np.exp(_X) + 2, rtol=1e-6)

  def test_numpy_is_not_traceable(self):
    with self.assertRaisesRegex(NotTraceable, 'numpy'):
      trace(lambda x: {'output': tf.constant(x.numpy() * 2)}, _X)

  def test_error_of_the_user_is_named(self):
    def compute(x):
      raise RuntimeError('the user\nhas said')

    with self.assertRaisesRegex(NotTraceable, 'RuntimeError: the user has said'):
      trace(compute, _X)

  def test_globals_are_as_before_also_after_an_error(self):
    def failing(x):
      raise RuntimeError('no')

    for eagerly in (False, True):
      before = tf.config.functions_run_eagerly()
      tf.config.run_functions_eagerly(eagerly)
      try:
        trace(lambda x: {'output': x}, _X)
        self.assertEqual(tf.config.functions_run_eagerly(), eagerly)
        with self.assertRaises(NotTraceable):
          trace(failing, _X)
        self.assertEqual(tf.config.functions_run_eagerly(), eagerly)
        self.assertTrue(tf.executing_eagerly())
      finally:
        tf.config.run_functions_eagerly(before)

  def test_interrupt_passes_through(self):
    def compute(x):
      raise KeyboardInterrupt

    with self.assertRaises(KeyboardInterrupt):
      trace(compute, _X)
    self.assertFalse(tf.config.functions_run_eagerly())

  def test_lookup_table_is_not_traceable(self):
    keys, values = tf.constant(['a', 'b']), tf.constant([1, 2])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)
    with self.assertRaisesRegex(NotTraceable, 'lookup table'):
      _run(lambda x: {'output': table.lookup(x)}, inputs=np.array([b'a', b'c']))

  def test_variable_of_nobody_is_not_traceable(self):
    hidden = tf.Variable(2.0)
    with self.assertRaisesRegex(NotTraceable, 'layer.variables'):
      _run(lambda x: {'output': x * hidden})

  def test_py_function_runs_once_traced(self):
    def compute(x):
      return {'output': tf.py_function(lambda y: y * 2.0, [x], tf.float32)}

    np.testing.assert_array_equal(_outputs(_run(compute))['output'], _X * 2)


if __name__ == '__main__':
  absltest.main()
