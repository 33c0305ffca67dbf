"""A normalizing flow for small images, TF1 code of 2018.

After Kingma, Dhariwal 2018, 'Glow: Generative Flow with Invertible 1x1 Convolutions', in the manner of
its code: levels of squeeze, actnorm, invertible convolution and affine coupling, a Gaussian prior
that is learned and depends on the class, a classifier on the last latents, Polyak averages.
"""

import numpy as np
import tensorflow.compat.v1 as tf

N_BITS = 5
N_BINS = 2.0 ** N_BITS
N_LEVELS = 2
DEPTH = 2
WIDTH = 10
N_Y = 4
LOGSCALE_FACTOR = 3.0

WEIGHT_Y = 0.3
SMOOTHING = 0.1

LR = 0.004
WARMUP = 3
BETA1 = 0.9
BETA2 = 0.98
MAX_GRAD_NORM = 5.0
POLYAK = 0.95


def preprocess(x, training):
  x = tf.cast(x, tf.float32)
  x = tf.floor(x / 2.0 ** (8 - N_BITS))
  x = x / N_BINS - 0.5
  if training:
    x += tf.random_uniform(tf.shape(x), 0.0, 1.0 / N_BINS)
  return x


def int_shape(x):
  return [d.value for d in x.get_shape().dims]


