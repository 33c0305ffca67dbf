"""Parts of a stack in another order, where TF1 computes without a stack."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1


def _shifted(net, shift):
  left = tf.concat([net[:, 1:], net[:, :1]], 1)
  right = tf.concat([net[:, -1:], net[:, :-1]], 1)
  return shift[:, 0:1] * left + shift[:, 1:2] * net + shift[:, 2:3] * right


class Port(tf.Module):
  """Two rounds of a circular convolution, and a scale and a shift of one layer."""

  rolls = -1, 1

  def __init__(self):
    super().__init__()
    self.kernel = tf.Variable(tf.ones([4, 3]), name='kernel')
    self.head = tf.Variable(tf.ones([4, 10]), name='head')

  def both(self, out):
    shift, scale = tf.unstack(tf.reshape(out, [-1, 5, 2]), axis=-1)
    return shift, scale

  def __call__(self, inputs):
    weights, net = tf.nn.softmax(inputs[:, :4] @ self.kernel), inputs
    for _ in range(2):
      rolled = tf.stack([tf.roll(net, by, 1) for by in (self.rolls[0], 0, self.rolls[1])], -1)
      net = tf.reduce_sum(rolled * weights[:, None, :], -1)
    shift, scale = self.both(inputs[:, :4] @ self.head)
    return (net + shift) * tf.exp(scale + 1.0)


class Case(tf2verify.EquivalenceCase, abc.ABC):
  port = Port

  def build_tf1_graph(self, inputs, training):
    kernel = v1.get_variable('kernel', [4, 3], initializer=v1.ones_initializer())
    head = v1.get_variable('head', [4, 10], initializer=v1.ones_initializer())
    weights, net = tf.nn.softmax(tf.matmul(inputs[:, :4], kernel)), inputs
    for _ in range(2):
      net = _shifted(net, weights)
    out = tf.matmul(inputs[:, :4], head)
    shift, scale = out[:, 0::2], out[:, 1::2]
    return (net + shift) * tf.exp(scale + 1.0)

  def make_tf2_layer(self):
    return self.port()

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 5))


class Reversed(Port):
  rolls = 1, -1


class Swapped(Port):
  def both(self, out):
    shift, scale = super().both(out)
    return scale, shift


class OrdersOfPartsTest(absltest.TestCase):
  def _found(self, port):
    case = type('Wrong', (Case,), {'port': port})
    verdict = tf2verify.verify(case, ['zero_randomness'])
    return verdict.first_failure, verdict

  def test_right(self):
    failed, verdict = self._found(Port)
    self.assertIsNone(failed, verdict.to_text())

  def test_inputs_of_a_stack(self):
    failed, _ = self._found(Reversed)
    (cause,) = failed.diagnosis.causes
    self.assertTrue(cause.is_proven, failed.to_text())
    self.assertIn(
      'of Roll of this line is 1, 0, -1 in turn in the port; in the order -1, 0, 1', cause.text
    )

  def test_outputs_of_what_takes_apart(self):
    failed, _ = self._found(Swapped)
    (cause,) = failed.diagnosis.causes
    self.assertTrue(cause.is_proven, failed.to_text())
    self.assertIn('in the port, unstack, output', cause.text)


if __name__ == '__main__':
  absltest.main()
