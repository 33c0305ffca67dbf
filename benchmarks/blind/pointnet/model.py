"""PointNet for the segmentation of parts, TF1 code of 2017.

After Qi, Su, Mo, Guibas 2017, 'PointNet: Deep Learning on Point Sets for 3D Classification and
Segmentation': a spatial transformer on the points and one on their features, the maximum over all
points, a head for the category of the object and one for the part of each point. The decay of the
batch norms grows with the global step, and points whose part is not known have the label -1.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.training import moving_averages

NUM_CATEGORIES = 4
NUM_PARTS = 6
FEATURES = 8
JITTER_SIGMA = 0.02
JITTER_CLIP = 0.03
CLS_KEEP_PROB = 0.7
SEG_KEEP_PROB = 0.8
WEIGHT_DECAY = 4e-3

LABEL_SMOOTHING = 0.1
SEG_WEIGHT = 0.8
REG_WEIGHT = 1e-3

BATCH_SIZE = 8
BASE_LEARNING_RATE = 0.01
DECAY_STEP = 16  # in examples
DECAY_RATE = 0.5
MIN_LEARNING_RATE = 0.003
MAX_GRAD_NORM = 1.0
BN_INIT_DECAY = 0.5
BN_DECAY_DECAY_RATE = 0.6
BN_DECAY_DECAY_STEP = 16
BN_DECAY_CLIP = 0.8


def get_bn_decay(step):
  bn_momentum = tf.train.exponential_decay(
      BN_INIT_DECAY, step * BATCH_SIZE, BN_DECAY_DECAY_STEP, BN_DECAY_DECAY_RATE, staircase=True)
  return tf.minimum(BN_DECAY_CLIP, 1 - bn_momentum)


def batch_norm(inputs, is_training, bn_decay):
  with tf.variable_scope('bn'):
    num_channels = inputs.get_shape()[-1].value
    beta = tf.get_variable('beta', [num_channels], initializer=tf.zeros_initializer())
    gamma = tf.get_variable('gamma', [num_channels], initializer=tf.ones_initializer())
    moving_mean = tf.get_variable(
        'moving_mean', [num_channels], initializer=tf.zeros_initializer(), trainable=False)
    moving_var = tf.get_variable(
        'moving_variance', [num_channels], initializer=tf.ones_initializer(), trainable=False)
    if is_training:
      mean, var = tf.nn.moments(inputs, list(range(inputs.get_shape().ndims - 1)))
      updates = [
          moving_averages.assign_moving_average(moving_mean, mean, bn_decay, zero_debias=False),
          moving_averages.assign_moving_average(moving_var, var, bn_decay, zero_debias=False)]
      with tf.control_dependencies(updates):
        mean, var = tf.identity(mean), tf.identity(var)
    else:
      mean, var = moving_mean, moving_var
    return tf.nn.batch_normalization(inputs, mean, var, beta, gamma, 1e-3)


def conv2d(inputs, num_outputs, kernel_size, scope, is_training=None, bn_decay=None, bn=True):
  with tf.variable_scope(scope):
    shape = kernel_size + [inputs.get_shape()[-1].value, num_outputs]
    kernel = tf.get_variable('weights', shape, initializer=tf.glorot_uniform_initializer())
    outputs = tf.nn.conv2d(inputs, kernel, [1, 1, 1, 1], 'VALID')
    if bn:
      return tf.nn.relu(batch_norm(outputs, is_training, bn_decay))
    biases = tf.get_variable('biases', [num_outputs], initializer=tf.zeros_initializer())
    return tf.nn.bias_add(outputs, biases)


def fully_connected(inputs, num_outputs, scope, is_training=None, bn_decay=None, bn=True):
  with tf.variable_scope(scope):
    weights = tf.get_variable(
        'weights', [inputs.get_shape()[-1].value, num_outputs],
        initializer=tf.glorot_uniform_initializer(),
        regularizer=lambda w: tf.multiply(tf.nn.l2_loss(w), WEIGHT_DECAY))
    outputs = tf.matmul(inputs, weights)
    if bn:
      return tf.nn.relu(batch_norm(outputs, is_training, bn_decay))
    biases = tf.get_variable('biases', [num_outputs], initializer=tf.zeros_initializer())
    return tf.nn.bias_add(outputs, biases)


def transform_net(inputs, k, is_training, bn_decay, scope):
  """inputs: [B, N, 1, k], or [B, N, 3, 1] for the points; returns [B, k, k]."""
  num_point = inputs.get_shape()[1].value
  with tf.variable_scope(scope):
    net = conv2d(inputs, 8, [1, inputs.get_shape()[2].value], 'tconv1', is_training, bn_decay)
    net = conv2d(net, 16, [1, 1], 'tconv2', is_training, bn_decay)
    net = tf.nn.max_pool(net, [1, num_point, 1, 1], [1, 1, 1, 1], 'VALID')
    net = tf.reshape(net, [-1, 16])
    net = fully_connected(net, 12, 'tfc1', is_training, bn_decay)
    with tf.variable_scope('transform'):
      weights = tf.get_variable('weights', [12, k * k], initializer=tf.zeros_initializer())
      biases = tf.get_variable('biases', [k * k], initializer=tf.zeros_initializer())
      biases = biases + tf.constant(np.eye(k).flatten(), dtype=tf.float32)
      transform = tf.nn.bias_add(tf.matmul(net, weights), biases)
    return tf.reshape(transform, [-1, k, k])


def pointnet(inputs, is_training):
  points = inputs['points']
  num_point = points.get_shape()[1].value
  bn_decay = get_bn_decay(tf.train.get_or_create_global_step())
  with tf.variable_scope('pointnet'):
    if is_training:
      noise = JITTER_SIGMA * tf.random_normal(tf.shape(points))
      points += tf.clip_by_value(noise, -JITTER_CLIP, JITTER_CLIP)
    transform = transform_net(tf.expand_dims(points, -1), 3, is_training, bn_decay, 'transform1')
    net = tf.expand_dims(tf.matmul(points, transform), -1)
    out1 = conv2d(net, 10, [1, 3], 'conv1', is_training, bn_decay)
    out2 = conv2d(out1, FEATURES, [1, 1], 'conv2', is_training, bn_decay)
    transform = transform_net(out2, FEATURES, is_training, bn_decay, 'transform2')
    out3 = tf.expand_dims(tf.matmul(tf.squeeze(out2, [2]), transform), 2)
    out4 = conv2d(out3, 14, [1, 1], 'conv3', is_training, bn_decay)
    out5 = conv2d(out4, 16, [1, 1], 'conv4', is_training, bn_decay)
    out_max = tf.nn.max_pool(out5, [1, num_point, 1, 1], [1, 1, 1, 1], 'VALID')

    net = tf.reshape(out_max, [-1, 16])
    net = fully_connected(net, 12, 'cls/fc1', is_training, bn_decay)
    if is_training:
      net = tf.nn.dropout(net, keep_prob=CLS_KEEP_PROB)
    category = fully_connected(net, NUM_CATEGORIES, 'cls/fc2', bn=False)

    one_hot_label = tf.reshape(tf.one_hot(inputs['category'], NUM_CATEGORIES),
                               [-1, 1, 1, NUM_CATEGORIES])
    expand = tf.tile(tf.concat([out_max, one_hot_label], 3), [1, num_point, 1, 1])
    net = tf.concat([expand, out1, out3, out5], 3)
    net = conv2d(net, 16, [1, 1], 'seg/conv1', is_training, bn_decay)
    if is_training:
      net = tf.nn.dropout(net, keep_prob=SEG_KEEP_PROB, noise_shape=[tf.shape(net)[0], 1, 1, 16])
    net = conv2d(net, 12, [1, 1], 'seg/conv2', is_training, bn_decay)
    parts = tf.squeeze(conv2d(net, NUM_PARTS, [1, 1], 'seg/conv3', bn=False), [2])
    return {'category': category, 'parts': parts, 'transform': transform}


def get_loss(outputs, labels):
  one_hot = tf.one_hot(labels['category'], NUM_CATEGORIES)
  label_loss = tf.losses.softmax_cross_entropy(
      one_hot, outputs['category'], label_smoothing=LABEL_SMOOTHING)

  known = tf.cast(labels['parts'] >= 0, tf.float32)
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=tf.maximum(labels['parts'], 0), logits=outputs['parts'])
  per_instance = tf.reduce_sum(each * known, 1) / tf.maximum(tf.reduce_sum(known, 1), 1.0)
  seg_loss = tf.reduce_mean(per_instance)

  transform = outputs['transform']
  mat_diff = tf.matmul(transform, tf.transpose(transform, [0, 2, 1]))
  mat_diff -= tf.constant(np.eye(FEATURES), dtype=tf.float32)
  mat_diff_loss = tf.nn.l2_loss(mat_diff)

  total = SEG_WEIGHT * seg_loss + (1 - SEG_WEIGHT) * label_loss + REG_WEIGHT * mat_diff_loss
  return {'loss': total, 'label': label_loss, 'seg': seg_loss, 'mat_diff': mat_diff_loss}


def get_train_op(loss):
  """`loss` includes the weight decay."""
  batch = tf.train.get_or_create_global_step()
  learning_rate = tf.train.exponential_decay(
      BASE_LEARNING_RATE, batch * BATCH_SIZE, DECAY_STEP, DECAY_RATE, staircase=True)
  learning_rate = tf.maximum(learning_rate, MIN_LEARNING_RATE)
  optimizer = tf.train.AdamOptimizer(learning_rate)
  grads_and_vars = [(tf.clip_by_norm(grad, MAX_GRAD_NORM), var)
                    for grad, var in optimizer.compute_gradients(loss)]
  return optimizer.apply_gradients(grads_and_vars, global_step=batch)
