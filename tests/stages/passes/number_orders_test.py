"""Shifts that a loop over a list makes, in another order than tf1 has them."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify

v1 = tf.compat.v1
_WIDTH = 6


class Shifts(tf2verify.EquivalenceCase, abc.ABC):
  training_modes = (False,)
  shifts = (0, 1, -1)

  def build_tf1_graph(self, inputs, training):
    net = tf.nn.softmax(v1.layers.dense(inputs, _WIDTH, name='weights'))
    parts = tf.nn.softmax(v1.layers.dense(inputs, 3, name='parts'))
    turned = tf.concat([net[:, -1:], net[:, :-1]], 1)
    back = tf.concat([net[:, 1:], net[:, :1]], 1)
    stacked = tf.stack([net, turned, back], axis=1)
    return tf.tanh(tf.reduce_sum(tf.expand_dims(parts, 2) * stacked, axis=1))

  def make_tf2_layer(self):
    shifts = self.shifts

    class Port(tf.Module):
      def __init__(self):
        super().__init__()
        for name, width in (('weights', _WIDTH), ('parts', 3)):
          setattr(self, f'{name}_kernel', tf.Variable(tf.zeros([4, width]), name='kernel'))
          setattr(self, f'{name}_bias', tf.Variable(tf.zeros([width]), name='bias'))

      def __call__(self, inputs, training=False):
        net = tf.nn.softmax(inputs @ self.weights_kernel + self.weights_bias)
        parts = tf.unstack(tf.nn.softmax(inputs @ self.parts_kernel + self.parts_bias), axis=-1)
        each = [p[:, None] * tf.roll(net, by, 1) for p, by in zip(parts, shifts, strict=True)]
        return tf.tanh(tf.add_n(each))

    return Port()

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 4))


def _forward(**hooks):
  verdict = tf2verify.verify(type('Case', (Shifts,), hooks), ['zero_randomness'])
  return next(one for one in verdict.stages if one.stage == 'zero_randomness')


class NumberOrdersTest(absltest.TestCase):
  def test_right_port(self):
    stage = _forward()
    self.assertTrue(stage.passed, stage.to_text())

  def test_another_order(self):
    stage = _forward(shifts=(-1, 0, 1))
    [cause] = stage.diagnosis.causes
    self.assertTrue(cause.is_proven, stage.to_text())
    self.assertIn('is -1, 0, 1 in turn in the port; in the order 0, 1, -1', cause.text)


if __name__ == '__main__':
  absltest.main()