def squeeze2d(x, factor=2):
  _, height, width, channels = int_shape(x)
  x = tf.reshape(x, [-1, height // factor, factor, width // factor, factor, channels])
  x = tf.transpose(x, [0, 1, 3, 5, 2, 4])
  return tf.reshape(x, [-1, height // factor, width // factor, channels * factor * factor])


def add_edge_padding(x, filter_size):
  """'SAME' by hand, with a channel that tells where the padding is."""
  a = (filter_size[0] - 1) // 2
  b = (filter_size[1] - 1) // 2
  _, height, width, _ = int_shape(x)
  x = tf.pad(x, [[0, 0], [a, a], [b, b], [0, 0]])
  pad = np.zeros([1, height + 2 * a, width + 2 * b, 1], dtype='float32')
  pad[:, :a, :, 0] = 1.0
  pad[:, height + a:, :, 0] = 1.0
  pad[:, :, :b, 0] = 1.0
  pad[:, :, width + b:, 0] = 1.0
  pad = tf.tile(tf.constant(pad), [tf.shape(x)[0], 1, 1, 1])
  return tf.concat([x, pad], axis=3)


def actnorm(name, x, logdet=None):
  with tf.variable_scope(name):
    _, height, width, channels = int_shape(x)
    b = tf.get_variable('b', [1, 1, 1, channels], initializer=tf.zeros_initializer())
    logs = tf.get_variable('logs', [1, 1, 1, channels], initializer=tf.zeros_initializer())
    logs = logs * LOGSCALE_FACTOR
    x = (x + b) * tf.exp(logs)
    if logdet is None:
      return x
    return x, logdet + tf.reduce_sum(logs) * height * width


def conv2d(name, x, width, filter_size):
  with tf.variable_scope(name):
    if filter_size != [1, 1]:
      x = add_edge_padding(x, filter_size)
    n_in = int_shape(x)[3]
    w = tf.get_variable(
        'W', filter_size + [n_in, width], initializer=tf.random_normal_initializer(0.0, 0.05))
    x = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding='VALID')
    return actnorm('actnorm', x)


def conv2d_zeros(name, x, width, filter_size=(3, 3)):
  with tf.variable_scope(name):
    filter_size = list(filter_size)
    x = add_edge_padding(x, filter_size)
    n_in = int_shape(x)[3]
    w = tf.get_variable('W', filter_size + [n_in, width], initializer=tf.zeros_initializer())
    x = tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding='VALID')
    x += tf.get_variable('b', [1, 1, 1, width], initializer=tf.zeros_initializer())
    logs = tf.get_variable('logs', [1, width], initializer=tf.zeros_initializer())
    return x * tf.exp(logs * LOGSCALE_FACTOR)


def linear_zeros(name, x, width):
  with tf.variable_scope(name):
    n_in = int_shape(x)[1]
    w = tf.get_variable('W', [n_in, width], initializer=tf.zeros_initializer())
    x = tf.matmul(x, w)
    x += tf.get_variable('b', [1, width], initializer=tf.zeros_initializer())
    logs = tf.get_variable('logs', [1, width], initializer=tf.zeros_initializer())
    return x * tf.exp(logs * LOGSCALE_FACTOR)


def invertible_1x1_conv(name, z, logdet):
  with tf.variable_scope(name):
    _, height, width, channels = int_shape(z)
    w = tf.get_variable('W', [channels, channels], initializer=tf.orthogonal_initializer())
    det = tf.matrix_determinant(tf.cast(w, tf.float64))
    dlogdet = tf.cast(tf.log(tf.abs(det)), tf.float32) * height * width
    z = tf.nn.conv2d(z, tf.reshape(w, [1, 1, channels, channels]), [1, 1, 1, 1], 'SAME')
    return z, logdet + dlogdet


def f(name, h, n_out):
  with tf.variable_scope(name):
    h = tf.nn.relu(conv2d('l_1', h, WIDTH, [3, 3]))
    h = tf.nn.relu(conv2d('l_2', h, WIDTH, [1, 1]))
    return conv2d_zeros('l_last', h, n_out)


def revnet2d_step(name, z, logdet):
  with tf.variable_scope(name):
    z, logdet = actnorm('actnorm', z, logdet)
    z, logdet = invertible_1x1_conv('invconv', z, logdet)
    n_z = int_shape(z)[3]
    z1 = z[:, :, :, :n_z // 2]
    z2 = z[:, :, :, n_z // 2:]
    h = f('f1', z1, n_z)
    shift = h[:, :, :, 0::2]
    scale = tf.nn.sigmoid(h[:, :, :, 1::2] + 2.0)
    z2 += shift
    z2 *= scale
    logdet += tf.reduce_sum(tf.log(scale), axis=[1, 2, 3])
    return tf.concat([z1, z2], 3), logdet


def gaussian_logp(x, mean, logs):
  return -0.5 * (np.log(2 * np.pi) + 2.0 * logs + (x - mean) ** 2 / tf.exp(2.0 * logs))


def split2d(name, z, objective):
  with tf.variable_scope(name):
    n_z = int_shape(z)[3]
    z1 = z[:, :, :, :n_z // 2]
    z2 = z[:, :, :, n_z // 2:]
    h = conv2d_zeros('conv', z1, n_z)
    mean, logs = h[:, :, :, 0::2], h[:, :, :, 1::2]
    objective += tf.reduce_sum(gaussian_logp(z2, mean, logs), axis=[1, 2, 3])
    eps = (z2 - mean) / tf.exp(logs)
    return z1, objective, eps


def prior(name, z, y):
  """Of the last latents, from the class."""
  with tf.variable_scope(name):
    _, height, width, n_z = int_shape(z)
    h = tf.zeros_like(tf.concat([z, z], 3))
    h = conv2d_zeros('conv', h, 2 * n_z)
    h += tf.reshape(linear_zeros('y_emb', tf.one_hot(y, N_Y), 2 * n_z), [-1, 1, 1, 2 * n_z])
    return h[:, :, :, :n_z], h[:, :, :, n_z:]


def glow(inputs, training):
  with tf.variable_scope('model'):
    z = preprocess(inputs['x'], training)
    _, height, width, channels = int_shape(z)
    objective = tf.zeros_like(z[:, 0, 0, 0]) - np.log(N_BINS) * height * width * channels
    eps = []
    for i in range(N_LEVELS):
      z = squeeze2d(z)
      for j in range(DEPTH):
        z, objective = revnet2d_step('level%d_step%d' % (i, j), z, objective)
      if i < N_LEVELS - 1:
        z, objective, e = split2d('pool%d' % i, z, objective)
        eps.append(e)
    mean, logs = prior('prior', z, inputs['y'])
    objective += tf.reduce_sum(gaussian_logp(z, mean, logs), axis=[1, 2, 3])
    eps.append((z - mean) / tf.exp(logs))
    logits = linear_zeros('classifier', tf.reduce_mean(z, axis=[1, 2]), N_Y)
    return {'objective': objective, 'eps': eps, 'logits': logits}


def glow_loss(outputs, labels):
  pixels = np.prod([int(d) for d in labels['x'].shape[1:]])
  bits_x = -outputs['objective'] / (np.log(2.0) * pixels)
  bits_y = tf.losses.softmax_cross_entropy(
      tf.one_hot(labels['y'], N_Y), outputs['logits'], label_smoothing=SMOOTHING,
      reduction=tf.losses.Reduction.NONE) / np.log(2.0)
  return tf.reduce_mean(bits_x + WEIGHT_Y * bits_y)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  t = tf.cast(step, tf.float32) + 1.0
  rate = LR * tf.minimum(t / WARMUP, tf.sqrt(WARMUP / t))
  optimizer = tf.train.AdamOptimizer(rate, beta1=BETA1, beta2=BETA2, epsilon=1e-8)
  variables = tf.trainable_variables()
  gradients = tf.gradients(loss, variables)
  gradients, _ = tf.clip_by_global_norm(gradients, MAX_GRAD_NORM)
  train = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
  polyak = tf.train.ExponentialMovingAverage(POLYAK)
  with tf.control_dependencies([train]):
    return polyak.apply(variables)
