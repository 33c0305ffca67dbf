"""What make_tf2_layer returned: is it a layer?"""

from collections.abc import Collection
from typing import Any

import tensorflow as tf

from tf2verify.errors import LayerError
from tf2verify.hooks import PLACEHOLDER
from tf2verify.reference.variables import variable_name
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.sides.tf2.layers.keras3_parts import check_not_mixed
from tf2verify.tensorflow_internals import decorated_calls, keras3


def check_layer(layer: Any) -> None:
  """Raises `LayerError` for what is not a layer that can be called."""
  if keras3.is_layer(layer):
    _check_keras3(layer)
    check_not_mixed(layer)
    return
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


def check_not_built(layer: Any, created_now: Collection[int]) -> None:
  """Raises `LayerError` for a layer whose variables were made before it was asked for.

  Args:
    layer: fresh from `make_tf2_layer`.
    created_now: identities of the variables that were made there.
  """
  variables = layer_parts.variables_made(layer)
  built_before = any(id(variable) not in created_now for variable in variables)
  # A functional model is built where it is made, under the controlled seeds; so is a layer of
  # Keras 3 that `build` is called on there.
  built_here = getattr(layer, '_is_graph_network', False) or keras3.is_layer(layer)
  if built_before or (getattr(layer, 'built', False) and not built_here):
    names = ', '.join(variable_name(variable) for variable in variables[:3]) or 'none'
    raise LayerError(
      'make_tf2_layer returned a layer that is already built (variables: '
      f'{names}): its initial values were drawn outside of the controlled seeds; return the '
      'layer without calling or building it'
    )


def is_placeholder(layer: Any) -> bool:
  """Returns whether a port is what `python -m tf2verify new` has written in its place."""
  return vars(type(layer)).get(PLACEHOLDER) is True  # not inherited: a port may derive from it


def _likely_slip(layer: Any) -> str:
  if layer is None:
    return 'usually a missing `return`'
  if isinstance(layer, type) and (issubclass(layer, tf.Module) or keras3.is_layer_class(layer)):
    return f'it is the class: return an instance, {layer.__name__}(...)'
  if type(layer).__module__.startswith('keras.'):
    return 'it is an object of Keras 3, but no layer: return a keras.Layer or keras.Model'
  return (
    'return an instance of a tf.keras.layers.Layer, tf.keras.Model, keras.Layer, keras.Model or '
    'tf.Module subclass'
  )


def _check_keras3(layer: Any) -> None:
  backend = keras3.backend()
  if backend != keras3.BACKEND:
    raise LayerError(
      f'make_tf2_layer returned a {type(layer).__name__} of Keras 3, whose backend is {backend}: '
      'only its TensorFlow backend can be run together with a TF1 graph; start the process with '
      'KERAS_BACKEND=tensorflow, or set "backend": "tensorflow" in ~/.keras/keras.json'
    )
  for part in keras3.parts(layer):
    method = decorated_calls.shimmed_method(type(part))
    if method is not None:
      name = type(part).__name__
      raise LayerError(
        f'{name}.{method} is decorated with track_tf1_style_variables, and {name} is a layer of '
        'Keras 3: the decorator belongs to tf-keras, and would keep the variables where Keras 3 '
        'neither trains nor saves them; make the variables by add_weight or by layers of Keras 3 '
        f'and remove the decorator, or derive {name} from tf_keras.layers.Layer'
      )
