"""Whether a port says itself that it refuses inputs of another size."""

import re
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.reference.nests import leaves_by_path
from tf2verify.relation.names.roles import same_but_counters
from tf2verify.sides.graphs.lines.source_lines import is_user_file
from tf2verify.sides.tf2.layers import layer_parts
from tf2verify.tensorflow_internals import keras3

# The function of tf-keras that holds inputs against a layer's `input_spec`.
_KERAS_CHECK = 'assert_input_compatibility'
# A statement that refuses something on purpose.
_REFUSAL = re.compile(r'^(raise|assert)\b|\b(Assert|assert_\w+|ensure_shape)\(')
_STEPS = 20


def declared_limit(layer: Any, inputs: Any, other: Any, error: Exception) -> str:
  """Returns where a port declares that it refuses these inputs; '' if it does not.

  That is the shape of a functional model's `Input`, the `input_spec` of a layer of the
  user's own, the `input_signature` of a `tf.function`, or an assert.

  Args:
    layer: the port.
    inputs: a nest of arrays that it takes.
    other: one that it raised at.
    error: what it raised; its causes are looked at as well.
  """
  for one in _chain(error):
    spec = _refusing_spec(layer, one)
    if spec:
      return spec
  if _refused_by_signature(layer, inputs, other):
    return 'an input_signature of a tf.function'
  if any(_refused_on_purpose(one) for one in _chain(error)):
    return 'an assert of its own'
  return ''


def _chain(error: BaseException | None) -> Iterator[BaseException]:
  """Yields an error and what it was raised from; Keras wraps those of inner layers."""
  for _ in range(_STEPS):
    if error is None:
      return
    yield error
    error = error.__cause__ or error.__context__


def _refusing_spec(layer: Any, error: BaseException) -> str:
  for frame, _ in traceback.walk_tb(error.__traceback__):
    if frame.f_code.co_name == _KERAS_CHECK and 'keras' in frame.f_code.co_filename:
      name = frame.f_locals.get('layer_name')
      modules = layer_parts.modules_of(layer)
      owners = [one for one in modules if getattr(one, 'name', None) == name]
      # A layer that is made once more has another number in its name.
      owners = owners or [one for one in modules if _same_but_number(one, name)]
      if any(_is_functional(owner) for owner in owners):
        return 'the shape of an Input of a functional model'
      if any(type(owner).__module__.split('.')[0] not in ('tf_keras', 'keras') for owner in owners):
        return 'an input_spec'
  return ''


def _same_but_number(module: Any, name: Any) -> bool:
  own = getattr(module, 'name', None)
  return isinstance(own, str) and isinstance(name, str) and same_but_counters(own, name)


def _is_functional(module: Any) -> bool:
  return getattr(module, '_is_graph_network', False) or keras3.is_functional(module)


def _refused_by_signature(layer: Any, inputs: Any, other: Any) -> bool:
  """Returns whether a `tf.function` of the port takes inputs of the one shape, not of the other."""
  shapes = [(x.shape, np.shape(y)) for x, y in _pairs(inputs, other)]
  specs = [spec.shape for function in _functions(layer) for spec in _specs(function)]
  return any(
    spec.is_compatible_with(old) and not spec.is_compatible_with(new)
    for spec in specs
    for old, new in shapes
    if spec.rank is not None
  )


def _pairs(inputs: Any, other: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  others = leaves_by_path(other)
  for path, leaf in leaves_by_path(inputs).items():
    yield leaf, others[path]


def _functions(layer: Any) -> Iterator[Any]:
  for module in layer_parts.modules_of(layer):
    spaces = [vars(module), *(vars(one) for one in type(module).__mro__)]
    for space in spaces:
      for value in space.values():
        if isinstance(value, tf.types.experimental.PolymorphicFunction):
          yield value


def _specs(function: Any) -> list[Any]:
  signature = getattr(function, 'input_signature', None)
  flat = tf.nest.flatten(signature) if signature is not None else []
  return [spec for spec in flat if isinstance(spec, tf.TensorSpec)]


def _refused_on_purpose(error: BaseException) -> bool:
  own = [f for f in traceback.extract_tb(error.__traceback__) if is_user_file(f.filename)]
  return bool(own) and bool(_REFUSAL.search((own[-1].line or '').strip()))
