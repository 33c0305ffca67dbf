"""Steps that compute with a count of steps that is one more, or one less, than that of TF1."""

import abc

import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify

v1 = tf.compat.v1


class Port(tf.keras.layers.Layer):
  def build(self, shape):
    self.kernel = self.add_weight(shape=(3, 2), name='kernel')
    self.average = self.add_weight(shape=(3, 2), name='average', trainable=False)

  def call(self, inputs):
    return tf.tanh(inputs @ self.kernel)


class Own:
  """The optimizer of the port: a rate that falls, and an average whose decay grows."""

  def __init__(self):
    self.step = tf.Variable(0, dtype=tf.int64, trainable=False)


class CountedCase(tf2verify.EquivalenceCase, abc.ABC):
  training_modes = (True,)
  variable_names = {'kernel': 'port/kernel', 'average': 'port/average'}

  def build_tf1_graph(self, inputs, training):
    self.kernel = v1.get_variable('kernel', [3, 2])
    self.average = v1.get_variable('average', [3, 2], trainable=False)
    return tf.tanh(tf.matmul(inputs, self.kernel))

  def make_tf2_layer(self):
    return Port(name='port')

  def make_inputs(self):
    return tf2verify.normal_inputs((5, 3))

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean(tf.square(outputs))

  tf2_loss = tf1_loss

  def make_tf1_train_op(self, loss):
    count = v1.train.get_or_create_global_step()
    now = tf.cast(count, tf.float32)
    (gradient,) = tf.gradients(loss, [self.kernel])
    decay = 1.0 - (tf.cos(now / 8.0) + 1.0) * 0.1
    rate = 0.1 * tf.math.rsqrt(now + 3.0)
    with tf.control_dependencies([gradient, decay, rate]):
      update = self.kernel.assign_sub(rate * gradient)
    with tf.control_dependencies([update]):
      new = self.kernel.read_value()
      average = self.average.assign(decay * self.average.read_value() + (1.0 - decay) * new)
    with tf.control_dependencies([average]):
      return count.assign_add(1)

  def make_tf2_optimizer(self):
    return Own()

  def counts(self, step):
    """Returns the counts that rate and decay are computed of."""
    raise NotImplementedError

  def tf2_train_step(self, layer, inputs, optimizer):
    with tf.GradientTape() as tape:
      loss = self.tf2_loss(layer(inputs, training=True), None)
    (weights,) = layer.trainable_variables
    of_rate, of_decay = self.counts(optimizer.step)
    decay = 1.0 - 0.1 * (1.0 + tf.cos(of_decay * 0.125))
    weights.assign_sub(0.1 / tf.sqrt(3.0 + of_rate) * tape.gradient(loss, weights))
    layer.average.assign_add((1.0 - decay) * (weights - layer.average))
    optimizer.step.assign_add(1)
    return loss


def _float(step):
  return tf.cast(step, tf.float32)


def _step(counts):
  case = type('Case', (CountedCase,), {'counts': staticmethod(counts)})
  verdict = tf2verify.verify(case, ['training_steps'])
  return next(one for one in verdict.stages if one.stage == 'training_steps')


class CountEditsTest(parameterized.TestCase):
  @parameterized.parameters(
    (lambda step: (_float(step), _float(step + 1)), 'a count of steps plus 1 in the port'),
    (lambda step: (_float(step + 1), _float(step)), 'a count of steps plus 1 in the port'),
    (lambda step: (_float(step - 1), _float(step)), 'a count of steps minus 1 in the port'),
    (lambda step: (_float(step), _float(step) + 1.0), 'a count of steps plus 1 in the port'),
  )
  def test_a_step_more_or_less_is_proven(self, counts, said):
    (cause,) = _step(counts).diagnosis.causes
    self.assertTrue(cause.is_proven)
    self.assertIn(said, cause.text)

  def test_the_same_count_passes(self):
    self.assertTrue(_step(lambda step: (_float(step), _float(step))).passed)


if __name__ == '__main__':
  absltest.main()
