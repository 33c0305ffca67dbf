"""A small network for person re-identification in TF-Slim, and how it was trained.

The head with batch norm between the two losses (BNNeck), warm-up and label smoothing are those of Luo, Gu, Liao, Lai and
Jiang, "Bag of Tricks and A Strong Baseline for Deep Person Re-identification" (arXiv:1903.07071). The triplet loss has
the adaptive weights of Ristani and Tomasi (arXiv:1803.10859); the blocks are squeeze-and-excitation blocks
(arXiv:1709.01507), the last one dilated.
"""

import tensorflow.compat.v1 as tf
import tf_slim as slim

WEIGHT_DECAY = 5e-4
SMOOTHING = 0.1
TRIPLET_WEIGHT = 0.5


def _squeeze_excite(net, ratio, scope):
  with tf.variable_scope(scope):
    depth = int(net.shape[-1])
    scale = tf.reduce_mean(net, [1, 2])
    scale = slim.fully_connected(scale, depth // ratio, activation_fn=tf.nn.relu, scope='squeeze')
    scale = slim.fully_connected(scale, depth, activation_fn=tf.nn.sigmoid, scope='excite')
    return net * scale[:, tf.newaxis, tf.newaxis, :]


def _block(net, depth, stride, rate, scope):
  with tf.variable_scope(scope):
    shortcut = net
    if stride != 1 or int(net.shape[-1]) != depth:
      shortcut = slim.conv2d(net, depth, 1, stride=stride, activation_fn=None, scope='shortcut')
    net = slim.conv2d(net, depth, 3, stride=stride, scope='conv1')
    net = slim.conv2d(net, depth, 3, rate=rate, activation_fn=None, scope='conv2')
    net = _squeeze_excite(net, 2, 'se')
    return tf.nn.relu(net + shortcut)


def reid(images, num_people, is_training):
  """Returns a dictionary: the feature, the feature after BNNeck, logits of the people of the training set."""
  norm = {'decay': 0.9, 'epsilon': 1e-5, 'scale': True, 'is_training': is_training}
  with tf.variable_scope('reid'), slim.arg_scope(
    [slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(WEIGHT_DECAY)
  ), slim.arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, normalizer_params=norm):
    net = slim.conv2d(images, 8, 3, scope='stem')
    net = slim.max_pool2d(net, 3, stride=2, padding='SAME', scope='pool')
    net = _block(net, 12, 2, 1, 'block1')
    net = _block(net, 12, 1, 2, 'block2')
    feature = tf.reduce_mean(net, [1, 2])
    neck = slim.batch_norm(feature, center=False, scope='neck', **norm)
    net = slim.dropout(neck, keep_prob=0.8, is_training=is_training, scope='dropout')
    logits = slim.fully_connected(
      net,
      num_people,
      activation_fn=None,
      weights_initializer=tf.random_normal_initializer(stddev=0.001),
      biases_initializer=None,
      scope='classifier',
    )
  return {'feature': feature, 'neck': neck, 'logits': logits}


def triplet_loss(features, labels):
  """Each anchor against all others, weighted by how hard they are; the weights are constants."""
  difference = tf.expand_dims(features, 1) - tf.expand_dims(features, 0)
  distances = tf.sqrt(tf.reduce_sum(tf.square(difference), -1) + 1e-12)
  same = tf.cast(tf.equal(labels[:, tf.newaxis], labels[tf.newaxis, :]), tf.float32)
  positive = same - tf.eye(tf.shape(labels)[0])
  negative = 1.0 - same
  positive_weights = positive * tf.nn.softmax(distances - 1e9 * (1.0 - positive))
  negative_weights = negative * tf.nn.softmax(-distances - 1e9 * (1.0 - negative))
  furthest = tf.reduce_sum(tf.stop_gradient(positive_weights) * distances, 1)
  closest = tf.reduce_sum(tf.stop_gradient(negative_weights) * distances, 1)
  return tf.reduce_mean(tf.nn.softplus(furthest - closest))


def loss(end_points, labels):
  """The loss without regularization."""
  one_hot = tf.one_hot(labels, int(end_points['logits'].shape[-1]))
  identity = tf.losses.softmax_cross_entropy(one_hot, end_points['logits'], label_smoothing=SMOOTHING)
  return identity + TRIPLET_WEIGHT * triplet_loss(end_points['feature'], labels)


def train_op(total_loss, learning_rate=0.05, warmup_steps=2, boundaries=(3,), averages_decay=0.99):
  """Nesterov's momentum, warm-up, a larger rate for the new classifier, and averaged weights."""
  global_step = tf.train.get_or_create_global_step()
  step = tf.cast(global_step, tf.float32)
  values = [learning_rate * 0.1**i for i in range(len(boundaries) + 1)]
  rate = tf.cond(
    global_step < warmup_steps,
    lambda: learning_rate * (step + 1.0) / warmup_steps,
    lambda: tf.train.piecewise_constant(global_step, list(boundaries), values),
  )
  optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
  multipliers = {v: 10.0 for v in tf.trainable_variables() if v.op.name.startswith('reid/classifier/')}
  train = slim.learning.create_train_op(
    total_loss, optimizer, global_step=global_step, gradient_multipliers=multipliers, clip_gradient_norm=0.5
  )
  averages = tf.train.ExponentialMovingAverage(averages_decay, num_updates=global_step)
  with tf.control_dependencies([train]):
    return averages.apply(tf.trainable_variables())
