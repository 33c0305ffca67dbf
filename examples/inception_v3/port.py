"""The TF2 port of Inception v3."""

from typing import Any

import tensorflow as tf
import tf_slim as slim
from tf_slim.nets import inception_v3 as nets


def _without_variables_collections() -> Any:
  """Replaces the batch norm parameters of the net's own arg scope.

  The original ones add the moving averages to a collection. There slim asks
  `variable in collection`, which compares element by element in eager mode and
  raises; and a layer knows its variables without collections.
  """
  batch_norm_params = {'decay': 0.9997, 'epsilon': 0.001, 'fused': True}
  return slim.arg_scope([slim.conv2d], normalizer_params=batch_norm_params)


class InceptionV3(tf.keras.layers.Layer):
  """Inception v3 under the modeling shim.

  Args:
    num_classes: the number of classes.
    depth_multiplier: scales the number of filters of every convolution.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, num_classes: int, depth_multiplier: float = 1.0, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.num_classes = num_classes
    self.depth_multiplier = depth_multiplier

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, images: tf.Tensor, training: bool = False) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the logits of the classifier and of the auxiliary head."""
    with slim.arg_scope(nets.inception_v3_arg_scope()), _without_variables_collections():
      logits, end_points = nets.inception_v3(
        images,
        self.num_classes,
        is_training=training,
        depth_multiplier=self.depth_multiplier,
      )
    return logits, end_points['AuxLogits']
