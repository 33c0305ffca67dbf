"""The port of the classifier of texts."""

import tensorflow as tf
import tf_slim as slim

v1 = tf.compat.v1


class BagOfWords(tf.keras.layers.Layer):
  """Returns the logits, `[batch]`."""

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
    """Takes 'words', `[batch, length]` int64, and 'prices', `[batch, 1]` float32."""
    start = v1.truncated_normal_initializer(stddev=0.5)
    embedding = v1.get_variable('embedding', [20, 4], initializer=start)
    known = tf.cast(inputs['words'] >= 0, tf.float32)[:, :, tf.newaxis]
    rows = tf.nn.embedding_lookup(embedding, tf.maximum(inputs['words'], 0))
    mean = tf.math.divide_no_nan(tf.reduce_sum(rows * known, 1), tf.reduce_sum(known, 1))
    net = tf.concat([mean, tf.math.log1p(inputs['prices'])], 1)
    net = slim.fully_connected(net, 6, scope='hidden')
    return slim.fully_connected(net, 1, activation_fn=None, scope='logits')[:, 0]


def loss(logits: tf.Tensor, labels: dict[str, tf.Tensor]) -> tf.Tensor:
  """Returns the weighted losses over the number of weights that are not zero, as tf.losses."""
  each = tf.nn.sigmoid_cross_entropy_with_logits(labels['clicked'], logits)
  weights = labels['weights']
  present = tf.cast(tf.math.count_nonzero(weights), tf.float32)
  return tf.math.divide_no_nan(tf.reduce_sum(each * weights), present)


def optimizer() -> tf.keras.optimizers.Optimizer:
  """Returns Adam with the epsilon of the TF1 code."""
  return tf.keras.optimizers.Adam(0.05, epsilon=1e-4)
