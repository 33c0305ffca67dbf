"""A small U-Net with deep supervision, TF1 code.

After Ronneberger et al. 2015, 'U-Net: Convolutional Networks for Biomedical Image Segmentation';
the Dice term is that of Milletari et al. 2016, 'V-Net'.
"""

import tensorflow.compat.v1 as tf

CLASSES = 3
VOID = 255
CLASS_WEIGHTS = [0.3, 1.0, 2.0]
WEIGHT_DECAY = 0.002


def l2(w):
  return WEIGHT_DECAY * tf.nn.l2_loss(w)


def conv_bn_relu(x, filters, training, name, dilation=1):
  with tf.variable_scope(name):
    x = tf.layers.conv2d(
      x,
      filters,
      3,
      padding='same',
      dilation_rate=dilation,
      use_bias=False,
      kernel_initializer=tf.variance_scaling_initializer(2.0, 'fan_out'),
      kernel_regularizer=l2,
      name='conv',
    )
    x = tf.layers.batch_normalization(
      x, momentum=0.95, epsilon=1e-4, training=training, name='bn'
    )
    return tf.nn.relu(x)


def double_conv(x, filters, training, name):
  with tf.variable_scope(name):
    x = conv_bn_relu(x, filters, training, 'a')
    return conv_bn_relu(x, filters, training, 'b')


def up(x, skip, filters, training, name):
  with tf.variable_scope(name):
    x = tf.layers.conv2d_transpose(
      x,
      filters,
      3,
      strides=2,
      padding='same',
      activation=tf.nn.elu,
      kernel_initializer=tf.truncated_normal_initializer(stddev=0.1),
      bias_initializer=tf.constant_initializer(0.05),
      name='deconv',
    )
    x = tf.concat([skip, x], 3)
    return double_conv(x, filters, training, 'merge')


def unet(images, training):
  with tf.variable_scope('unet'):
    mean = tf.reduce_mean(images, [1, 2], keepdims=True)
    h = images - mean
    skip1 = double_conv(h, 4, training, 'down1')
    h = tf.layers.max_pooling2d(skip1, 2, 2)
    skip2 = double_conv(h, 6, training, 'down2')
    h = tf.layers.max_pooling2d(skip2, 3, 2, padding='same')
    h = conv_bn_relu(h, 8, training, 'bridge1')
    h = conv_bn_relu(h, 8, training, 'bridge2', dilation=2)
    n, c = tf.shape(h)[0], h.shape[3]
    h = tf.layers.dropout(h, 0.3, noise_shape=[n, 1, 1, c], training=training)
    h = up(h, skip2, 6, training, 'up2')
    side = tf.layers.conv2d(h, CLASSES, 1, name='side')
    side = tf.image.resize_bilinear(side, tf.shape(images)[1:3])
    h = up(h, skip1, 4, training, 'up1')
    prior = tf.constant_initializer([1.0, -0.5, -0.5])
    logits = tf.layers.conv2d(h, CLASSES, 1, bias_initializer=prior, name='logits')
    return {'logits': logits, 'side': side}


def dice_loss(logits, labels, valid):
  probabilities = tf.nn.softmax(logits) * valid[..., None]
  target = tf.one_hot(labels, CLASSES) * valid[..., None]
  intersection = tf.reduce_sum(probabilities * target, [1, 2])
  union = tf.reduce_sum(tf.square(probabilities), [1, 2]) + tf.reduce_sum(target, [1, 2])
  dice = (2.0 * intersection + 1.0) / (union + 1.0)
  return 1.0 - tf.reduce_mean(dice[:, 1:])  # without the background


def cross_entropy(logits, labels, valid):
  weights = tf.gather(tf.constant(CLASS_WEIGHTS), labels) * valid
  return tf.losses.sparse_softmax_cross_entropy(labels, logits, weights=weights)


def segmentation_loss(outputs, labels):
  valid = tf.cast(tf.not_equal(labels, VOID), tf.float32)
  labels = tf.where(tf.equal(labels, VOID), tf.zeros_like(labels), labels)
  entropy = cross_entropy(outputs['logits'], labels, valid)
  dice = dice_loss(outputs['logits'], labels, valid)
  side = cross_entropy(outputs['side'], labels, valid)
  return {'loss': entropy + 0.5 * dice + 0.4 * side, 'dice': dice, 'cross_entropy': entropy}


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.1, step, 2, 0.7, staircase=True)
  optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
  gradients, variables = zip(*optimizer.compute_gradients(loss))
  gradients, _ = tf.clip_by_global_norm(gradients, 0.2)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    return optimizer.apply_gradients(zip(gradients, variables), global_step=step)
