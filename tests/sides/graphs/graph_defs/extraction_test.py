"""Tests of tf2verify.sides.graphs.graph_defs.extraction."""

import tensorflow as tf
from absl.testing import absltest

from tf2verify.sides.graphs.graph_defs.extraction import called

v1 = tf.compat.v1


def _inner(value):
  return tf.while_loop(lambda v: v[0] < 3.0, lambda v: (v + 1.0,), (value,))[0]


class CalledTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    v1.enable_control_flow_v2()
    with tf.Graph().as_default() as graph:
      x = v1.placeholder(tf.float32, [3], 'x')
      tf.negative(x, name='plain')
      tf.cond(x[0] > 0.0, lambda: _inner(x), lambda: x, name='branches')
      tf.while_loop(lambda v: v[0] < 2.0, lambda v: (v * 2.0,), (x,), name='loop')
    self.graph_def = graph.as_graph_def()
    self.nodes = {node.name: node for node in self.graph_def.node}

  def _names(self, *nodes):
    found = called([self.nodes[name] for name in nodes], self.graph_def.library)
    return {function.signature.name for function in found.function}

  def test_nothing(self):
    self.assertEmpty(self._names('plain'))

  def test_through_others(self):
    everything = {function.signature.name for function in self.graph_def.library.function}
    branches = self._names('branches')
    self.assertLess(branches, everything)
    self.assertTrue(any('while' in name for name in branches))
    self.assertEqual(branches | self._names('loop'), everything)
    self.assertEqual(self._names('plain', 'branches', 'loop'), everything)


if __name__ == '__main__':
  absltest.main()
