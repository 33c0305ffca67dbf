"""What is changed in a graph is never proven, unless it changes nothing."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.mutants import mutants
from tests.relation.proof.traced_functions import graph_of
from tf2verify.relation.proof.proving import prove

v1 = tf.compat.v1


def _network(image, kernel, scale, offset, weights):
  net = tf.nn.bias_add(tf.nn.conv2d(image, kernel, 1, 'SAME'), offset)
  net = v1.nn.fused_batch_norm(net, scale, offset, epsilon=1e-3)[0]
  net = tf.nn.relu(net + 0.5) * tf.sigmoid(net - scale)
  net = tf.reduce_mean(net, [1, 2])
  net = tf.nn.dropout(net, 0.25)
  logits = tf.matmul(net, weights) / (tf.reduce_sum(tf.square(net)) + 1e-6)
  return tf.nn.softmax(logits), tf.maximum(tf.exp(logits), 0.1)


def _attention(query, key, value, scale):
  scores = tf.einsum('btd,bsd->bts', query, key) * 0.125
  mixed = tf.matmul(tf.nn.softmax(scores), value)
  mean = tf.reduce_mean(mixed, -1, keepdims=True)
  variance = tf.reduce_mean(tf.math.squared_difference(mixed, mean), -1, keepdims=True)
  normed = (mixed - mean) * tf.math.rsqrt(variance + 1e-5) * scale
  return 0.5 * normed * (1.0 + tf.tanh(0.797 * (normed + 0.0447 * tf.pow(normed, 3.0)))) + query


# The moving averages of batch norm are not read here, and neither is their share. What is added to
# all of a channel, batch norm subtracts in training.
_WITHOUT_EFFECT = ('exponential_avg_factor', 'FusedBatchNormV3: without BiasAdd')


class SoundnessTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('network', _network, [(2, 5, 5, 3), (3, 3, 3, 4), (4,), (4,), (4, 6)], 40),
    ('attention', _attention, [(2, 3, 4), (2, 3, 4), (2, 3, 4), (4,)], 60),
  )
  def test_mutants(self, function, shapes, least):
    reference, port = graph_of(function, shapes), graph_of(function, shapes, 'tf2')
    self.assertEqual(prove(reference, port, {}).tested, ())
    found = list(mutants(port))
    self.assertGreater(len(found), least)
    for what, mutant in found:
      with self.subTest(what):
        if not what.endswith(_WITHOUT_EFFECT):
          self.assertNotEqual(prove(reference, mutant, {}).tested, ())

  def test_what_is_not_known_is_not_proven(self):
    def counted(x):
      return x + tf.py_function(lambda: 1.0, [], tf.float32)

    graph = graph_of(counted, [(3,)])
    self.assertEqual(prove(graph, graph, {}).tested, ('output [0]',))

  def test_what_one_side_lacks_is_not_proven(self):
    one = graph_of(lambda x: (x, x + 1.0), [(3,)])
    other = graph_of(lambda x: x, [(3,)])
    self.assertEqual(prove(one, other, {}).tested, ('output [1]',))
    self.assertEqual(prove(other, one, {}).tested, ('output [1]',))

  def test_outputs_exchanged(self):
    one = graph_of(lambda x: (x - 1.0, x + 1.0), [(3,)])
    other = graph_of(lambda x: (x + 1.0, x - 1.0), [(3,)])
    proof = prove(one, other, {})
    self.assertEqual(proof.tested, ('output [0]', 'output [1]'))
    self.assertFalse(proof.tf1.tested | proof.tf2.tested)


if __name__ == '__main__':
  absltest.main()
