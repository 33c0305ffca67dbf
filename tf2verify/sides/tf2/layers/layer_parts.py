"""What a port's layer is made of, whether it is of tf-keras, of Keras 3 or a `tf.Module`."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from tf2verify.errors import CaseDefinitionError
from tf2verify.reference.variables import variable_name
from tf2verify.sides.tf2.layers.names_in_common import tell_apart, tell_apart_by_path
from tf2verify.tensorflow_internals import autograph, keras3


def _each_once(variables: Iterable[Any]) -> list[Any]:
  return list({id(variable): variable for variable in variables}.values())


# What Keras 3 and `tf.random.Generator` call the variable that holds the state of a generator.
_RANDOM_STATES = ('seed_generator_state', 'StateVar')


def is_random_state(variable: Any) -> bool:
  """Returns whether a variable is the state of a generator of random numbers, whoever owns it.

  tf-keras tells it by its name, too: the generator itself may be gone.
  """
  name = variable_name(variable).rpartition('/')[2]
  is_whole = tf.as_dtype(variable.dtype).is_integer and not variable.trainable
  return is_whole and re.sub(r'_\d+$', '', name) in _RANDOM_STATES


def variables_of(layer: Any) -> list[Any]:
  """Returns the weights of a layer as `tf.Variable`s, each once.

  The states of generators, and of metrics, which Keras 3 also counts as variables, are none.
  """
  if keras3.is_layer(layer):
    found = _each_once(keras3.held(variable) for variable in layer.weights)
  else:
    own = (one for one in layer.variables if not is_random_state(one))
    found = _each_once(keras3.without_cast(one) for one in own)
  tell_apart(layer, found) if is_of_keras(layer) else tell_apart_by_path(layer, found)
  return found


def is_of_keras(layer: Any) -> bool:
  """Returns whether a port is a layer of Keras 3 or of tf-keras."""
  homes = [cls.__module__.partition('.')[0] for cls in type(layer).__mro__]
  return keras3.is_layer(layer) or 'tf_keras' in homes


def call_of(declaration: Any, layer: Any) -> Callable[[Any, Any, bool], Any]:
  """Returns the case's hook that calls a layer, as AutoGraph rewrites it where that is on.

  AutoGraph leaves out the methods of test cases, and with them what these call. Keras has it
  rewrite its layers by itself.
  """
  return autograph.converted(declaration.call_tf2_layer, by_name=not is_of_keras(layer))


def variables_made(layer: Any) -> list[Any]:
  """Returns those that are there, also of a layer that is not built."""
  if keras3.is_layer(layer):
    return variables_of(layer)
  # Not `layer.variables`, which a model of tf-keras raises from while it is not built.
  return [one for one in tf.Module.variables.fget(layer) if not is_random_state(one)]


def trainable_of(layer: Any) -> list[Any]:
  """Returns the trainable weights of a layer as it gives them to an optimizer, each once."""
  if keras3.is_layer(layer):
    return _each_once(layer.trainable_weights)
  return _each_once(layer.trainable_variables)


def own_variables(layer: Any) -> list[Any]:
  """Returns the variables of a layer of Keras 3 as Keras has them; none of any other layer."""
  return list(layer.variables) if keras3.is_layer(layer) else []


def states_beside(layer: Any) -> list[Any]:
  """Returns the `tf.Variable`s of a layer that are no weights: of seeds, and of metrics."""
  if not keras3.is_layer(layer):
    return []
  own = [*layer.variables, *layer.metrics_variables]
  weights = {id(variable) for variable in layer.weights}
  return _each_once(keras3.held(one) for one in own if id(one) not in weights)


def seed_states(layer: Any, beside: Iterable[Any] = ()) -> tuple[str, ...]:
  """Returns the names of the states of generators: a layer's, and those that it used beside them.

  Args:
    layer: the layer.
    beside: variables that its calls used, and that are not its own.
  """
  if keras3.is_layer(layer):
    kept = {id(variable) for variable in (*layer.weights, *layer.metrics_variables)}
    own = [one.path for one in layer.variables if id(one) not in kept]
  else:
    own = [variable_name(one) for one in layer.variables if is_random_state(one)]
  return tuple(dict.fromkeys([*own, *(variable_name(one) for one in beside)]))


def modules_of(layer: Any) -> list[Any]:
  """Returns a layer and the layers and modules inside of it."""
  if keras3.is_layer(layer):
    return list(keras3.parts(layer))
  return [layer, *layer.submodules]


def regularization(losses: Any) -> list[Any]:
  """Returns what `tf2_regularization_losses` returned as a list.

  Raises:
    CaseDefinitionError: it is not a list of floating tensors.
  """
  is_plain = isinstance(losses, Iterable) and not isinstance(losses, (str, bytes, Mapping))
  if not is_plain or tf.is_tensor(losses):
    raise CaseDefinitionError(
      f'tf2_regularization_losses returned a {type(losses).__name__}; return a list of scalar '
      'tensors, such as layer.losses, empty where there are none'
    )
  return list(losses)
