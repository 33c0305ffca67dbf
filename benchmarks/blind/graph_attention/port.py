"""The port of the graph network: rewritten code under the shim, with its loss and optimizer."""

import tensorflow as tf

v1 = tf.compat.v1

DECAY = 5e-3


def decayed(kernel):
  return DECAY * 0.5 * tf.reduce_sum(kernel**2)


def projection(name, size, units, regularizer=None):
  """The weights of a convolution of width 1, as a matrix."""
  with v1.variable_scope(name):
    return v1.get_variable('kernel', [1, size, units], regularizer=regularizer)[0]


def offset(name, units):
  with v1.variable_scope(name):
    return v1.get_variable('bias', [units], initializer=tf.zeros_initializer())


def drop(x, rate, training):
  return tf.nn.dropout(x, rate=rate) if training else x


class Attention(tf.Module):
  """One head of masked attention."""

  def __init__(self, scope, units, activation):
    super().__init__()
    self.scope, self.units, self.activation = scope, units, activation

  def __call__(self, nodes, edges, training):
    with v1.variable_scope(self.scope):
      nodes = drop(nodes, 0.2, training)
      features = nodes @ projection('features', nodes.shape[-1], self.units, decayed)
      listener = features @ projection('self', self.units, 1) + offset('self', 1)
      speaker = features @ projection('neighbour', self.units, 1) + offset('neighbour', 1)
      scores = listener + tf.linalg.matrix_transpose(speaker)
      scores = tf.nn.leaky_relu(scores, alpha=0.2)
      scores = tf.where(edges > 0, scores, -1e9)
      weights = tf.nn.softmax(scores, axis=-1)
      weights = drop(weights, 0.3, training)
      features = drop(features, 0.2, training)
      values = tf.einsum('bij,bjf->bif', weights, features)
      bias = v1.get_variable('bias', [self.units], initializer=tf.zeros_initializer())
      return self.activation(values + bias)


class GraphNetwork(tf.keras.layers.Layer):
  def __init__(self):
    super().__init__()
    self.first = [Attention(f'attention_1/head_{i}', 4, tf.nn.elu) for i in range(3)]
    self.second = [Attention(f'attention_2/head_{i}', 6, tf.identity) for i in range(2)]

  def normalize(self, net):
    with v1.variable_scope('norm'):
      beta = v1.get_variable('beta', [12], initializer=tf.zeros_initializer())
      gamma = v1.get_variable('gamma', [12], initializer=tf.ones_initializer())
    centred = net - tf.reduce_mean(net, axis=-1, keepdims=True)
    variance = tf.reduce_mean(centred**2, axis=-1, keepdims=True)
    return gamma * centred / tf.sqrt(variance + 1e-3) + beta

  def degree_scale(self, degree, mask, training):
    average = v1.get_variable(
      'average_degree', [], initializer=tf.ones_initializer(), trainable=False
    )
    logs = tf.math.log1p(degree)
    if not training:
      return logs / average
    batch = tf.reduce_sum(logs * mask) / tf.reduce_sum(mask)
    average.assign(0.9 * average + 0.1 * batch)
    return logs / batch

  def convolve(self, net, adjacency, edges, mask, training):
    with v1.variable_scope('convolution'):
      inverse_root = tf.math.rsqrt(tf.reduce_sum(edges, axis=2))
      kernel = v1.get_variable(
        'kernel',
        [12, 6],
        initializer=v1.truncated_normal_initializer(stddev=0.3),
        regularizer=decayed,
      )
      messages = (net @ kernel) * inverse_root[:, :, None]
      convolved = (edges @ messages) * inverse_root[:, :, None]
      degree = tf.reduce_sum(adjacency, axis=2)
      return convolved * self.degree_scale(degree, mask, training)[:, :, None]

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs, training=False):
    mask = inputs['mask']
    adjacency = tf.einsum('bij,bi,bj->bij', inputs['adjacency'], mask, mask)
    edges = tf.linalg.set_diag(adjacency, tf.ones_like(mask))
    with v1.variable_scope('graph'):
      net = tf.concat([head(inputs['nodes'], edges, training) for head in self.first], -1)
      net = self.normalize(net)
      attended = tf.reduce_mean([head(net, edges, training) for head in self.second], axis=0)
      convolved = self.convolve(net, adjacency, edges, mask, training)
      with v1.variable_scope('gate'):
        gate = v1.layers.dense(
          tf.concat([attended, convolved], -1),
          6,
          activation=tf.sigmoid,
          bias_initializer=v1.constant_initializer(-1.0),
          name='mix',
        )
      net = gate * attended + (1.0 - gate) * tf.nn.relu(convolved)
      nodes = v1.layers.dense(net, 3, name='nodes')
      there = mask[:, :, None]
      count = tf.maximum(tf.reduce_sum(mask, axis=1, keepdims=True), 1.0)
      mean = tf.reduce_sum(net * there, axis=1) / count
      most = tf.reduce_max(tf.where(there > 0, net, -1e9), axis=1)
      readout = tf.concat([mean, tf.stop_gradient(most)], -1)
      graph = v1.layers.dense(readout, 4, name='graph_logits')
    return {'nodes': nodes, 'graph': graph}


def loss(outputs, labels):
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels['nodes'], outputs['nodes'])
  mask = labels['train_mask']
  node_loss = tf.reduce_mean(each * mask) / tf.maximum(tf.reduce_mean(mask), 1e-3)
  smooth = labels['graph'] * 0.9 + 0.05
  graph_loss = tf.nn.weighted_cross_entropy_with_logits(smooth, outputs['graph'], pos_weight=2.0)
  return node_loss + 0.3 * tf.reduce_mean(tf.reduce_sum(graph_loss, axis=1))


class WarmDecay(tf.keras.optimizers.schedules.LearningRateSchedule):
  def __init__(self):
    self.decay = tf.keras.optimizers.schedules.PolynomialDecay(0.02, 4, 0.002, power=2.0)

  def __call__(self, step):
    return self.decay(step) * tf.minimum(1.0, (tf.cast(step, tf.float32) + 1.0) / 3.0)

  def get_config(self):
    return {}


def make_optimizer():
  return tf.keras.optimizers.Adam(WarmDecay(), beta_1=0.8, epsilon=1e-8, clipnorm=0.2)
