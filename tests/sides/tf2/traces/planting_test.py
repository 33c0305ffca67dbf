"""Tests of tf2verify.sides.tf2.traces.planting."""

import abc
import contextlib

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides import planted
from tests.stages import tiny_models
from tf2verify.records.op_graph import TARGET
from tf2verify.records.planted_fault import FaultKind
from tf2verify.sides.tf2.traces import planting
from tf2verify.sides.tf2.traces.possible_faults import possible_faults

v1 = tf.compat.v1


class Net(tiny_models.OneModel, abc.ABC):
  """One operation of every kind of fault."""

  def model(self, inputs, training):
    with v1.variable_scope('net'):
      one, other = (v1.get_variable(name, (3, 3)) for name in ('one', 'other'))
      net = tf.nn.leaky_relu(tf.matmul(inputs, one), alpha=0.2)
      net = tf.matmul(net, other) - inputs
      return tf.tanh(tf.pad(net, [[0, 0], [1, 1]])[:, :3] * 0.5)


class Loop(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    with v1.variable_scope('net'):
      w = v1.get_variable('w', (3, 3))
    step = lambda n, net: (n + 1, tf.nn.relu(tf.matmul(net, w)) - 0.5 * net)  # noqa: E731
    return v1.while_loop(lambda n, _: n < 3, step, (0, inputs))[1]


class ForEver(tiny_models.OneModel, abc.ABC):
  """A loop that ends when its number is small enough."""

  def model(self, inputs, training):
    scale = v1.get_variable('scale', ())
    halved = v1.while_loop(lambda x: x > 0.1, lambda x: x * 0.5, [tf.reduce_max(inputs)])
    return scale * inputs + halved


def _output(run):
  tensors = [op.tensors[0] for op in run.op_graph.ops if op.op_type == TARGET]
  return planting.fetched(run, tensors, seconds=10)[0]


class PlantTest(parameterized.TestCase):
  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    stack = contextlib.ExitStack()
    cls.addClassCleanup(stack.close)
    cls.port = stack.enter_context(planted.traced(Net))
    cls.base = cls.port.run()
    cls.output = _output(cls.base)
    cls.possible = possible_faults(cls.base.op_graph, cls.port.prefix)

  def test_every_kind_is_there(self):
    self.assertEqual({possible.fault.kind for possible in self.possible}, set(FaultKind))

  def test_without_a_change_it_is_the_port(self):
    np.testing.assert_array_equal(_output(self.port.run()), self.output)

  @parameterized.parameters(*FaultKind)
  def test_a_fault_of_each_kind_changes_the_output(self, kind):
    for possible in self.possible:
      if possible.fault.kind is kind:
        with self.subTest(str(possible.fault)):
          faulty = planting.plant(self.port, possible)
          self.addCleanup(faulty.close)
          self.assertGreater(np.abs(_output(faulty) - self.output).max(), 1e-3)
    np.testing.assert_array_equal(_output(self.base), self.output)

  def test_names_leave_out_the_prefix(self):
    self.assertIn(
      'net/LeakyRelu (LeakyRelu): alpha 0.2 -> 0.3',
      [str(possible.fault).replace('shim_layer/', '') for possible in self.possible],
    )
    for possible in self.possible:
      self.assertNotStartsWith(possible.fault.op, self.port.prefix)

  def test_the_draw_takes_the_kinds_in_turn(self):
    drawn = planting.drawn(self.possible, seed=3)
    kinds = [possible.fault.kind for possible in drawn]
    self.assertEqual(set(kinds[: len(FaultKind)]), set(FaultKind))
    self.assertCountEqual(drawn, self.possible)
    self.assertEqual(planting.drawn(self.possible, seed=3), drawn)
    self.assertNotEqual(planting.drawn(self.possible, seed=4), drawn)

  def test_a_graph_that_does_not_fit(self):
    def edit(body, nodes, constants):
      body[possible.operations[0]].op = 'NoSuchOp'

    possible = self.possible[0]
    broken = type(possible)(possible.fault, possible.operations, (), edit)
    with self.assertRaisesRegex(planting.CannotPlant, 'NoSuchOp'):
      planting.plant(self.port, broken)


class LoopTest(absltest.TestCase):
  def test_faults_in_the_body(self):
    with planted.traced(Loop) as port:
      base = port.run()
      output = _output(base)
      found = [p for p in possible_faults(base.op_graph, port.prefix) if p.path]
      self.assertTrue({FaultKind.BYPASS, FaultKind.CONSTANT} <= {p.fault.kind for p in found})
      for possible in found:
        with self.subTest(str(possible.fault)):
          faulty = planting.plant(port, possible)
          change = np.abs(_output(faulty) - output).max()
          if possible.fault.after == 'Relu6':  # of values below 6
            self.assertEqual(change, 0.0)
          else:
            self.assertGreater(change, 1e-3)
          faulty.close()

  def test_a_loop_that_never_ends_is_given_up(self):
    with planted.traced(ForEver) as port:
      possible = possible_faults(port.run().op_graph, port.prefix)
      found = [p for p in possible if p.path and p.fault.kind is FaultKind.BYPASS]
      self.assertLen(found, 1)
      faulty = planting.plant(port, found[0])
      self.addCleanup(faulty.close)
      target = faulty.op_graph.ops[-1].tensors
      with self.assertRaisesRegex(planting.CannotPlant, 'DeadlineExceeded'):
        planting.fetched(faulty, target, seconds=1)


class CapturedConstantTest(absltest.TestCase):
  def test_a_constant_made_outside_of_the_call(self):
    class Layer(tf.keras.layers.Layer):
      def __init__(self):
        super().__init__()
        self.scale = tf.constant(2.0)

      def call(self, inputs):
        return self.scale * inputs

    class Case(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training):
        return 2.0 * inputs

      def make_tf2_layer(self):
        return Layer()

      def make_inputs(self):
        return np.ones((2, 3), np.float32)

    with planted.traced(Case) as port:
      found = possible_faults(port.run().op_graph, port.prefix)
      [possible] = [one for one in found if one.fault.kind is FaultKind.CONSTANT]
      faulty = planting.plant(port, possible)
      self.addCleanup(faulty.close)
      np.testing.assert_allclose(_output(faulty), np.full((2, 3), 2.2), rtol=1e-6)


if __name__ == '__main__':
  absltest.main()
