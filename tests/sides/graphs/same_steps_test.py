"""Tests of tf2verify.sides.graphs.same_steps, and of runs that go on as other steps."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest

from tf2verify.records.op_graph import TARGET
from tf2verify.sides.graphs.reading import Target
from tf2verify.sides.graphs.same_steps import on_graph_of
from tf2verify.sides.graphs.step_run import (
  LOSS_TARGET,
  StepGraph,
  StepRun,
  StepVariable,
  step_run,
  update_target,
)

v1 = tf.compat.v1
_INPUT = np.array([1.0, 2.0], np.float32)


def _step(scope, weight, factor=3.0, build=lambda value, rate: value * rate, **known):
  """Returns a step that adds to a weight what is built of the input and a rate it keeps."""
  graph = tf.Graph()
  with graph.as_default(), tf.name_scope(scope):
    handle, rate_handle = (v1.placeholder(tf.resource, (), n) for n in ('weight', 'rate'))
    inputs = v1.placeholder(tf.float32, (2,), 'inputs')
    captured = v1.placeholder(tf.float32, (), 'captured')
    read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
    rate = tf.raw_ops.ReadVariableOp(resource=rate_handle, dtype=tf.float32)
    rate.set_shape(())
    loss = tf.reduce_sum(read * inputs) * captured
    with tf.control_dependencies([loss]):
      tf.raw_ops.AssignAddVariableOp(resource=handle, value=build(inputs, rate))
  values = {
    handle: StepVariable(known.get('name', 'w'), np.asarray(weight, np.float32)),
    rate_handle: StepVariable('rate of tf2', np.float32(known.get('rate', 0.5)), is_own=True),
  }
  return StepGraph(
    'tf2',
    graph.as_graph_def(),
    {tensor.op.name: value for tensor, value in values.items()},
    {inputs.op.name: ''},
    {inputs.name: _INPUT},
    {captured.op.name: np.float32(factor)},
    [Target(LOSS_TARGET, (loss.name,))],
    lambda _: None,
  )


def _yielded(run):
  tensors = {op.name: op.tensors[0] for op in run.op_graph.ops if op.op_type == TARGET}
  found = dict(zip(tensors, run.fetch(list(tensors.values())), strict=True))
  return {name: value.tolist() for name, value in found.items()}


def _branch(first, compute):
  """Returns what builds a branch that captures what it reads in some order."""

  def build(value, rate):
    def then():
      for number in first:
        v1.get_default_graph().capture((value, rate)[number])
      return compute(value, rate)

    return tf.cond(rate > 0.3, then, lambda: value)

  return build


def _loop(last):
  def build(value, rate):
    return tf.while_loop(lambda n, _: n < last, lambda n, v: (n + 1, v * rate), (0, value))[1]

  return build


class OnGraphOfTest(absltest.TestCase):
  def test_other_names_and_values(self):
    one, other = _step('adam', [1.0, 2.0]), _step('adam_1', [5.0, 6.0], 4.0)
    moved = on_graph_of(other, one)
    self.assertIs(moved.graph_def, one.graph_def)
    self.assertIn('adam/weight', moved.variables)
    self.assertEqual(_yielded(step_run(moved)), _yielded(step_run(other)))
    self.assertNotEqual(_yielded(step_run(moved)), _yielded(step_run(one)))

  def test_a_number_that_python_counts(self):
    one, other = (_step('a', [1.0, 2.0], build=lambda v, _, n=n: v * n) for n in (1.0, 2.0))
    self.assertIsNone(on_graph_of(other, one))

  def test_another_order_of_operands(self):
    one = _step('a', [1.0, 2.0], build=lambda v, r: v - r)
    other = _step('a', [1.0, 2.0], build=lambda v, r: r - v)
    self.assertIsNone(on_graph_of(other, one))

  def test_bodies_of_loops(self):
    one, same, other = (_step('a', [1.0, 2.0], build=_loop(n)) for n in (3, 3, 4))
    self.assertIsNotNone(on_graph_of(same, one))
    self.assertIsNone(on_graph_of(other, one))

  def test_branches_that_take_the_same_in_another_order(self):
    one, same = (_step('a', [1.0, 2.0], build=_branch(o, tf.pow)) for o in ((0, 1), (1, 0)))
    (node, *_), (other, *_) = (
      [n for n in step.graph_def.node if n.op == 'StatelessIf'] for step in (one, same)
    )
    self.assertNotEqual(list(node.input), list(other.input))
    moved = on_graph_of(same, one)
    self.assertEqual(_yielded(step_run(moved)), _yielded(step_run(same)))
    for order in ((0, 1), (1, 0)):
      exchanged = _step('a', [1.0, 2.0], build=_branch(order, lambda v, r: tf.pow(r, v)))
      self.assertIsNone(on_graph_of(exchanged, one))

  def test_another_variable_in_its_place(self):
    one, other = _step('a', [1.0, 2.0]), _step('a', [1.0, 2.0], name='v')
    self.assertIsNone(on_graph_of(other, one))

  def test_another_shape(self):
    one, other = _step('a', [1.0, 2.0]), _step('a', [[1.0, 2.0]])
    self.assertIsNone(on_graph_of(other, one))


class StepRunTest(absltest.TestCase):
  def test_goes_on_from_other_values(self):
    one, other = _step('adam', [1.0, 2.0]), _step('adam_1', [5.0, 6.0], 4.0)
    begun = StepRun(one)
    first = _yielded(begun.run)
    self.assertTrue(begun.restart(on_graph_of(other, one)))
    self.assertEqual(_yielded(begun.run), _yielded(step_run(other)))
    self.assertTrue(begun.restart(one))
    self.assertEqual(_yielded(begun.run), first)

  def test_what_was_given_is_gone(self):
    one = _step('a', [1.0, 2.0])
    begun = StepRun(one)
    begun.run.give({'a/inputs:0': np.zeros(2, np.float32)})
    self.assertEqual(_yielded(begun.run)[LOSS_TARGET], 0.0)
    self.assertTrue(begun.restart(one))
    self.assertEqual(_yielded(begun.run)[LOSS_TARGET], 15.0)

  def test_another_graph(self):
    self.assertFalse(StepRun(_step('a', [1.0, 2.0])).restart(_step('a', [1.0, 2.0])))

  def test_another_setting_stands_in_the_graph(self):
    one, other = _step('a', [1.0, 2.0]), _step('a', [1.0, 2.0], rate=0.25)
    moved = on_graph_of(other, one)
    self.assertFalse(StepRun(one).restart(moved))
    self.assertEqual(_yielded(step_run(moved))[update_target('w')], [1.25, 2.5])

  def test_a_branch_that_values_decide(self):
    def build(value, rate):
      return tf.cond(rate > 0.3, lambda: value, lambda: -value)

    one = _step('a', [1.0, 2.0], build=build)
    begun = StepRun(one)
    alike, other = (
      on_graph_of(_step('a', [3.0, 4.0], build=build, rate=rate), one) for rate in (0.5, 0.1)
    )
    self.assertFalse(begun.restart(other))
    self.assertTrue(begun.restart(alike))
    self.assertEqual(_yielded(begun.run)[update_target('w')], [4.0, 6.0])
    self.assertEqual(_yielded(step_run(other))[update_target('w')], [2.0, 2.0])
    self.assertEqual(_yielded(step_run(one))[update_target('w')], [2.0, 4.0])

  def test_a_change_stays_in_its_run(self):
    one = _step('a', [1.0, 2.0])

    def change(graph_def):
      (node,) = (node for node in graph_def.node if node.op == 'Sum')
      node.op = 'Max'

    self.assertEqual(_yielded(StepRun(one, change).run)[LOSS_TARGET], 12.0)
    self.assertEqual(_yielded(step_run(one))[LOSS_TARGET], 15.0)


class DrawsTest(absltest.TestCase):
  def test_draws_again_as_a_new_run(self):
    one = _step('a', [1.0, 2.0], build=lambda v, _: v * v1.random_uniform((2,), seed=1))
    begun = StepRun(one)
    first = _yielded(begun.run)
    self.assertTrue(begun.restart(one))
    self.assertEqual(_yielded(begun.run), first)


if __name__ == '__main__':
  absltest.main()
