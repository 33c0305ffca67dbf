"""Tests of tf2verify.sides.graphs.without_state."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.without_state import WrittenOtherwise, without_state

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

  def test_variable_that_is_not_written_keeps_its_value(self):
    after, _, _ = _after(lambda a, b: [a.assign(np.float32(1.0)).op])
    self.assertEqual(after, {'a': 1.0, 'b': 10.0})


if __name__ == '__main__':
  absltest.main()
