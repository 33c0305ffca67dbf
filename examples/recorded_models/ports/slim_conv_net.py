"""The port of the TF-Slim network: tf-slim under the shim, Keras' RMSprop."""

import tensorflow as tf
import tf_slim as slim

from examples.slim_rmsprop_ema.port import RMSprop

v1 = tf.compat.v1


def _arg_scope(is_training: bool) -> slim.arg_scope:
  batch_norm = {'decay': 0.997, 'epsilon': 0.001, 'is_training': is_training}
  with (
    slim.arg_scope(
      [slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.0005)
    ),
    slim.arg_scope(
      [slim.conv2d],
      weights_initializer=slim.variance_scaling_initializer(),
      normalizer_fn=slim.batch_norm,
      normalizer_params=batch_norm,
    ) as scope,
  ):
    return scope


class ConvNet(tf.keras.layers.Layer):
  """Returns the logits, and the end points by name."""

  @v1.keras.utils.track_tf1_style_variables
  def call(
    self, images: tf.Tensor, training: bool = False
  ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Takes `[batch, height, width, 3]` float32."""
    end_points = {}
    with v1.variable_scope('ConvNet'), slim.arg_scope(_arg_scope(training)):
      net = slim.conv2d(images, 8, 3, scope='conv1')
      net = end_points['pool1'] = slim.max_pool2d(net, 2, scope='pool1')
      net = slim.conv2d(net, 12, 3, scope='conv2')
      net = tf.reduce_mean(net, [1, 2], keepdims=True)
      net = slim.dropout(net, keep_prob=0.8, is_training=training, scope='dropout')
      logits = slim.fully_connected(slim.flatten(net), 5, activation_fn=None, scope='logits')
      end_points['predictions'] = tf.nn.softmax(logits)
    return logits, end_points


def loss(outputs: tuple[tf.Tensor, dict[str, tf.Tensor]], labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are class numbers."""
  each = tf.keras.losses.sparse_categorical_crossentropy(labels, outputs[0], from_logits=True)
  return tf.reduce_mean(each)


def optimizer() -> tf.keras.optimizers.Optimizer:
  """Returns RMSprop with a mean of squares that starts at one, as TF1's."""
  decay = tf.keras.optimizers.schedules.ExponentialDecay(0.045, 2, 0.94, staircase=True)
  return RMSprop(decay, rho=0.9, momentum=0.9, epsilon=1.0)
