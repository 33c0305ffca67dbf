"""A batch of dense graphs, after "Graph Attention Networks" (Velickovic et al., 2018): two layers of
masked attention, with a convolution beside the second one as in "Semi-Supervised Classification
with Graph Convolutional Networks" (Kipf and Welling, 2017). Nodes and graphs are classified.

Edges are directed: adjacency[b, i, j] is 1 where node i listens to node j.
"""

import tensorflow.compat.v1 as tf

DECAY = 5e-3


def l2(w):
  return DECAY * tf.nn.l2_loss(w)


def attention_head(seq, bias, units, coef_drop, in_drop, training, activation):
  seq = tf.layers.dropout(seq, rate=in_drop, training=training)
  fts = tf.layers.conv1d(seq, units, 1, use_bias=False, name='features',
                         kernel_regularizer=l2)
  f_1 = tf.layers.conv1d(fts, 1, 1, name='self')
  f_2 = tf.layers.conv1d(fts, 1, 1, name='neighbour')
  logits = f_1 + tf.transpose(f_2, [0, 2, 1])
  coefs = tf.nn.softmax(tf.nn.leaky_relu(logits) + bias)
  coefs = tf.layers.dropout(coefs, rate=coef_drop, training=training)
  fts = tf.layers.dropout(fts, rate=in_drop, training=training)
  values = tf.matmul(coefs, fts)
  values = tf.nn.bias_add(values, tf.get_variable('bias', [units],
                                                  initializer=tf.zeros_initializer()))
  return activation(values)


def layer_norm(x):
  """Over the features; epsilon as in tf.contrib.layers."""
  size = x.get_shape().as_list()[-1]
  beta = tf.get_variable('beta', [size], initializer=tf.zeros_initializer())
  gamma = tf.get_variable('gamma', [size], initializer=tf.ones_initializer())
  mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
  return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)


def degree_scale(degree, mask, training):
  """log(degree + 1) over its average, which is kept for inference."""
  average = tf.get_variable('average_degree', [], initializer=tf.ones_initializer(),
                            trainable=False)
  logs = tf.log(degree + 1.0)
  if training:
    batch = tf.reduce_sum(logs * mask) / tf.reduce_sum(mask)
    update = tf.assign_sub(average, (average - batch) * 0.1)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
  else:
    batch = average
  return logs / batch


def graph_network(inputs, training):
  """Returns the logits of nodes and graphs."""
  mask = inputs['mask']
  both = tf.expand_dims(mask, 1) * tf.expand_dims(mask, 2)
  adjacency = inputs['adjacency'] * both
  loops = tf.maximum(adjacency, tf.matrix_diag(tf.ones_like(mask)))
  bias = -1e9 * (1.0 - loops)
  with tf.variable_scope('graph'):
    heads = []
    for i in range(3):
      with tf.variable_scope('attention_1/head_%d' % i):
        heads.append(attention_head(inputs['nodes'], bias, 4, 0.3, 0.2, training, tf.nn.elu))
    net = tf.concat(heads, -1)
    with tf.variable_scope('norm'):
      net = layer_norm(net)
    out = []
    for i in range(2):
      with tf.variable_scope('attention_2/head_%d' % i):
        out.append(attention_head(net, bias, 6, 0.3, 0.2, training, lambda x: x))
    attended = tf.add_n(out) / 2.0
    with tf.variable_scope('convolution'):
      # D^-1/2 (A + I) D^-1/2: rows by their own degree, columns by theirs
      root = tf.rsqrt(tf.reduce_sum(loops, -1))
      normalized = tf.expand_dims(root, 2) * loops * tf.expand_dims(root, 1)
      kernel = tf.get_variable('kernel', [12, 6], initializer=tf.truncated_normal_initializer(
          stddev=0.3), regularizer=l2)
      convolved = tf.matmul(normalized, tf.tensordot(net, kernel, 1))
      convolved *= tf.expand_dims(degree_scale(tf.reduce_sum(adjacency, -1), mask, training), -1)
    with tf.variable_scope('gate'):
      gate = tf.layers.dense(tf.concat([attended, convolved], -1), 6, activation=tf.sigmoid,
                             bias_initializer=tf.constant_initializer(-1.0), name='mix')
      net = gate * attended + (1.0 - gate) * tf.nn.relu(convolved)
    nodes = tf.layers.dense(net, 3, name='nodes')
    # readout: the mean and the maximum of the nodes that are there
    there = tf.expand_dims(mask, -1)
    mean = tf.reduce_sum(net * there, 1) / tf.maximum(tf.reduce_sum(there, 1), 1.0)
    most = tf.reduce_max(net * there - 1e9 * (1.0 - there), 1)
    # what the graph is must not move what its nodes are
    readout = tf.concat([mean, tf.stop_gradient(most)], -1)
    graph = tf.layers.dense(readout, 4, name='graph_logits')
    return {'nodes': nodes, 'graph': graph}


def loss(outputs, labels):
  """Masked cross entropy as in Kipf and Welling's code, and a sigmoid one for graphs."""
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(
      logits=outputs['nodes'], labels=labels['nodes'])
  mask = labels['train_mask']
  mask = mask / tf.maximum(tf.reduce_mean(mask), 1e-3)
  node_loss = tf.reduce_mean(each * mask)
  smooth = labels['graph'] * 0.9 + 0.05
  graph_loss = tf.nn.weighted_cross_entropy_with_logits(
      targets=smooth, logits=outputs['graph'], pos_weight=2.0)
  return node_loss + 0.3 * tf.reduce_mean(tf.reduce_sum(graph_loss, axis=1))


def train_op(total_loss):
  step = tf.train.get_or_create_global_step()
  decayed = tf.train.polynomial_decay(0.02, step, 4, end_learning_rate=0.002, power=2.0)
  warm = tf.minimum(1.0, (tf.to_float(step) + 1.0) / 3.0)
  optimizer = tf.train.AdamOptimizer(decayed * warm, beta1=0.8)
  pairs = optimizer.compute_gradients(total_loss)
  pairs = [(tf.clip_by_norm(g, 0.2), v) for g, v in pairs if g is not None]
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    return optimizer.apply_gradients(pairs, global_step=step)
