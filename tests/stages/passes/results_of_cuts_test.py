"""A mistake before two spellings: from where on the results agree with a quantity of tf1."""

import abc

import tensorflow as tf
from absl.testing import absltest

import tf2verify
from tests.stages import tiny_models
from tf2verify import Status

v1 = tf.compat.v1


class Shuffled(tiny_models.OneModel, abc.ABC):
  """Pixels shuffled by hand in the port, and a leaky activation that is read twice."""

  order = 'bhwyxc->bhywxc'

  def model(self, inputs, training):
    net = v1.depth_to_space(v1.layers.conv2d(inputs, 12, 1, name='up'), 2)
    alpha = v1.get_variable('alpha', [3])
    net = tf.nn.relu(net) + alpha * (net - tf.abs(net)) * 0.5
    return v1.layers.conv2d(net, 2, 1, name='tail')

  def port(self, inputs, training):
    net = v1.layers.conv2d(inputs, 12, 1, name='up')
    batch, height, width, _ = tf.unstack(tf.shape(net))
    net = tf.einsum(self.order, tf.reshape(net, [batch, height, width, 2, 2, 3]))
    net = tf.reshape(net, [batch, 2 * height, 2 * width, 3])
    alpha = v1.get_variable('alpha', [3])
    net = tf.where(net > 0.0, net, alpha * net)
    return v1.layers.conv2d(net, 2, 1, name='tail')

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 4, 3, 2))


class Levels(tiny_models.OneModel, abc.ABC):
  """A smooth absolute value of two levels, which the port writes in another way."""

  def scaled(self, size):
    return 0.1 * size

  def scores(self, inputs):
    for name in ('fine', 'coarse'):
      yield v1.layers.dense(inputs, 3, name=name)

  def model(self, inputs, training):
    total = 0.0
    for net in self.scores(inputs):
      size = tf.abs(net)
      quadratic = tf.minimum(size, 0.1)
      total += (
        tf.reduce_sum(tf.add(0.5 * quadratic**2, tf.multiply(0.1, size - quadratic)), 1) * 5.0
      )
    return total

  def port(self, inputs, training):
    found = []
    for net in self.scores(inputs):
      size = tf.abs(net)
      small, large = 0.5 * net * net, self.scaled(size) - 0.1 * 0.1 * 0.5
      found.append(5.0 * tf.reduce_sum(tf.where(size <= 0.1, small, large), 1))
    return tf.add_n(found)

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 3)) * 0.3


class ResultsTest(absltest.TestCase):
  def found(self, base=Shuffled, **hooks):
    verdict = tf2verify.verify(type('Case', (base,), hooks), ['zero_randomness'])
    return verdict.stages[-1]

  def test_right_port(self):
    found = self.found()
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_one_mistake_is_one_cause(self):
    """The activation is written in another way, and reads what is wrong at two places."""
    found = self.found(order='bhwxyc->bhywxc')
    self.assertIs(found.status, Status.FAILED, found.to_text())
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertRegex(cause.text, r'takes an axis of .*BiasAdd.* apart .* in the port')
    self.assertNotIn('Relu', cause.text)

  def test_right_levels(self):
    found = self.found(Levels)
    self.assertIs(found.status, Status.PASSED, found.to_text())

  def test_one_mistake_of_two_levels(self):
    found = self.found(Levels, scaled=lambda _, size: size)
    self.assertIs(found.status, Status.FAILED, found.to_text())
    (cause,) = found.diagnosis.causes
    self.assertTrue(cause.is_proven, found.to_text())
    self.assertIn('lacks Mul(0.1)', cause.text)


if __name__ == '__main__':
  absltest.main()
