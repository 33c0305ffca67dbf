"""ResNet-50 v2 from `tf_slim.nets`, as TF1 code calls it."""

import tensorflow as tf
import tf_slim as slim
from tf_slim.nets import resnet_v2


def resnet_v2_50(images: tf.Tensor, num_classes: int, is_training: bool) -> tf.Tensor:
  """Returns the logits.

  Args:
    images: `[batch, height, width, 3]` float32.
    num_classes: the number of classes.
    is_training: whether batch norm uses batch statistics.

  Returns:
    `[batch, num_classes]` float32.
  """
  with slim.arg_scope(resnet_v2.resnet_arg_scope()):
    logits, _ = resnet_v2.resnet_v2_50(images, num_classes, is_training=is_training)
  return tf.squeeze(logits, [1, 2])


def shallow_resnet_v2(images: tf.Tensor, num_classes: int, is_training: bool) -> tf.Tensor:
  """Returns the logits of the same network with one unit in each of its four blocks.

  Args:
    images: `[batch, height, width, 3]` float32.
    num_classes: the number of classes.
    is_training: whether batch norm uses batch statistics.

  Returns:
    `[batch, num_classes]` float32.
  """
  blocks = [
    resnet_v2.resnet_v2_block(f'block{number}', base_depth, num_units=1, stride=stride)
    for number, (base_depth, stride) in enumerate(((64, 2), (128, 2), (256, 2), (512, 1)), start=1)
  ]
  with slim.arg_scope(resnet_v2.resnet_arg_scope()):
    logits, _ = resnet_v2.resnet_v2(images, blocks, num_classes, is_training, scope='resnet_v2')
  return tf.squeeze(logits, [1, 2])
