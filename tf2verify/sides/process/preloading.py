"""What TensorFlow and Keras load at their first use, loaded ahead."""

import tensorflow as tf


def preload() -> None:
  """Loads the modules that every case uses, and runs nothing: no thread, no device."""
  _ = tf.compat.v1.keras.utils
