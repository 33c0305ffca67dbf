"""The port of the tf.layers network; its momentum is that of TF1."""

import tensorflow as tf

v1 = tf.compat.v1


def _l2(weights: tf.Tensor) -> tf.Tensor:
  return 5e-4 * tf.nn.l2_loss(weights)


def _block(net: tf.Tensor, filters: int, strides: int, training: bool, name: str) -> tf.Tensor:
  with v1.variable_scope(name):
    net = v1.layers.conv2d(
      net,
      filters,
      3,
      strides,
      'same',
      use_bias=False,
      kernel_initializer=v1.variance_scaling_initializer(),
      kernel_regularizer=_l2,
      name='conv',
    )
    net = v1.layers.batch_normalization(
      net, momentum=0.9, epsilon=1e-5, training=training, name='norm'
    )
    return tf.nn.relu(net)


class ConvNet(tf.keras.layers.Layer):
  """Returns the logits."""

  @v1.keras.utils.track_tf1_style_variables
  def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Takes `[batch, height, width, 3]` float32."""
    with v1.variable_scope('conv_net'):
      net = _block(images, 6, 1, training, 'block1')
      net = tf.nn.max_pool2d(net, 2, 2, 'SAME')
      net = _block(net, 8, 2, training, 'block2')
      net = v1.layers.flatten(net)
      net = v1.layers.dropout(net, rate=0.5, training=training)
      return v1.layers.dense(net, 4, name='logits')


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Returns the mean softmax cross-entropy; labels are class numbers."""
  each = tf.keras.losses.categorical_crossentropy(
    tf.one_hot(labels, 4), logits, from_logits=True, label_smoothing=0.1
  )
  return tf.reduce_mean(each)


class Momentum(tf.keras.optimizers.SGD):
  """Multiplies by the learning rate what is accumulated, as TF1, and not what is added to it."""

  def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
    """Updates one variable."""
    accumulated = self.momentums[self._index_dict[self._var_key(variable)]]
    accumulated.assign(self.momentum * accumulated + gradient)
    variable.assign_sub(self.learning_rate * accumulated)


def optimizer() -> tf.keras.optimizers.Optimizer:
  """Returns momentum, whose learning rate drops to a tenth after two steps."""
  rate = tf.keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.1, 0.01])
  return Momentum(rate, 0.9)
