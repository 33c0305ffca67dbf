"""A small DeepLabv3+ in TF-Slim.

After Chen, Zhu, Papandreou, Schroff and Adam, "Encoder-Decoder with Atrous Separable Convolution
for Semantic Image Segmentation" (2018).
"""

import tensorflow.compat.v1 as tf
import tf_slim as slim

NUM_CLASSES = 4
IGNORE_LABEL = 255
CLASS_WEIGHTS = (0.5, 1.0, 2.0, 1.0)
WEIGHT_DECAY = 4e-3
BASE_RATE = 0.02
TRAIN_STEPS = 6
SLOW_START_STEPS = 2


def arg_scope(is_training):
  with slim.arg_scope(
      [slim.conv2d, slim.separable_conv2d],
      weights_initializer=tf.truncated_normal_initializer(stddev=0.09),
      normalizer_fn=slim.batch_norm,
      activation_fn=tf.nn.relu):
    with slim.arg_scope(
        [slim.batch_norm], is_training=is_training, decay=0.997, epsilon=1e-3, scale=True):
      with slim.arg_scope(
          [slim.conv2d], weights_regularizer=slim.l2_regularizer(WEIGHT_DECAY)) as scope:
        return scope


def split_separable_conv2d(net, depth, rate=1, stride=1, activation_fn=tf.nn.relu, scope=None):
  if stride > 1:  # fixed padding, whatever the size of the image
    net = tf.pad(net, [[0, 0], [1, 1], [1, 1], [0, 0]])
  net = slim.separable_conv2d(
      net, None, 3, 1, stride=stride, rate=rate, padding='VALID' if stride > 1 else 'SAME',
      weights_initializer=tf.truncated_normal_initializer(stddev=0.33),
      activation_fn=activation_fn, scope=scope + '_depthwise')
  return slim.conv2d(net, depth, 1, activation_fn=activation_fn, scope=scope + '_pointwise')


def xception_module(net, depth, stride, rate, scope):
  with tf.variable_scope(scope):
    residual = net
    for i in range(2):
      residual = tf.nn.relu(residual)
      residual = split_separable_conv2d(
          residual, depth, rate=rate, stride=stride if i == 1 else 1, activation_fn=None,
          scope='separable_conv%d' % (i + 1))
    shortcut = slim.conv2d(net, depth, 1, stride=stride, activation_fn=None, scope='shortcut')
    return residual + shortcut


def encoder(images, is_training):
  net = (2.0 / 255.0) * images - 1.0
  net = slim.conv2d(net, 6, 3, stride=2, scope='entry_conv')
  low_level = net
  net = xception_module(net, 8, 2, 1, 'entry_block')
  net = xception_module(net, 8, 1, 2, 'middle_block')

  with tf.variable_scope('aspp'):
    size = net.shape.as_list()[1:3]
    pooled = tf.reduce_mean(net, [1, 2], keepdims=True)
    pooled = slim.conv2d(pooled, 4, 1, scope='image_pooling')
    branches = [tf.image.resize_bilinear(pooled, size, align_corners=True)]
    branches.append(slim.conv2d(net, 4, 1, scope='aspp0'))
    branches.append(split_separable_conv2d(net, 4, rate=2, scope='aspp1'))
    net = slim.conv2d(tf.concat(branches, 3), 6, 1, scope='concat_projection')
    net = slim.dropout(net, keep_prob=0.9, is_training=is_training, scope='dropout')
  return net, low_level


def segment(images, is_training):
  with tf.variable_scope('deeplab'), slim.arg_scope(arg_scope(is_training)):
    net, low_level = encoder(images, is_training)
    with tf.variable_scope('decoder'):
      low_level = slim.conv2d(low_level, 3, 1, scope='feature_projection')
      size = low_level.shape.as_list()[1:3]
      net = tf.image.resize_bilinear(net, size, align_corners=True)
      net = tf.concat([net, low_level], 3)
      net = split_separable_conv2d(net, 6, scope='decoder_conv')
    logits = slim.conv2d(
        net, NUM_CLASSES, 1, activation_fn=None, normalizer_fn=None, scope='logits')
    return tf.image.resize_bilinear(logits, images.shape.as_list()[1:3], align_corners=True)


def loss(logits, labels):
  labels = tf.reshape(labels, [-1])
  logits = tf.reshape(logits, [-1, NUM_CLASSES])
  weights = tf.add_n(
      [w * tf.to_float(tf.equal(labels, c)) for c, w in enumerate(CLASS_WEIGHTS)])
  return tf.losses.softmax_cross_entropy(
      slim.one_hot_encoding(labels, NUM_CLASSES), logits, weights=weights)


def train_op(total_loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.polynomial_decay(BASE_RATE, step, TRAIN_STEPS, end_learning_rate=0.0, power=0.9)
  rate = tf.where(step < SLOW_START_STEPS, 1e-3, rate)
  optimizer = tf.train.MomentumOptimizer(rate, 0.9)
  gradients = optimizer.compute_gradients(total_loss)
  multipliers = {'deeplab/logits/weights': 10.0, 'deeplab/logits/biases': 20.0}
  gradients = slim.training.multiply_gradients(gradients, multipliers)
  gradients = slim.training.clip_gradient_norms(gradients, 2.0)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    return optimizer.apply_gradients(gradients, global_step=step)
