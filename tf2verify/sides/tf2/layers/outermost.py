"""Layers of Keras 3 that cannot be called first in a graph, by their names.

Keras names a layer by its class and opens a scope of that name, and TensorFlow allows no scope
outside of others whose name begins with an underscore: `class _Net` is served within a model, and
raises in a `tf.function` of its own.
"""

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from tf2verify.tensorflow_internals import keras3


def is_refused(layer: Any) -> bool:
  """Returns whether TensorFlow refuses the layer's scope where no other one is open."""
  return keras3.is_layer(layer) and not (layer.name[:1].isalnum() or layer.name.startswith('.'))


def scope_around(layer: Any) -> AbstractContextManager[Any]:
  """Opens a scope around such a layer in a graph, as a model has one around its layers."""
  needs_one = is_refused(layer) and not tf.executing_eagerly()
  return tf.name_scope('port') if needs_one else contextlib.nullcontext()


def note(layer: Any) -> str:
  """Returns what to say of such a layer; '' for any other."""
  if not is_refused(layer):
    return ''
  return (
    f'the layer is called {layer.name!r}, by its class: tf.function(layer) alone raises "not a '
    'valid root scope name", and so does tf.saved_model.save; here it was called within another '
    'scope, as in a model; pass name='
  )
