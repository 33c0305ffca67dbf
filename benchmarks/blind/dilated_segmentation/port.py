"""The right port of the small DeepLabv3+, under the shim: no slim, raw ops and `get_variable`."""

import tensorflow as tf

v1 = tf.compat.v1

NUM_CLASSES = 4
CLASS_WEIGHTS = (0.5, 1.0, 2.0, 1.0)
WEIGHT_DECAY = 4e-3


def batch_norm(x, training):
  return v1.layers.batch_normalization(
    x, momentum=0.997, epsilon=1e-3, training=training, name='BatchNorm'
  )


def conv(x, filters, size, name, training, stride=1, relu=True, normalize=True):
  with v1.variable_scope(name):
    kernel = v1.get_variable(
      'weights',
      [size, size, x.shape[-1], filters],
      initializer=v1.truncated_normal_initializer(stddev=0.09),
      regularizer=tf.keras.regularizers.L2(0.5 * WEIGHT_DECAY),
    )
    x = tf.nn.conv2d(x, kernel, strides=stride, padding='SAME')
    if normalize:
      x = batch_norm(x, training)
    else:
      x = x + v1.get_variable('biases', [filters], initializer=v1.zeros_initializer())
    return tf.nn.relu(x) if relu else x


def depthwise(x, name, training, stride=1, rate=1, relu=True):
  with v1.variable_scope(name):
    kernel = v1.get_variable(
      'depthwise_weights',
      [3, 3, x.shape[-1], 1],
      initializer=v1.truncated_normal_initializer(stddev=0.33),
    )
    padding = 'SAME'
    if stride > 1:
      x = tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]])
      padding = 'VALID'
    x = tf.nn.depthwise_conv2d(
      x, kernel, strides=[1, stride, stride, 1], padding=padding, dilations=[rate, rate]
    )
    x = batch_norm(x, training)
    return tf.nn.relu(x) if relu else x


def separable(x, filters, name, training, stride=1, rate=1, relu=True):
  x = depthwise(x, name + '_depthwise', training, stride=stride, rate=rate, relu=relu)
  return conv(x, filters, 1, name + '_pointwise', training, relu=relu)


def xception(x, filters, name, training, stride=1, rate=1):
  with v1.variable_scope(name):
    y = separable(tf.nn.relu(x), filters, 'separable_conv1', training, rate=rate, relu=False)
    y = tf.nn.relu(y)
    y = separable(y, filters, 'separable_conv2', training, stride=stride, rate=rate, relu=False)
    return y + conv(x, filters, 1, 'shortcut', training, stride=stride, relu=False)


def resize(x, size):
  return v1.image.resize_bilinear(x, size, align_corners=True)


def aspp(x, training):
  with v1.variable_scope('aspp'):
    height, width = x.shape[1:3]
    pooled = tf.reduce_mean(x, axis=[1, 2], keepdims=True)
    pooled = conv(pooled, 4, 1, 'image_pooling', training)
    pooled = tf.tile(pooled, [1, height, width, 1])
    branches = [pooled, conv(x, 4, 1, 'aspp0', training)]
    branches.append(separable(x, 4, 'aspp1', training, rate=2))
    x = conv(tf.concat(branches, axis=-1), 6, 1, 'concat_projection', training)
    return tf.nn.dropout(x, rate=0.1) if training else x


class Deeplab(tf.keras.layers.Layer):
  @v1.keras.utils.track_tf1_style_variables
  def call(self, images, training=False):
    with v1.variable_scope('deeplab'):
      x = images / 127.5 - 1.0
      x = conv(x, 6, 3, 'entry_conv', training, stride=2)
      low_level = x
      x = xception(x, 8, 'entry_block', training, stride=2)
      x = xception(x, 8, 'middle_block', training, rate=2)
      x = aspp(x, training)
      with v1.variable_scope('decoder'):
        low_level = conv(low_level, 3, 1, 'feature_projection', training)
        x = resize(x, low_level.shape[1:3])
        x = tf.concat([x, low_level], axis=-1)
        x = separable(x, 6, 'decoder_conv', training)
      logits = conv(x, NUM_CLASSES, 1, 'logits', training, relu=False, normalize=False)
      return resize(logits, images.shape[1:3])


def loss(logits, labels):
  valid = labels < NUM_CLASSES
  classes = tf.where(valid, labels, 0)
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)
  weights = tf.gather(CLASS_WEIGHTS, classes) * tf.cast(valid, tf.float32)
  count = tf.math.count_nonzero(weights, dtype=tf.float32)
  return tf.math.divide_no_nan(tf.reduce_sum(each * weights), count)


class Training(tf.Module):
  def __init__(self):
    self.step = tf.Variable(0, trainable=False, dtype=tf.int64, name='step')
    self.decay = tf.keras.optimizers.schedules.PolynomialDecay(
      0.02, 6, end_learning_rate=0.0, power=0.9
    )
    self.optimizer = v1.train.MomentumOptimizer(self.rate, 0.9)

  def rate(self):
    return tf.where(self.step < 2, 1e-3, self.decay(self.step))


def train_step(layer, images, labels, trainer):
  with tf.GradientTape() as tape:
    total = loss(layer(images, training=True), labels) + tf.add_n(layer.losses)
  variables = layer.trainable_variables
  updates = []
  for gradient, variable in zip(tape.gradient(total, variables), variables):
    if variable.name.startswith('deeplab/logits/'):
      gradient *= 20.0 if 'biases' in variable.name else 10.0
    updates.append((tf.clip_by_norm(gradient, 2.0), variable))
  trainer.optimizer.apply_gradients(updates)
  trainer.step.assign_add(1)
  return total
