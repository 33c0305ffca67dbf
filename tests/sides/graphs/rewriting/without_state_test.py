"""Tests of tf2verify.sides.graphs.rewriting.without_state."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise, without_state

v1 = tf.compat.v1
_START = {'a': 3.0, 'b': 10.0}


def _after(build):
  """Returns what variables hold after what `build` makes, and what else it returns."""
  graph = tf.Graph()
  with graph.as_default():
    variables = {name: tf.Variable(value, name=name) for name, value in _START.items()}
    made = build(variables['a'], variables['b'])
    tensors = [known.name for known in made if isinstance(known, tf.Tensor)]
    wanted = [(known.op if isinstance(known, tf.Tensor) else known).name for known in made]
  handles = {variable.handle.op.name: name for name, variable in variables.items()}
  part = v1.graph_util.extract_sub_graph(graph.as_graph_def(), [*wanted, *handles])
  known = without_state(part, list(handles))
  rewritten = tf.Graph()
  with rewritten.as_default():
    tf.import_graph_def(known.graph_def, name='')
    starts = [
      tf.raw_ops.AssignVariableOp(
        resource=rewritten.get_tensor_by_name(f'{handle}:0'), value=_START[name]
      )
      for handle, name in handles.items()
    ]
  with v1.Session(graph=rewritten) as session:
    session.run(starts)
    after = {name: known.after[handle] for handle, name in handles.items()}
    found = session.run({name: f'{tensor}:0' for name, tensor in after.items()})
    assert session.run(f'{after["a"]}:0') == found['a'], 'nothing is written'
    return found, session.run(tensors), known


class WithoutStateTest(absltest.TestCase):
  def test_reads_and_writes_in_order(self):
    def build(a, b):
      first = a.assign_add(2.0).op  # 5
      with tf.control_dependencies([first]):
        second = b.assign(a.read_value() * 2.0).op  # 10
      with tf.control_dependencies([second]):
        third = a.assign_sub(b.read_value() - 1.0).op  # -4
      with tf.control_dependencies([third]):
        return [a.read_value() * 100.0, third]

    after, (read,), _ = _after(build)
    self.assertEqual(after, {'a': -4.0, 'b': 10.0})
    self.assertEqual(read, -400.0)

  def test_read_before_a_write_is_the_value_before(self):
    def build(a, b):
      before = a.read_value() * 1.0
      with tf.control_dependencies([before]):
        return [before, b.assign_add(before).op, a.assign(7.0).op]

    after, (read,), _ = _after(build)
    self.assertEqual(after, {'a': 7.0, 'b': 13.0})
    self.assertEqual(read, 3.0)

  def test_rows_read_after_a_write_are_those_after_it(self):
    graph = tf.Graph()
    with graph.as_default():
      table = tf.Variable(np.arange(12.0).reshape(2, 3, 2), name='table')
      added = tf.raw_ops.ResourceScatterAdd(
        resource=table.handle, indices=[1], updates=np.ones((1, 3, 2))
      )
      with tf.control_dependencies([added]):
        rows = tf.raw_ops.ResourceGather(
          resource=table.handle, indices=[1, 0], dtype=tf.float64, name='rows'
        )
        batched = tf.raw_ops.ResourceGather(
          resource=table.handle, indices=[[2], [0]], dtype=tf.float64, batch_dims=1, name='batched'
        )
        points = tf.raw_ops.ResourceGatherNd(
          resource=table.handle, indices=[[1, 2, 0]], dtype=tf.float64, name='points'
        )
      names = [one.op.name for one in (rows, batched, points)]
    part = v1.graph_util.extract_sub_graph(graph.as_graph_def(), [*names, added.name])
    known = without_state(part, [table.handle.op.name])
    with tf.Graph().as_default() as rewritten, v1.Session(graph=rewritten) as session:
      tf.import_graph_def(known.graph_def, name='')
      start = tf.raw_ops.AssignVariableOp(
        resource=rewritten.get_tensor_by_name(f'{table.handle.op.name}:0'),
        value=np.arange(12.0).reshape(2, 3, 2),
      )
      session.run(start)
      found = session.run([f'{name}:0' for name in names])
    after = np.arange(12.0).reshape(2, 3, 2)
    after[1] += 1.0
    np.testing.assert_array_equal(found[0], after[[1, 0]])
    np.testing.assert_array_equal(found[1], [after[0][[2]], after[1][[0]]])
    np.testing.assert_array_equal(found[2], [after[1, 2, 0]])

  def test_a_call_that_reads_after_a_write_is_refused(self):
    def build(a, b):
      del b
      added = a.assign_add(2.0).op
      with tf.control_dependencies([added]):
        read = tf.cond(tf.constant(True), a.read_value, lambda: 0.0)
      return [read * 1.0, added]

    with self.assertRaisesRegex(WrittenOtherwise, 'reads a variable after it is written'):
      _after(build)

  def test_fused_update_is_its_formula(self):
    def build(a, b):
      step = tf.raw_ops.ResourceApplyMomentum(
        var=a.handle, accum=b.handle, lr=0.5, grad=2.0, momentum=0.1, name='update'
      )
      return [step]

    after, _, known = _after(build)
    self.assertEqual(after, {'a': 3.0 - 0.5 * 3.0, 'b': 3.0})
    formula = [node for node in known.graph_def.node if node.name.startswith('update/formula/')]
    self.assertIn('Mul', {node.op for node in formula})
    self.assertEqual({known.origins[node.name] for node in formula}, {'update'})

  def test_write_in_a_branch_is_refused(self):
    def build(a, b):
      tf.compat.v1.cond(b > 1.0, lambda: a.assign(1.0), lambda: a.assign(2.0))
      return [op for op in tf.compat.v1.get_default_graph().get_operations() if op.type == 'If']

    with self.assertRaisesRegex(WrittenOtherwise, r'If \(cond.*\) writes a variable'):
      _after(build)

  def test_write_in_one_of_several_branches_is_refused(self):
    def build(a, b):
      branches = [lambda: tf.constant(0.0), lambda: a.assign(2.0), lambda: tf.constant(1.0)]
      tf.switch_case(tf.cast(b, tf.int32), branches)
      return [op for op in tf.compat.v1.get_default_graph().get_operations() if op.type == 'Case']

    with self.assertRaisesRegex(WrittenOtherwise, r'Case \(.*\) writes a variable'):
      _after(build)

  def test_rows_written_in_a_branch_are_refused(self):
    def build(a, b):
      def written():
        tf.raw_ops.ResourceScatterUpdate(resource=a.handle, indices=0, updates=1.0)
        return 1.0

      tf.compat.v1.cond(b > 1.0, written, lambda: 2.0)
      return [op for op in tf.compat.v1.get_default_graph().get_operations() if op.type == 'If']

    with self.assertRaisesRegex(WrittenOtherwise, r'If \(cond.*\) writes a variable'):
      _after(build)

  def test_variable_that_is_not_written_keeps_its_value(self):
    after, _, _ = _after(lambda a, b: [a.assign(np.float32(1.0)).op])
    self.assertEqual(after, {'a': 1.0, 'b': 10.0})


if __name__ == '__main__':
  absltest.main()
