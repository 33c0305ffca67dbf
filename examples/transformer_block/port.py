"""The TF2 port of the transformer block, as a `tf.Module`."""

import tensorflow as tf

from examples.transformer_block import model


class TransformerBlock(tf.Module):
  """The transformer block under the modeling shim.

  Args:
    config: the sizes.
  """

  def __init__(self, config: model.Config) -> None:
    super().__init__()
    self.config = config

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def __call__(self, inputs: dict[str, tf.Tensor], training: bool = False) -> tf.Tensor:
    """Returns the encoded tokens, `[batch, length, width]`."""
    return model.transformer_block(
      inputs['token_ids'], inputs['lengths'], self.config, is_training=training
    )
