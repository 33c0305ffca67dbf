"""The TF2 port of the language model."""

from typing import Any

import tensorflow as tf

from examples.language_model import model


class LanguageModel(tf.keras.layers.Layer):
  """The language model under the modeling shim.

  Args:
    config: the sizes and the type of cell.
    **kwargs: of `tf.keras.layers.Layer`.
  """

  def __init__(self, config: model.Config, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.config = config

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, Any]:
    """Returns 'probabilities' and 'final_state'."""
    return model.language_model(
      inputs['token_ids'], inputs['lengths'], self.config, is_training=training
    )
