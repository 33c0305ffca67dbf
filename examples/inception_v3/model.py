"""Inception v3 from `tf_slim.nets`, as TF1 code calls it."""

import tensorflow as tf
import tf_slim as slim
from tf_slim.nets import inception_v3 as nets


def inception_v3(
  images: tf.Tensor, num_classes: int, is_training: bool, depth_multiplier: float = 1.0
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the logits of the classifier and of the auxiliary head.

  Args:
    images: `[batch, height, width, 3]` float32, at least 107 pixels high and wide.
    num_classes: the number of classes.
    is_training: whether batch statistics and dropout (keep 0.8) are used.
    depth_multiplier: scales the number of filters of every convolution.

  Returns:
    Two tensors `[batch, num_classes]` float32.
  """
  with slim.arg_scope(nets.inception_v3_arg_scope()):
    logits, end_points = nets.inception_v3(
      images, num_classes, is_training=is_training, depth_multiplier=depth_multiplier
    )
  return logits, end_points['AuxLogits']
