"""An encoder of sequences in both directions, of GRU cells."""

import tensorflow as tf


def encoder(steps, lengths, num_units, is_training):
  with tf.variable_scope('encoder'):
    forward, backward = [tf.nn.rnn_cell.GRUCell(num_units) for _ in range(2)]
    if is_training:
      steps = tf.nn.dropout(steps, 0.9)
    outputs, states = tf.nn.bidirectional_dynamic_rnn(
      forward, backward, steps, sequence_length=lengths, dtype=tf.float32
    )
    both = tf.concat(outputs, 2)
    # The mean over the steps that are there.
    mask = tf.sequence_mask(lengths, steps.shape[1].value, tf.float32)
    total = tf.reduce_sum(both * tf.expand_dims(mask, 2), axis=1)
    return total / tf.to_float(tf.expand_dims(lengths, 1)), states


def build(inputs, is_training):
  steps, lengths = inputs
  return encoder(steps, lengths, 5, is_training)
