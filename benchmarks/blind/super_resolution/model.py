"""EDSR-like super-resolution, TF1 code of 2018 with TF-Slim.

After Lim, Son, Kim, Nah, Lee 2017, 'Enhanced Deep Residual Networks for Single Image
Super-Resolution': scaled residual blocks without batch norm and a pixel shuffle. They are added to
the legacy bilinear upsampling, and trained with a Charbonnier loss and one of edges.
"""

import tensorflow.compat.v1 as tf
import tf_slim as slim

MEAN = [0.45, 0.44, 0.40]
FEATURES, BLOCKS, SCALE = 6, 2, 2


def res_block(x, scaling, scope):
  with tf.variable_scope(scope):
    tmp = slim.conv2d(x, FEATURES, [3, 3], scope='conv1')
    tmp = slim.conv2d(tmp, FEATURES, [3, 3], activation_fn=None, scope='conv2')
    return x + tmp * scaling


def edsr(lr, training):
  del training
  with (
    tf.variable_scope('edsr'),
    slim.arg_scope([slim.conv2d], weights_regularizer=slim.l2_regularizer(1e-3)),
  ):
    mean = tf.constant(MEAN, shape=[1, 1, 1, 3])
    x = lr - mean
    x = slim.conv2d(x, FEATURES, [3, 3], activation_fn=None, scope='head')
    skip = x
    for i in range(BLOCKS):
      x = res_block(x, 0.1, 'block_%d' % i)
    x = slim.conv2d(x, FEATURES, [3, 3], activation_fn=None, scope='tail')
    x = x + skip
    x = slim.conv2d(x, 4 * SCALE**2, [3, 3], scope='upsample')
    x = tf.depth_to_space(x, SCALE)
    x = slim.conv2d(
      x,
      3,
      [3, 3],
      activation_fn=None,
      weights_initializer=tf.truncated_normal_initializer(stddev=0.05),
      scope='reconstruct',
    )
    up = tf.image.resize_images(lr, tf.shape(lr)[1:3] * SCALE, align_corners=False)
    return x + up


def charbonnier(sr, hr, eps=1e-3):
  return tf.reduce_mean(tf.sqrt(tf.square(sr - hr) + eps**2))


def loss(sr, hr):
  dx = lambda i: i[:, :, 1:] - i[:, :, :-1]
  dy = lambda i: i[:, 1:] - i[:, :-1]
  edges = tf.reduce_mean(tf.abs(dx(sr) - dx(hr))) + tf.reduce_mean(tf.abs(dy(sr) - dy(hr)))
  return charbonnier(sr, hr) + 0.1 * edges


def psnr(sr, hr):
  mse = tf.reduce_mean(tf.squared_difference(tf.clip_by_value(sr, 0.0, 1.0), hr), [1, 2, 3])
  return tf.reduce_mean(10.0 * tf.log(1.0 / mse) / tf.log(10.0))


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.maximum(tf.train.exponential_decay(2e-3, step, 2, 0.5, staircase=False), 5e-4)
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.99, epsilon=1e-6)
  grads = optimizer.compute_gradients(loss)
  clipped, _ = tf.clip_by_global_norm([g for g, _ in grads], 0.2)
  return optimizer.apply_gradients(zip(clipped, [v for _, v in grads]), global_step=step)
