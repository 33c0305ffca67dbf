"""The port of the recurrent classifier: a cell of `tf.compat.v1` under the shim."""

import tensorflow as tf

v1 = tf.compat.v1
_uniform = v1.random_uniform_initializer(-0.5, 0.5)


class SequenceClassifier(tf.keras.layers.Layer):
  """Returns 'logits', and 'outputs' of every step."""

  @v1.keras.utils.track_tf1_style_variables
  def call(self, features: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
    """Takes 'steps', `[batch, time, width]` float32, and 'lengths', `[batch]` int32."""
    cell = v1.nn.rnn_cell.LSTMCell(6, use_peepholes=True, forget_bias=1.0)
    with v1.variable_scope('classifier', initializer=_uniform):
      outputs, state = v1.nn.dynamic_rnn(
        cell, features['steps'], features['lengths'], dtype=tf.float32
      )
      last = state.h
      if training:
        last = tf.nn.dropout(last, rate=0.5)
      return {'logits': v1.layers.dense(last, 3, name='logits'), 'outputs': outputs}


def loss(outputs: dict[str, tf.Tensor], labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are class numbers."""
  each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs['logits'])
  return tf.reduce_mean(each)


def optimizer() -> tf.keras.optimizers.Optimizer:
  """Returns Adam with TF1's epsilon; its gradients are clipped by their global norm."""
  return tf.keras.optimizers.legacy.Adam(0.01, epsilon=1e-8, global_clipnorm=0.5)
