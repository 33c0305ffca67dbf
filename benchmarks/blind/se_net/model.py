"""A small squeeze-and-excitation residual network in tf.layers.

After Hu, Shen and Sun, "Squeeze-and-Excitation Networks" (2018); blocks are dropped at random as in
Huang et al., "Deep Networks with Stochastic Depth" (2016).
"""

import tensorflow.compat.v1 as tf

CHANNEL_MEANS = (123.68, 116.78, 103.94)
NUM_CLASSES = 5
REDUCTION = 4
WEIGHT_DECAY = 1e-2
LEARNING_RATE = 0.02

he = tf.variance_scaling_initializer(scale=2.0, mode='fan_out')


def batch_norm(net, is_training, name, gamma_initializer=tf.ones_initializer()):
  return tf.layers.batch_normalization(
      net, momentum=0.9, epsilon=1e-5, training=is_training,
      gamma_initializer=gamma_initializer, name=name)


def conv2d(net, filters, kernel_size, strides, name):
  """A convolution whose padding does not depend on the size of its input."""
  if strides > 1 and kernel_size > 1:
    beg = (kernel_size - 1) // 2
    end = kernel_size - 1 - beg
    net = tf.pad(net, [[0, 0], [beg, end], [beg, end], [0, 0]])
  return tf.layers.conv2d(
      net, filters, kernel_size, strides, padding='SAME' if strides == 1 else 'VALID',
      use_bias=False, kernel_initializer=he, name=name)


def squeeze_excite(net):
  filters = net.shape.as_list()[-1]
  squeeze = tf.reduce_mean(net, [1, 2])
  excite = tf.layers.dense(
      squeeze, filters // REDUCTION, activation=tf.nn.relu, kernel_initializer=he, name='squeeze')
  excite = tf.layers.dense(
      excite, filters, activation=tf.nn.sigmoid,
      bias_initializer=tf.constant_initializer(1.0), name='excite')
  return net * tf.reshape(excite, [-1, 1, 1, filters])


def drop_block(net, survival, is_training):
  if not is_training:
    return net
  alive = tf.floor(survival + tf.random_uniform([tf.shape(net)[0], 1, 1, 1]))
  return tf.div(net, survival) * alive


def residual_block(net, filters, strides, survival, is_training, name):
  with tf.variable_scope(name):
    shortcut = net
    if strides > 1 or net.shape.as_list()[-1] != filters:
      shortcut = tf.layers.average_pooling2d(net, 2, strides, padding='SAME')
      shortcut = conv2d(shortcut, filters, 1, 1, 'conv0')
      shortcut = batch_norm(shortcut, is_training, 'bn0')
    net = conv2d(net, filters, 3, strides, 'conv1')
    net = tf.nn.relu(batch_norm(net, is_training, 'bn1'))
    net = conv2d(net, filters, 3, 1, 'conv2')
    net = batch_norm(net, is_training, 'bn2', gamma_initializer=tf.zeros_initializer())
    net = squeeze_excite(net)
    net = drop_block(net, survival, is_training)
    return tf.nn.relu(net + shortcut)


def se_net(images, is_training):
  with tf.variable_scope('se_net'):
    net = images - tf.constant(CHANNEL_MEANS)
    net = conv2d(net, 8, 5, 2, 'stem')
    net = tf.nn.relu(batch_norm(net, is_training, 'stem_bn'))
    net = tf.layers.max_pooling2d(net, 3, 2, padding='SAME')
    net = residual_block(net, 8, 1, 0.9, is_training, 'block1')
    net = residual_block(net, 12, 2, 0.8, is_training, 'block2')
    net = residual_block(net, 12, 1, 0.7, is_training, 'block3')
    net = tf.reduce_mean(net, [1, 2])
    net = tf.layers.dropout(net, rate=0.2, training=is_training)
    return tf.layers.dense(
        net, NUM_CLASSES, kernel_initializer=tf.random_normal_initializer(stddev=0.01),
        name='logits')


def loss(logits, labels):
  return tf.losses.softmax_cross_entropy(
      tf.one_hot(labels['label'], NUM_CLASSES), logits, weights=labels['weight'],
      label_smoothing=0.1, reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE)


def weight_decay():
  return WEIGHT_DECAY * tf.add_n(
      [tf.nn.l2_loss(v) for v in tf.trainable_variables() if 'bn' not in v.op.name])


def train_op(total_loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(LEARNING_RATE, step, 2, 0.94, staircase=True)
  rate *= tf.minimum(1.0, tf.to_float(step + 1) / 3.0)
  optimizer = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.99, epsilon=1e-4)
  gradients, variables = zip(*optimizer.compute_gradients(total_loss))
  gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
  with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    update = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
  averages = tf.train.ExponentialMovingAverage(0.999, num_updates=step)
  with tf.control_dependencies([update]):
    return averages.apply(tf.trainable_variables())
