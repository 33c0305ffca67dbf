"""Cases whose inputs and tolerances show some faults of a port, and some not."""

import numpy as np
import tensorflow as tf

import tf2verify
from tests.stages import tiny_models

v1 = tf.compat.v1


class Activated(tiny_models.OneModel):
  """Two layers, the inputs clipped at zero; 1e-8 is too small to be seen."""

  def model(self, inputs, training):
    net = tf.nn.relu(inputs) + 1e-8
    with v1.variable_scope('net'):
      for name in ('one', 'other'):
        net = tf.matmul(net, v1.get_variable(name, (3, 3)))
    return net


class Blind(Activated):
  """Nothing that the relu would clip."""

  def make_inputs(self):
    return np.linspace(0.5, 2.0, 12, dtype=np.float32).reshape(4, 3)


class Lenient(Activated):
  tolerance = tf2verify.Tolerance(rtol=0.0, atol=100.0)

  def model(self, inputs, training):
    # Otherwise all outputs would be within the tolerance of zero.
    return super().model(inputs, training) + 1e5 * tf.reduce_max(inputs)


class MovingAverage(tiny_models.OneModel):
  """In training, and only there, an average is kept, which no output depends on."""

  def model(self, inputs, training):
    with v1.variable_scope('net'):
      net = tf.matmul(inputs, v1.get_variable('kernel', (3, 3)))
      average = v1.get_variable('average', (3,), trainable=False)
      if training:
        kept = average * 0.9 + 0.1 * tf.reduce_mean(net, 0)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign(average, kept))
    return net


class Centred(tiny_models.OneModel):
  """An offset that is subtracted again, with the mean."""

  def model(self, inputs, training):
    with v1.variable_scope('net'):
      net = tf.matmul(inputs, v1.get_variable('kernel', (3, 3)))
      net = tf.nn.bias_add(net, v1.get_variable('offset', (3,)))
    return net - tf.reduce_mean(net, 0, keepdims=True)


class Regularized(tiny_models.OneModel):
  """A loss that no output shows."""

  def model(self, inputs, training):
    decay = lambda w: 0.01 * tf.nn.l2_loss(w)  # noqa: E731
    with v1.variable_scope('net'):
      return tf.matmul(inputs, v1.get_variable('kernel', (3, 2), regularizer=decay))


class Residual(tiny_models.OneImageModel):
  """A convolution whose shape has to stay."""

  def model(self, inputs, training):
    channels = inputs.shape[-1]
    w = v1.get_variable('w', (3, 3, channels, channels))
    return inputs + tf.nn.conv2d(inputs, w, 1, 'SAME')


class DrawsInALoop(tiny_models.OneModel):
  def model(self, inputs, training):
    w = v1.get_variable('w', (3,))
    if not training:
      return w * inputs
    step = lambda n, net: (n + 1, net + tf.random.uniform((4, 3)))  # noqa: E731
    return w * v1.while_loop(lambda n, _: n < 2, step, (0, inputs))[1]


class Wrong(Activated):
  def port(self, inputs, training):
    return self.model(inputs, training) + 1.0


class NotAGraph(Activated):
  def port(self, inputs, training):
    if not training and tf.executing_eagerly() is False:
      raise ValueError('eager tensors only')
    return self.model(inputs, training)


class NoPlace(tiny_models.OneModel):
  def model(self, inputs, training):
    return tf.matmul(inputs, v1.get_variable('kernel', (3, 2)))


class LeftOut(Activated):
  stages = tf2verify.all_stages_except(zero_randomness='takes long')


class Inference(Activated):
  training_modes = (False,)


class OtherwiseAsAGraph(Activated):
  """Adds one, but only when it is traced."""

  def port(self, inputs, training):
    net = self.model(inputs, training)
    return net if tf.executing_eagerly() else net + 1.0
