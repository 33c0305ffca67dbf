"""Tests of tf2verify.sides.graphs.rewriting.wide_norms: fused batch norms computed with 64 bits."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.sides.graphs.graph_defs.sessions import open_session
from tf2verify.sides.graphs.rewriting.double_precision import widen

_SHAPE = (3, 4, 5, 2)
_RANDOM = np.random.RandomState(1)
_X = _RANDOM.normal(1.0, 2.0, _SHAPE).astype(np.float32)
_DY = _RANDOM.normal(size=_SHAPE).astype(np.float32)
_VECTORS = _RANDOM.uniform(0.5, 1.5, (4, 2)).astype(np.float32)


def _graph(op, is_training, factor=1.0):
  """Returns a graph of a norm and its gradient, and the names of what they yield."""
  with tf.Graph().as_default() as graph:
    x, dy = tf.constant(_X), tf.constant(_DY)
    scale, offset, mean, variance = (tf.constant(vector) for vector in _VECTORS)
    further = {} if factor == 1.0 else {'exponential_avg_factor': factor}
    if is_training and factor == 1.0:
      mean = variance = tf.zeros([0])
    found = op(
      x=x,
      scale=scale,
      offset=offset,
      mean=mean,
      variance=variance,
      epsilon=0.02,
      is_training=is_training,
      **further,
    )
    gradients = tf.gradients(found[0], [x, scale, offset], dy)
    names = [tensor.name for tensor in (*found[:3], *gradients)]
  return graph, names


def _run(graph_def, names):
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with open_session(graph) as session:
      return session.run(names)


class WideNormsTest(parameterized.TestCase):
  @parameterized.product(
    op=(tf.raw_ops.FusedBatchNorm, tf.raw_ops.FusedBatchNormV2, tf.raw_ops.FusedBatchNormV3),
    settings=((True, 1.0), (False, 1.0), (True, 0.25)),
  )
  def test_the_same_numbers_with_64_bits(self, op, settings):
    graph, names = _graph(op, *settings)
    graph_def = graph.as_graph_def()
    narrow = _run(graph_def, names)
    widen(graph_def)
    self.assertFalse([node.op for node in graph_def.node if 'Fused' in node.op])
    wide = _run(graph_def, names)
    for name, one, other in zip(names, narrow, wide, strict=True):
      self.assertEqual(other.dtype, np.float64, name)
      np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5, err_msg=name)
    self.assertFalse(np.array_equal(narrow[0], wide[0]))

  def test_the_norm_of_a_single_element(self):
    with tf.Graph().as_default() as graph:
      vectors = [tf.constant([1.0, 2.0])] * 2 + [tf.zeros([0])] * 2
      found = tf.raw_ops.FusedBatchNormV3(
        **dict(zip(('scale', 'offset', 'mean', 'variance'), vectors, strict=True)),
        x=tf.ones([1, 1, 1, 2]),
      )
      name = found[2].name
    graph_def = graph.as_graph_def()
    widen(graph_def)
    np.testing.assert_array_equal(_run(graph_def, [name])[0], [0.0, 0.0])

  def test_half_precision_stays(self):
    with tf.Graph().as_default() as graph:
      vectors = [tf.ones([2])] * 2 + [tf.zeros([0])] * 2
      tf.raw_ops.FusedBatchNormV3(
        **dict(zip(('scale', 'offset', 'mean', 'variance'), vectors, strict=True)),
        x=tf.ones([1, 2, 2, 2], tf.float16),
        name='norm',
      )
    graph_def = graph.as_graph_def()
    widen(graph_def)
    self.assertIn('FusedBatchNormV3', [node.op for node in graph_def.node])


if __name__ == '__main__':
  absltest.main()
