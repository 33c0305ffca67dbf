"""What a port's layer is made of, whether it is of tf-keras, of Keras 3 or a `tf.Module`."""

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from tf2verify.tensorflow_internals import keras3


def _each_once(variables: Iterable[Any]) -> list[Any]:
  return list({id(variable): variable for variable in variables}.values())


def variables_of(layer: Any) -> list[Any]:
  """Returns the weights of a layer as `tf.Variable`s, each once.

  The states of seed generators and metrics, which Keras 3 also counts as variables, are none.
  """
  if keras3.is_layer(layer):
    return _each_once(keras3.held(variable) for variable in layer.weights)
  return _each_once(layer.variables)


def is_of_keras(layer: Any) -> bool:
  """Returns whether a port is a layer of Keras 3 or of tf-keras."""
  homes = [cls.__module__.partition('.')[0] for cls in type(layer).__mro__]
  return keras3.is_layer(layer) or 'tf_keras' in homes


def variables_made(layer: Any) -> list[Any]:
  """Returns those that are there, also of a layer that is not built."""
  if keras3.is_layer(layer):
    return variables_of(layer)
  # Not `layer.variables`, which a model of tf-keras raises from while it is not built.
  return list(tf.Module.variables.fget(layer))


def trainable_of(layer: Any) -> list[Any]:
  """Returns the trainable weights of a layer as it gives them to an optimizer, each once."""
  if keras3.is_layer(layer):
    return _each_once(layer.trainable_weights)
  return _each_once(layer.trainable_variables)


def states_beside(layer: Any) -> list[Any]:
  """Returns the `tf.Variable`s of a layer that are no weights: of seeds, and of metrics."""
  if not keras3.is_layer(layer):
    return []
  own = [*layer.variables, *layer.metrics_variables]
  weights = {id(variable) for variable in layer.weights}
  return _each_once(keras3.held(one) for one in own if id(one) not in weights)


def seed_states(layer: Any) -> tuple[str, ...]:
  """Returns the paths of the states of a layer's seed generators."""
  if not keras3.is_layer(layer):
    return ()
  kept = {id(variable) for variable in (*layer.weights, *layer.metrics_variables)}
  return tuple(one.path for one in layer.variables if id(one) not in kept)


def modules_of(layer: Any) -> list[Any]:
  """Returns a layer and the layers and modules inside of it."""
  if keras3.is_layer(layer):
    return list(keras3.parts(layer))
  return [layer, *layer.submodules]
