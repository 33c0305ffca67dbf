"""A ranking model of embedded categories and numbers, and its training script."""

import tensorflow as tf

v1 = tf.compat.v1

ITEMS, USERS, WIDTH, NUMBERS = 12, 9, 4, 3
LEARNING_RATE, DECAY_STEPS, DECAY, CLIP_NORM = 0.02, 2, 0.5, 0.3


def ranker(features: dict[str, tf.Tensor]) -> tf.Tensor:
  """Returns the logit of a click.

  Args:
    features: `item` and `user`, `[batch]` int32, and `numbers`, `[batch, 3]` float32.

  Returns:
    `[batch, 1]` float32.
  """
  table = v1.random_uniform_initializer(-0.05, 0.05)
  with v1.variable_scope('ranker'):
    items = v1.get_variable('items', [ITEMS, WIDTH], initializer=table)
    users = v1.get_variable('users', [USERS, WIDTH], initializer=table)
    embedded = [
      tf.nn.embedding_lookup(items, features['item']),
      tf.nn.embedding_lookup(users, features['user']),
    ]
    net = tf.concat([*embedded, features['numbers']], 1)
    net = v1.layers.dense(net, 10, tf.nn.relu, name='hidden')
    return v1.layers.dense(net, 1, name='click')


def loss(logits: tf.Tensor, clicked: tf.Tensor) -> tf.Tensor:
  """Returns the mean cross entropy; `clicked` is `[batch, 1]` float32."""
  return v1.losses.sigmoid_cross_entropy(clicked, logits)


def train_op(total_loss: tf.Tensor) -> tf.Operation:
  """Returns the op of one step: Adam, gradients clipped together, a rate that falls in steps."""
  step = v1.train.get_or_create_global_step()
  rate = v1.train.exponential_decay(LEARNING_RATE, step, DECAY_STEPS, DECAY, staircase=True)
  optimizer = v1.train.AdamOptimizer(rate)
  gradients, variables = zip(*optimizer.compute_gradients(total_loss), strict=True)
  clipped, _ = tf.clip_by_global_norm(gradients, CLIP_NORM)
  return optimizer.apply_gradients(list(zip(clipped, variables, strict=True)), step)
