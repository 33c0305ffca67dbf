"""The TF2 port of the GAN."""

import tensorflow as tf

from examples.gan import model


class Gan(tf.keras.layers.Layer):
  """Generator and discriminator under the modeling shim."""

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: dict[str, tf.Tensor], training: bool = False) -> dict[str, tf.Tensor]:
    """Returns 'fake_images', 'real_logits' and 'fake_logits'."""
    return model.gan(inputs['noise'], inputs['real_images'], is_training=training)
