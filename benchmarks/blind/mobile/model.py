"""A small MobileNet with squeeze-and-excitation, TF1 code in TF-Slim.

After Howard et al. 2019, 'Searching for MobileNetV3', with the stochastic depth of
Tan & Le 2019, 'EfficientNet'.
"""

import tensorflow.compat.v1 as tf
import tf_slim as slim

CLASSES = 5
SURVIVAL = 0.8
# expansion, output channels, stride, squeeze-and-excitation, hard swish
BLOCKS = [
  (2, 8, 2, False, False),
  (3, 8, 1, True, False),
  (3, 12, 2, True, True),
]


def hard_sigmoid(x):
  return tf.nn.relu6(x + 3.0) * 0.16667


def hard_swish(x):
  return x * hard_sigmoid(x)


def mobilenet_arg_scope(training, weight_decay=4e-4):
  batch_norm = {
    'is_training': training,
    'center': True,
    'scale': True,
    'decay': 0.9,
    'epsilon': 0.001,
    'fused': False,
  }
  regularizer = slim.l2_regularizer(weight_decay)
  with slim.arg_scope(
    [slim.conv2d, slim.separable_conv2d],
    weights_initializer=tf.truncated_normal_initializer(stddev=0.09),
    normalizer_fn=slim.batch_norm,
    normalizer_params=batch_norm,
    padding='SAME',
  ):
    # no weight decay on the depthwise filters
    with slim.arg_scope([slim.conv2d], weights_regularizer=regularizer):
      with slim.arg_scope([slim.separable_conv2d], weights_regularizer=None) as scope:
        return scope


def drop_connect(net, training):
  """Drops the residual branch of whole examples."""
  if not training:
    return net
  batch = tf.shape(net)[0]
  binary = tf.floor(SURVIVAL + tf.random_uniform([batch, 1, 1, 1]))
  return tf.div(net, SURVIVAL) * binary


def squeeze_excite(net, scope):
  channels = net.shape[3].value
  with tf.variable_scope(scope):
    gate = tf.reduce_mean(net, [1, 2], keepdims=True)
    with slim.arg_scope([slim.conv2d], normalizer_fn=None, normalizer_params=None):
      gate = slim.conv2d(gate, channels // 4, 1, activation_fn=tf.nn.relu, scope='reduce')
      gate = slim.conv2d(gate, channels, 1, activation_fn=hard_sigmoid, scope='expand')
    return net * gate


def block(net, expansion, channels, stride, excite, swish, training, scope):
  shortcut = net
  activation = hard_swish if swish else tf.nn.relu
  depth = net.shape[3].value
  with tf.variable_scope(scope):
    net = slim.conv2d(net, expansion * depth, 1, activation_fn=activation, scope='expand')
    net = slim.separable_conv2d(
      net, None, 3, stride=stride, depth_multiplier=1, activation_fn=activation,
      scope='depthwise',
    )
    if excite:
      net = squeeze_excite(net, 'excite')
    net = slim.conv2d(net, channels, 1, activation_fn=None, scope='project')
    if stride == 1 and depth == channels:
      net = shortcut + drop_connect(net, training)
    return net


def mobilenet(images, training):
  with slim.arg_scope(mobilenet_arg_scope(training)):
    with tf.variable_scope('MobileNet'):
      net = (images - 127.5) / 127.5
      net = slim.conv2d(net, 8, 3, stride=2, activation_fn=hard_swish, scope='stem')
      for i, arguments in enumerate(BLOCKS):
        net = block(net, *arguments, training=training, scope='block_%d' % i)
      net = slim.conv2d(net, 24, 1, activation_fn=hard_swish, scope='head')
      net = tf.reduce_mean(net, [1, 2], name='global_pool')
      net = slim.dropout(net, keep_prob=0.75, is_training=training, scope='dropout')
      return slim.fully_connected(
        net, CLASSES, activation_fn=None,
        weights_initializer=tf.random_normal_initializer(stddev=0.01),
        weights_regularizer=slim.l2_regularizer(1e-3),
        biases_initializer=tf.zeros_initializer(),
        scope='logits',
      )


def classification_loss(logits, labels, weights):
  onehot = slim.one_hot_encoding(labels, CLASSES)
  return tf.losses.softmax_cross_entropy(onehot, logits, weights=weights, label_smoothing=0.1)


def train_op(loss):
  step = tf.train.get_or_create_global_step()
  rate = tf.train.exponential_decay(0.01, step, decay_steps=2, decay_rate=0.7, staircase=True)
  optimizer = tf.train.RMSPropOptimizer(rate, decay=0.9, momentum=0.9, epsilon=0.01)
  return slim.learning.create_train_op(loss, optimizer, global_step=step, clip_gradient_norm=2.0)
