"""Tests of tf2verify.sides.graphs.rewriting.taken_branches."""

import tensorflow as tf
from absl.testing import absltest

from tests.stages.losses.loss_lines_test import line_of
from tf2verify.sides.graphs.graph_defs.inlining import decision_name, is_decision, operation
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.rewriting.taken_branches import with_taken_branches

v1 = tf.compat.v1


def _nested(x, y):
  def inner():
    return v1.cond(y > 0.0, lambda: x * 3.0, lambda: x - 7.0)

  def outer():
    return x + 1.0

  return v1.cond(x > 0.0, outer, inner)


class TakenBranchesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.graph = tf.Graph()
    with self.graph.as_default():
      x, y = v1.placeholder(tf.float32, [], 'x'), v1.placeholder(tf.float32, [], 'y')
      tf.identity(_nested(x, y) * 2.0, 'result')

  def result(self, x, y):
    """Returns the rewritten graph, and what it yields."""
    graph_def = self.graph.as_graph_def()
    feeds = {'x:0': x, 'y:0': y}

    def evaluate(tensors):
      graph = tf.Graph()
      with graph.as_default():
        tf.import_graph_def(graph_def, name='')
      with v1.Session(graph=graph) as session:
        return session.run(list(tensors), feeds)

    with_taken_branches(graph_def, evaluate)
    return graph_def, float(evaluate(['result:0'])[0])

  def test_branch_that_is_taken_stands_in_the_place_of_the_condition(self):
    for x, y, expected in ((1.0, 1.0, 4.0), (-1.0, 1.0, -6.0), (-1.0, -1.0, -16.0)):
      with self.subTest(x=x, y=y):
        graph_def, found = self.result(x, y)
        self.assertEqual(found, expected)
        self.assertNoCommonElements({node.op for node in graph_def.node}, {'If', 'StatelessIf'})

  def test_what_decides_is_passed_on_where_another_condition_yields_it(self):
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [], 'x')
      is_due = v1.cond(x > 0.0, lambda: x > 5.0, lambda: tf.constant(False))
      v1.cond(is_due, lambda: x * 2.0, lambda: x, name='outer')
    graph_def = graph.as_graph_def()

    def evaluate(tensors):
      with tf.Graph().as_default() as copy:
        tf.import_graph_def(graph_def, name='')
      with v1.Session(graph=copy) as session:
        return session.run(list(tensors), {'x:0': 7.0})

    with_taken_branches(graph_def, evaluate, marks_choices=True)
    names = [node.name for node in graph_def.node if is_decision(node.name)]
    self.assertLen(names, 2)
    self.assertIn(decision_name('outer'), names)
    self.assertEqual(list(evaluate([f'{name}:0' for name in names])), [True, True])

  def test_conditions_that_are_not_to_be_replaced_stay(self):
    graph_def = self.graph.as_graph_def()
    with_taken_branches(graph_def, lambda tensors: [], is_replaced=lambda node: False)
    self.assertNotEmpty([node for node in graph_def.node if node.op in ('If', 'StatelessIf')])

  def test_a_branch_begins_after_what_the_condition_reads(self):
    """TensorFlow lets the condition itself wait for nothing that its predicate has waited for."""
    with tf.Graph().as_default() as graph:
      total = tf.Variable(1.0, name='total')
      with tf.control_dependencies([v1.assign_add(total, 2.0)]):
        is_due = total.read_value() > 0.0
        tf.cond(is_due, lambda: total.read_value() / 2.0, lambda: tf.constant(0.0))
      graph_def = graph.as_graph_def()
    (condition,) = (node for node in graph_def.node if node.op in ('If', 'StatelessIf'))
    self.assertFalse([name for name in condition.input if name.startswith('^')])
    with_taken_branches(graph_def, lambda _: [True])
    nodes = {node.name: node for node in graph_def.node}
    reads = [n for n in graph_def.node if n.op == 'ReadVariableOp' and 'tf2verify_then' in n.name]
    self.assertLen(reads, 1)
    pending, before = [*reads], set()
    while pending:
      for name in pending.pop().input:
        found = name.lstrip('^').partition(':')[0]
        if found not in before:
          before.add(found)
          pending.append(nodes[found])
    self.assertIn('AssignAddVariableOp', {nodes[name].op for name in before})

  def test_operation_of_a_branch_has_the_line_that_made_it(self):
    graph_def, _ = self.result(-1.0, 1.0)
    (name,) = (node.name for node in graph_def.node if node.op == 'Mul' and '/' in node.name)
    line = user_source(operation(self.graph, name))
    assert line is not None
    self.assertEqual(line.line, line_of(_nested, 'x * 3.0'))
    self.assertIsNone(operation(self.graph, 'of_nobody'))


if __name__ == '__main__':
  absltest.main()
