"""References that do not repeat themselves, and what no run is to be blamed for."""

import abc

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import Control, PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1


class DequantizedPort(tf.keras.layers.Layer):
  """Scores pixels that are spread over their quantization step."""

  def __init__(self):
    super().__init__(name='port')
    self.scores = tf.keras.layers.Dense(3, name='scores')

  def call(self, inputs):
    return self.scores(inputs + Dequantized.step * tf.constant(Dequantized.spread(4)))


class Dequantized(tiny_models.OneModel, abc.ABC):
  """Adds noise within a quantization step, drawn in Python."""

  step = 1e-7

  @staticmethod
  def spread(batch):
    return np.random.default_rng(7).random((batch, 3)).astype(np.float32)

  def noise(self, inputs):
    return self.spread(len(inputs))

  def model(self, inputs, training):
    noise = tf.stop_gradient(v1.py_func(self.noise, [inputs], tf.float32))
    return v1.layers.dense(inputs + self.step * tf.ensure_shape(noise, [4, 3]), 3, name='scores')

  def make_tf2_layer(self):
    return DequantizedPort()

  def variable_names(self, name):
    return f'port/{name}'


class DequantizedWithSeed(Dequantized):
  pass


class DequantizedWithoutSeed(Dequantized):
  def noise(self, inputs):
    return np.random.default_rng().random(inputs.shape).astype(np.float32)


class FusedByGrappler(tiny_models.OneModel):
  """Convolution, bias and relu, which a session with Grappler runs as one kernel."""

  def model(self, inputs, training):
    net = inputs
    for number in range(4):
      net = v1.layers.conv2d(
        net, 8, 3, padding='same', activation=tf.nn.relu, name=f'conv_{number}'
      )
    return v1.layers.dense(tf.reduce_mean(net, [1, 2]), 3, name='logits')

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 8, 8, 3))


PORT_BUGS = (
  PortBug(
    'B95',
    'a reference that is not repeatable',
    tf1='py_func draws from a generator without a seed, at every run of the session',
    mistake='none: no port can be closer to the reference than the reference is to itself',
    stage='determinism',
    wrong=DequantizedWithoutSeed,
    right=DequantizedWithSeed,
    words=('the first to vary on the tf1 side', 'PyFunc', 'without a seed'),
    status=tf2verify.Status.INCONCLUSIVE,
  ),
)
CONTROLS = (Control('operations that Grappler would fuse, eager against graph', FusedByGrappler),)
