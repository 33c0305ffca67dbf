"""A tagger of 2017: stacked LSTM cells of `tf.nn.rnn_cell` in `dynamic_rnn`."""

import tensorflow as tf

v1 = tf.compat.v1

FEATURES, UNITS, TAGS = 6, (8, 5), 3


def tagger(features: tf.Tensor) -> tf.Tensor:
  """Returns the scores of each tag at each step.

  Args:
    features: `[batch, steps, 6]` float32.

  Returns:
    `[batch, steps, 3]` float32.
  """
  cells = [v1.nn.rnn_cell.BasicLSTMCell(units) for units in UNITS]
  net, _ = v1.nn.dynamic_rnn(v1.nn.rnn_cell.MultiRNNCell(cells), features, dtype=tf.float32)
  return v1.layers.dense(net, TAGS, name='tags')
