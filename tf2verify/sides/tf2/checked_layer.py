"""What make_tf2_layer returned: is it a layer?"""

from typing import Any

import tensorflow as tf

from tf2verify.errors import LayerError


def check_layer(layer: Any) -> None:
  """Raises `LayerError` for what is no layer that can be called."""
  if not isinstance(layer, tf.Module):
    raise LayerError(
      f'make_tf2_layer returned {layer!r:.80} of type {type(layer).__name__}, which is not a '
      f'layer; {_likely_slip(layer)}'
    )
  if not callable(layer):
    raise LayerError(
      f'make_tf2_layer returned a {type(layer).__name__} without __call__; a tf.Module needs a '
      '__call__ decorated with tf.compat.v1.keras.utils.track_tf1_style_variables'
    )


def _likely_slip(layer: Any) -> str:
  if layer is None:
    return 'usually a missing `return`'
  if isinstance(layer, type) and issubclass(layer, tf.Module):
    return f'it is the class: return an instance, {layer.__name__}(...)'
  if type(layer).__module__.startswith('keras.'):
    return 'it is a Keras 3 object: use tf.keras of tf-keras, see `python -m tf2verify doctor`'
  return 'return an instance of a tf.keras.layers.Layer, tf.keras.Model or tf.Module subclass'
