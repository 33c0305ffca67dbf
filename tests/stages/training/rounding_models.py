"""Models of which a gradient is zero in exact arithmetic, and rounding in fact."""

import abc

import tensorflow as tf

import tf2verify

v1 = tf.compat.v1


class Shim(tf.keras.layers.Layer):
  def __init__(self, function):
    super().__init__()
    self._function = function

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs):
    return self._function(inputs)


def whole(bias):
  return bias


def first_cut(bias):
  return tf.concat([tf.stop_gradient(bias[:1]), bias[1:]], 0)


def softmax_by_hand(logits):
  exponentials = tf.exp(logits - tf.reduce_max(logits, -1, keepdims=True))
  return exponentials / tf.reduce_sum(exponentials, -1, keepdims=True)


def attention(inputs, softmax, changed=whole):
  """One bias for query, key and value: a softmax takes no notice of that of the keys."""
  with v1.variable_scope('a'):
    kernel = v1.get_variable('kernel', [8, 24])
    bias = changed(v1.get_variable('bias', [24]))
  query, key, value = tf.split(tf.tensordot(inputs, kernel, 1) + bias, 3, -1)
  return tf.matmul(softmax(tf.matmul(query, key, transpose_b=True)), value)


def normalized(inputs, by_hand):
  """A bias that the normalization after it takes away."""
  with v1.variable_scope('c'):
    kernel = v1.get_variable('kernel', [3, 3, 3, 4])
    net = tf.nn.conv2d(inputs, kernel, 1, 'VALID') + v1.get_variable('bias', [4])
  with v1.variable_scope('norm'):
    gamma = v1.get_variable('gamma', [4])
    beta = v1.get_variable('beta', [4])
  if not by_hand:
    mean, variance = tf.nn.moments(net, [0, 1, 2])
    return tf.nn.batch_normalization(net, mean, variance, beta, gamma, 1e-3)
  mean = tf.reduce_mean(net, [0, 1, 2])
  variance = tf.reduce_mean((net - mean) ** 2, [0, 1, 2])
  return (net - mean) * tf.math.rsqrt(variance + 1e-3) * gamma + beta


class ByAdam(tf2verify.EquivalenceCase, abc.ABC):
  stages = tf2verify.all_stages_except(
    checkpoint='of no interest here', execution_modes='likewise', determinism='likewise'
  )

  def tf1_loss(self, outputs, labels):
    return tf.reduce_mean((outputs - 1.0) ** 3)

  tf2_loss = tf1_loss

  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(1e-3)

  def make_tf2_optimizer(self):
    return v1.train.AdamOptimizer(1e-3)


class FusedBias(ByAdam, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return attention(inputs, softmax_by_hand)

  def make_tf2_layer(self):
    return Shim(lambda inputs: attention(inputs, tf.nn.softmax))

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 6, 8))


class NormalizedBias(ByAdam, abc.ABC):
  def build_tf1_graph(self, inputs, training):
    return normalized(inputs, by_hand=True)

  def make_tf2_layer(self):
    return Shim(lambda inputs: normalized(inputs, by_hand=False))

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 6, 6, 3))


def with_added(amounts):
  """Returns Adam that adds something to every bias after its update."""

  class Adding(v1.train.AdamOptimizer):
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
      pairs = list(grads_and_vars)
      super().apply_gradients(pairs, global_step)
      for _, variable in pairs:
        if 'bias' in variable.name:
          variable.assign_add(tf.constant(amounts, tf.float32))

  return Adding(1e-3)
