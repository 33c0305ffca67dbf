"""A capsule network for small images, TF1 code of 2018.

After Sabour, Frosst, Hinton 2017, 'Dynamic Routing Between Capsules': primary capsules, routing by
agreement, margin loss, reconstruction of the masked pose. Whole primary capsules are dropped in
training, and some images have no label (-1): they take part in the reconstruction alone.
"""

import tensorflow.compat.v1 as tf

NUM_CLASSES = 5
CONV_FILTERS = 8
PRIMARY_TYPES = 4
PRIMARY_DIM = 6
DIGIT_DIM = 8
ROUTING_ITERS = 3
KEEP_PROB = 0.8
DECODER = [24, 32]
WEIGHT_DECAY = 2e-3
EPS = 1e-7

M_PLUS = 0.9
M_MINUS = 0.1
DOWN_WEIGHT = 0.5
RECONSTRUCTION = 0.005

LEARNING_RATE = 0.1
DECAY_STEPS = 2
DECAY_RATE = 0.6
MOMENTUM = 0.9
CLIP_NORM = 0.4
EMA_DECAY = 0.999


def l2_regularizer(scale):
  def regularize(weights):
    return scale * tf.nn.l2_loss(weights)
  return regularize


def squash(s, axis=-1):
  squared = tf.reduce_sum(tf.square(s), axis, keepdims=True)
  return squared / (1.0 + squared) * s / tf.sqrt(squared + EPS)


def primary_capsules(images, training):
  with tf.variable_scope('primary'):
    net = tf.layers.conv2d(
        images, CONV_FILTERS, 5, activation=tf.nn.relu,
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.1), name='conv')
    net = tf.layers.conv2d(
        net, PRIMARY_TYPES * PRIMARY_DIM, 3, strides=2,
        kernel_initializer=tf.truncated_normal_initializer(stddev=0.1),
        bias_initializer=tf.constant_initializer(0.05), name='capsules')
    count = int(net.shape[1]) * int(net.shape[2]) * PRIMARY_TYPES
    u = squash(tf.reshape(net, [-1, count, PRIMARY_DIM]))
    if training:
      u = tf.nn.dropout(u, keep_prob=KEEP_PROB, noise_shape=[tf.shape(u)[0], count, 1])
    return u


def routing(u):
  """u: [batch, inputs, in_dim]; returns v: [batch, classes, out_dim], and the last coefficients."""
  inputs = int(u.shape[1])
  with tf.variable_scope('routing'):
    w = tf.get_variable(
        'weight', [1, inputs, NUM_CLASSES * DIGIT_DIM, PRIMARY_DIM, 1],
        initializer=tf.random_normal_initializer(stddev=0.15))
    bias = tf.get_variable(
        'bias', [1, 1, NUM_CLASSES, DIGIT_DIM], initializer=tf.constant_initializer(0.1))
    u = tf.tile(tf.reshape(u, [-1, inputs, 1, PRIMARY_DIM, 1]),
                [1, 1, NUM_CLASSES * DIGIT_DIM, 1, 1])
    u_hat = tf.reshape(tf.reduce_sum(w * u, axis=3), [-1, inputs, NUM_CLASSES, DIGIT_DIM])
    u_hat_stopped = tf.stop_gradient(u_hat)
    b = tf.zeros_like(u_hat[:, :, :, :1])
    for i in range(ROUTING_ITERS):
      c = tf.nn.softmax(b, axis=2)
      if i == ROUTING_ITERS - 1:
        s = tf.reduce_sum(c * u_hat, axis=1, keepdims=True) + bias
        v = squash(s)
      else:
        s = tf.reduce_sum(c * u_hat_stopped, axis=1, keepdims=True) + bias
        v = squash(s)
        b += tf.reduce_sum(u_hat_stopped * v, axis=3, keepdims=True)
    return tf.squeeze(v, axis=1), tf.squeeze(c, axis=3)


def decoder(v, label, lengths, training):
  predicted = tf.argmax(lengths, axis=1, output_type=tf.int32)
  if training:
    chosen = tf.where(label >= 0, label, predicted)
  else:
    chosen = predicted
  mask = tf.one_hot(chosen, NUM_CLASSES)
  masked = v * tf.expand_dims(mask, 2)
  net = tf.reshape(masked, [-1, NUM_CLASSES * DIGIT_DIM])
  with tf.variable_scope('decoder'):
    for i, size in enumerate(DECODER):
      net = tf.layers.dense(
          net, size, activation=tf.nn.relu,
          kernel_regularizer=l2_regularizer(WEIGHT_DECAY), name='fc%d' % (i + 1))
    return net


def capsnet(inputs, training):
  with tf.variable_scope('capsnet'):
    images = tf.cast(inputs['image'], tf.float32) * (1.0 / 255.0)
    u = primary_capsules(images, training)
    v, coupling = routing(u)
    lengths = tf.sqrt(tf.reduce_sum(tf.square(v), axis=2) + EPS)
    net = decoder(v, inputs['label'], lengths, training)
    pixels = int(images.shape[1]) * int(images.shape[2]) * int(images.shape[3])
    image = tf.layers.dense(
        net, pixels, activation=tf.nn.sigmoid,
        kernel_regularizer=l2_regularizer(WEIGHT_DECAY), name='image')
    return {'lengths': lengths, 'pose': v, 'coupling': coupling, 'image': image}


def margin_loss(lengths, label):
  t = tf.one_hot(label, NUM_CLASSES)
  present = tf.square(tf.maximum(0.0, M_PLUS - lengths))
  absent = tf.square(tf.maximum(0.0, lengths - M_MINUS))
  each = tf.reduce_sum(t * present + DOWN_WEIGHT * (1.0 - t) * absent, axis=1)
  return tf.losses.compute_weighted_loss(each, tf.cast(label >= 0, tf.float32))


def capsnet_loss(outputs, labels):
  margin = margin_loss(outputs['lengths'], labels['label'])
  target = tf.layers.flatten(tf.cast(labels['image'], tf.float32) * (1.0 / 255.0))
  errors = tf.reduce_sum(tf.square(outputs['image'] - target), axis=1)
  reconstruction = RECONSTRUCTION * tf.reduce_mean(errors)
  return {'loss': margin + reconstruction, 'margin': margin, 'reconstruction': reconstruction}


def train_op(loss):
  """`loss` includes the weight decay."""
  global_step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(
      LEARNING_RATE, global_step, DECAY_STEPS, DECAY_RATE, staircase=True)
  optimizer = tf.train.MomentumOptimizer(rate, MOMENTUM, use_nesterov=True)
  gradients, variables = zip(*optimizer.compute_gradients(loss))
  gradients, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
  train = optimizer.apply_gradients(zip(gradients, variables), global_step=global_step)
  ema = tf.train.ExponentialMovingAverage(EMA_DECAY, num_updates=global_step)
  with tf.control_dependencies([train]):
    return ema.apply(tf.trainable_variables())
