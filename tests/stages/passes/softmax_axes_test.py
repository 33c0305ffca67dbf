"""A softmax along another axis than in TF1, which writes the rest in another way."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.stages import tiny_models
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


class Aligned(tiny_models.OneModel, abc.ABC):
  """Two sequences, each in terms of the other one."""

  axis = 1

  def encoded(self, inputs):
    net = v1.layers.dense(inputs, 4, tf.tanh, name='hidden')
    return net[:, :3], net[:, 3:]

  def model(self, inputs, training):
    one, other = self.encoded(inputs)
    scores = tf.matmul(one, other, transpose_b=True)
    turned = tf.matmul(tf.nn.softmax(tf.transpose(scores, [0, 2, 1])), one)
    return v1.layers.dense(tf.reduce_max(turned, 1) + tf.reduce_max(other, 1), 2, name='end')

  def port(self, inputs, training):
    one, other = self.encoded(inputs)
    scores = tf.einsum('bpd,bhd->bph', one, other)
    turned = tf.einsum('bph,bpd->bhd', tf.nn.softmax(scores, self.axis), one)
    return v1.layers.dense(tf.reduce_max(turned, 1) + tf.reduce_max(other, 1), 2, name='end')

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 7, 3))


class SoftmaxAxesTest(parameterized.TestCase):
  @parameterized.parameters((-1, '2', '1'), (0, '0', '1'), (-3, '0', '1'))
  def test_another_axis(self, axis, own, wanted):
    (cause,), text = causes_of(self, Aligned, axis=axis)
    said = rf'\(Softmax\) goes along axis {own} of 3 in the port; along axis {wanted} it yields'
    self.assertRegex(cause, said, text)

  def test_right_port(self):
    self.assertEqual(causes_of(self, Aligned)[0], [])


if __name__ == '__main__':
  absltest.main()
