"""The port of the encoder: GRU cells of `tf.compat.v1` in a `tf.Module`."""

import tensorflow as tf

v1 = tf.compat.v1


class Encoder(tf.Module):
  """Returns the mean over the steps, and the last states of both directions."""

  @v1.keras.utils.track_tf1_style_variables
  def __call__(
    self, inputs: tuple[tf.Tensor, tf.Tensor], training: bool = False
  ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
    """Takes `[batch, time, width]` float32, and the lengths, `[batch]` int32."""
    steps, lengths = inputs
    with v1.variable_scope('encoder'):
      cells = [v1.nn.rnn_cell.GRUCell(5) for _ in range(2)]
      if training:
        steps = tf.nn.dropout(steps, rate=0.1)
      outputs, states = v1.nn.bidirectional_dynamic_rnn(
        *cells, steps, sequence_length=lengths, dtype=tf.float32
      )
    mask = tf.sequence_mask(lengths, steps.shape[1], tf.float32)[:, :, tf.newaxis]
    total = tf.reduce_sum(tf.concat(outputs, 2) * mask, 1)
    return total / tf.cast(lengths, tf.float32)[:, tf.newaxis], states
