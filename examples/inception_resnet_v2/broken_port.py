"""The port on its second day, with a mistake: the stem is rewritten in Keras layers."""

import re
from typing import Any

import tensorflow as tf

from examples.inception_resnet_v2 import model

_WEIGHT_DECAY = 4e-5


def variable_name(tf1_name: str) -> str:
  """Returns the name of a variable in the port."""
  in_stem = re.fullmatch(r'InceptionResnetV2/(Conv2d_[1-4]\w+)/(.+)', tf1_name)
  if in_stem is None:
    return tf1_name
  of_layer = in_stem[2].replace('weights', 'convolution/kernel')
  return f'inception_resnet_v2/InceptionResnetV2/stem/{in_stem[1]}/{of_layer}'


class Convolution(tf.keras.layers.Layer):
  """What `slim.conv2d` is in this model: convolution, batch norm and ReLU.

  Args:
    filters: the number of channels of the output.
    size: height and width of the kernel.
    strides: of the convolution.
    padding: 'valid' or 'same'.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(
    self, filters: int, size: int, strides: int = 1, padding: str = 'valid', **kwargs: Any
  ) -> None:
    super().__init__(**kwargs)
    self.convolution = tf.keras.layers.Conv2D(
      filters,
      size,
      strides,
      padding,
      activation='relu',
      use_bias=False,
      kernel_regularizer=tf.keras.regularizers.L2(_WEIGHT_DECAY / 2),
      name='convolution',
    )
    self.norm = tf.keras.layers.BatchNormalization(momentum=0.9997, epsilon=1e-3, name='BatchNorm')

  def call(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `[batch, height, width, filters]`."""
    net = self.convolution(inputs)
    return self.norm(net, training=training)


class Stem(tf.keras.layers.Layer):
  """The layers before the first block."""

  def __init__(self, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.steps = [
      Convolution(32, 3, strides=2, name='Conv2d_1a_3x3'),
      Convolution(32, 3, name='Conv2d_2a_3x3'),
      Convolution(64, 3, padding='same', name='Conv2d_2b_3x3'),
      tf.keras.layers.MaxPooling2D(3, strides=2, name='MaxPool_3a_3x3'),
      Convolution(80, 1, name='Conv2d_3b_1x1'),
      Convolution(192, 3, name='Conv2d_4a_3x3'),
      tf.keras.layers.MaxPooling2D(3, strides=2, name='MaxPool_5a_3x3'),
    ]

  def call(self, net: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns the 35 x 35 grid (of images of 299 x 299 pixels), with 192 channels."""
    for step in self.steps:
      net = step(net, training=training)
    return net


class InceptionResnetV2(tf.keras.layers.Layer):
  """Inception-ResNet-v2: a stem of Keras layers, the blocks still under the modeling shim.

  Args:
    num_classes: the number of classes.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, num_classes: int, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes
    self.stem = Stem(name='stem')

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(
    self, inputs: tf.Tensor, training: bool = False
  ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Returns the logits, `[batch, num_classes]`, and the end points by name."""
    return model.inception_resnet_v2(
      inputs, self.num_classes, training, lambda images: self.stem(images, training=training)
    )
