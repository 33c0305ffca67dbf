"""A scaling layer in TF1, a port that creates a variable at every call, and its mended form.

After the scaling layers of TensorFlow's guide "Use TF1.x models in TF2 workflows".
"""

import tensorflow as tf

v1 = tf.compat.v1


def scale_and_shift(inputs: tf.Tensor) -> tf.Tensor:
  """TF1: `inputs * scale + offset`, both by channel; a graph calls it once."""
  channels = inputs.shape[-1]
  with v1.variable_scope('scaling'):
    scale = v1.get_variable('scale', [channels], initializer=v1.random_normal_initializer(1.0))
    offset = tf.Variable(tf.zeros([channels]), name='offset')
    return inputs * scale + offset


class BrokenScalingLayer(tf.keras.layers.Layer):
  """TF1's lines as they were: `tf.Variable` makes a new offset at each call.

  Eager mode runs `call` anew each time, so every call starts from zeros, and
  training moves nothing. The shim tracks what `get_variable` makes, not this.
  """

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: tf.Tensor) -> tf.Tensor:
    """Returns `inputs * scale + offset`."""
    channels = inputs.shape[-1]
    with v1.variable_scope('scaling'):
      scale = v1.get_variable('scale', [channels], initializer=v1.random_normal_initializer(1.0))
      offset = tf.Variable(tf.zeros([channels]), name='offset')
      return inputs * scale + offset


class FixedScalingLayer(tf.keras.layers.Layer):
  """The offset comes from `get_variable`, which finds it again at the next call."""

  @v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: tf.Tensor) -> tf.Tensor:
    """Returns `inputs * scale + offset`."""
    channels = inputs.shape[-1]
    with v1.variable_scope('scaling'):
      scale = v1.get_variable('scale', [channels], initializer=v1.random_normal_initializer(1.0))
      offset = v1.get_variable('offset', [channels], initializer=v1.zeros_initializer())
      return inputs * scale + offset
