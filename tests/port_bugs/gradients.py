"""Mistakes that only the backward pass shows."""

import abc

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models
from tests.stages.tiny_models import kernel

v1 = tf.compat.v1
_GRADIENTS = 'gradients'


class Distilled(tiny_models.OneModel, abc.ABC):
  """Soft labels from a teacher that is trained along."""

  def model(self, inputs, training):
    teacher, student = self.logits(inputs)
    labels = tf.nn.softmax(teacher)
    return v1.nn.softmax_cross_entropy_with_logits(labels=labels, logits=student)

  def logits(self, inputs):
    return [v1.layers.dense(inputs, 3, name=name) for name in ('teacher', 'student')]


class DistilledByStoppedLabels(Distilled):
  def port(self, inputs, training):
    teacher, student = self.logits(inputs)
    labels = tf.stop_gradient(tf.nn.softmax(teacher))
    return tf.nn.softmax_cross_entropy_with_logits(labels, student)


class DistilledByLabels(Distilled):
  def port(self, inputs, training):
    teacher, student = self.logits(inputs)
    return tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(teacher), student)


SIGNS = (1.0, -1.0, 1.0)


@tf.RegisterGradient('GuidedReluOfPortBugs')
def _guided_relu_gradient(op, upstream):
  return tf.where(upstream > 0, upstream, 0.0) * tf.cast(op.outputs[0] > 0, tf.float32)


@tf.custom_gradient
def guided_relu(net):
  output = tf.nn.relu(net)
  return output, lambda upstream: tf.where((upstream > 0) & (output > 0), upstream, 0.0)


def overridden_relu(net):
  with v1.get_default_graph().gradient_override_map({'Relu': 'GuidedReluOfPortBugs'}):
    return tf.nn.relu(net)


class GuidedPort(tf.keras.layers.Layer):
  def __init__(self, activation):
    super().__init__(name='port')
    self.fc = tf.keras.layers.Dense(3, name='fc')
    self.activation = activation

  def call(self, inputs):
    return self.activation(self.fc(inputs)) * SIGNS


class Guided(tiny_models.OneModel):
  """Guided back-propagation; gradients of either sign come to the activation."""

  activation = staticmethod(guided_relu)

  def model(self, inputs, training):
    return overridden_relu(v1.layers.dense(inputs, 3, name='fc')) * SIGNS

  def make_tf2_layer(self):
    return GuidedPort(self.activation)

  def variable_names(self, name):
    return f'port/{name}'


class GuidedByOverriding(Guided):
  activation = staticmethod(overridden_relu)


class QLearning(tiny_models.OneModel):
  """A temporal difference towards a target network."""

  def model(self, inputs, training, stop=tf.stop_gradient):
    online = v1.layers.dense(inputs['state'], 2, name='online')
    target = v1.layers.dense(inputs['next_state'], 2, name='target')
    aim = inputs['reward'] + 0.9 * tf.reduce_max(target, 1)
    return tf.square(stop(aim) - tf.reduce_max(online, 1))

  def make_inputs(self):
    return {
      'state': tf2verify.normal_inputs((4, 3), seed=1),
      'next_state': tf2verify.normal_inputs((4, 3), seed=2),
      'reward': np.array([0, 1, 0, -1], np.float32),
    }


class QLearningOfBothNetworks(QLearning):
  def port(self, inputs, training):
    return self.model(inputs, training, stop=tf.identity)


def with_gradient(net, factor):
  """Returns `net`, whose gradient is multiplied."""

  @tf.custom_gradient
  def scaled(net):
    return tf.identity(net), lambda upstream: factor * upstream

  return scaled(tf.convert_to_tensor(net))


class MixedPrecision(tiny_models.OneModel):
  """float16 with a static loss scale, float32 variables by a custom getter."""

  loss_scale = 128.0
  unscales = True

  def model(self, inputs, training, unscales=True):
    def half(getter, **arguments):
      master = getter(**arguments)
      factor = 1 / self.loss_scale if unscales else 1.0
      return tf.cast(with_gradient(master, factor), tf.float16)

    with v1.variable_scope('', custom_getter=half):
      net = tf.cast(inputs, tf.float16) @ kernel()
    return with_gradient(tf.cast(net, tf.float32), self.loss_scale)

  def port(self, inputs, training):
    return self.model(inputs, training, self.unscales)


class MixedPrecisionStillScaled(MixedPrecision):
  unscales = False


PORT_BUGS = (
  PortBug(
    'B56g',
    'gradient through the labels',
    tf1='softmax_cross_entropy_with_logits of TF1 stops the gradient at the labels',
    mistake='that of TF2 does not',
    stage=_GRADIENTS,
    wrong=DistilledByLabels,
    right=DistilledByStoppedLabels,
    words=('teacher/kernel', 'stop_gradient', 'labels'),
    causes=('label_gradient',),
  ),
  PortBug(
    'B70',
    'gradient_override_map',
    tf1="a graph's gradient_override_map replaces the gradient of relu",
    mistake='the same code has no effect in eager mode, nor where the tape is in a tf.function',
    stage=_GRADIENTS,
    wrong=GuidedByOverriding,
    right=Guided,
    words=('gradient_override_map', 'tf.custom_gradient'),
    causes=('gradient_override',),
  ),
  PortBug(
    'B71',
    'stop_gradient lost',
    tf1='stop_gradient excludes the target network from training',
    mistake='leaves it out',
    stage=_GRADIENTS,
    wrong=QLearningOfBothNetworks,
    right=QLearning,
    words=('target/kernel', 'a stop_gradient was lost in the port'),
    causes=('stop_gradient',),
  ),
  PortBug(
    'B92',
    'loss scale of mixed precision',
    tf1='a custom getter casts float32 variables and removes the static loss scale again',
    mistake='leaves the gradients scaled, as a mixed_float16 loop without get_unscaled_gradients '
    '(here both in the model, by custom gradients)',
    stage=_GRADIENTS,
    wrong=MixedPrecisionStillScaled,
    right=MixedPrecision,
    words=('128', 'loss scale'),
    causes=('loss_scale',),
  ),
)
