"""Tests of tf2verify.relation.proof.differences.stopped_gradients."""

import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.relation.proof.differences.stopped_gradients import stopped_on_one_side
from tf2verify.relation.proof.proving import prove
from tf2verify.sides.graphs.reading import GraphReader, Target

v1 = tf.compat.v1
SHAPE = (4, 6)


def _graph_of(function, side):
  """Returns the graph of a loss of a variable and an input."""
  with tf.Graph().as_default() as graph:
    old = v1.placeholder(tf.float32, SHAPE)
    value = v1.get_variable('w', SHAPE, use_resource=True) * 2.0
    loss = tf.identity(function(value, old))
  variables, inputs = {'w': 'w'}, {old.op.name: 'old'}
  return GraphReader(graph, variables, inputs, {}).read([Target('loss', (loss.name,))], (), side)


def _stops(one, other):
  proof = prove(_graph_of(one, 'tf1'), _graph_of(other, 'tf2'), {'w': ('float32', SHAPE)})
  assert not proof.tested
  return [
    (
      found.side,
      (proof.tf1, proof.tf2)[found.side == 'tf2'].graph.ops[found.reader].op_type,
      found.reading is not None,
    )
    for found in stopped_on_one_side(proof)
  ]


def _clipped(stop=tf.identity, old_stop=tf.identity):
  def loss(value, old):
    near = old_stop(old) + tf.clip_by_value(stop(value) - old, -0.2, 0.2)
    return tf.reduce_mean(tf.maximum(value**2, near**2))

  return loss


class StoppedOnOneSideTest(parameterized.TestCase):
  def test_to_one_of_two_readers(self):
    port = _clipped(tf.stop_gradient)
    self.assertEqual(_stops(_clipped(), port), [('tf2', 'Sub', True)])
    self.assertEqual(_stops(port, _clipped()), [('tf1', 'Sub', True)])

  def test_before_a_part_of_a_loss_and_after_it(self):
    def bounded(before, after):
      return lambda value, old: tf.reduce_sum(value * after(tf.tanh(before(value))))

    stops = (tf.stop_gradient, tf.identity)
    self.assertEqual(_stops(bounded(*stops), bounded(*stops[::-1])), [])

  def test_straight_through_beside_the_same_difference_with_the_other_sign(self):
    """Both sides stop `rounded - value` in one place, and compute it, or minus it, in another."""

    def quantized(turned, stops=True):
      def loss(value, old):
        near = value * old
        stop = tf.stop_gradient if stops else tf.identity
        passed = value + stop(near - value)
        apart = value - near if turned else near - value
        return tf.reduce_mean(tf.square(apart)) + tf.reduce_mean(tf.tanh(passed))

      return loss

    self.assertEqual(_stops(quantized(False), quantized(True)), [])
    self.assertEqual(_stops(quantized(True), quantized(False)), [])
    self.assertNotEqual(_stops(quantized(False, stops=False), quantized(True)), [])
    self.assertNotEqual(_stops(quantized(False, stops=False), quantized(False)), [])

  @parameterized.named_parameters(
    ('nowhere', _clipped(), _clipped()),
    ('on_both_sides', _clipped(tf.stop_gradient), _clipped(tf.stop_gradient)),
    ('of_what_has_none', _clipped(), _clipped(old_stop=tf.stop_gradient)),
    (
      'of_either_factor',
      lambda value, old: tf.reduce_sum(value * tf.stop_gradient(value)),
      lambda value, old: tf.reduce_sum(tf.stop_gradient(value) * value),
    ),
    (
      'straight_through',
      lambda value, old: tf.reduce_sum(value + tf.stop_gradient(old - value)),
      lambda value, old: tf.reduce_sum(value + old - tf.stop_gradient(value)),
    ),
  )
  def test_none(self, one, other):
    self.assertEqual(_stops(one, other), [])


if __name__ == '__main__':
  absltest.main()
