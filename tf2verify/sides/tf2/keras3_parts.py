"""Layers and variables of Keras 3 inside of a port, which tf-keras and tf.Module do not track."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.errors import LayerError
from tf2verify.tensorflow_internals import keras3

_DEEPEST = 8
_MOST_OBJECTS = 50_000
_FIX = (
  'make the port itself a keras.Layer or keras.Model of Keras 3, make it of tf.keras.layers '
  '(tf-keras), or keep the tf.Variables that it computes with in an '
  'attribute of the port: [variable.value for variable in layer.variables]'
)


def check_keras3(layer: Any, variables: Sequence[Any]) -> None:
  """Raises `LayerError` for a port whose Keras 3 variables it does not hold as tf.Variables.

  Args:
    layer: the port, which has been called.
    variables: what it says are its variables.
  """
  if keras3.is_layer(layer):
    return
  foreign = [variable for variable in variables if not isinstance(variable, tf.Variable)]
  known = {id(variable) for variable in variables}
  for place, found in _keras3_parts(layer):
    own = getattr(found, 'variables', [found])
    if foreign or any(id(getattr(one, 'value', None)) not in known for one in own):
      raise LayerError(
        f'the port holds {_name(found)} of Keras 3 in {place}: '
        f'{"layer.variables gives its Keras 3 variables" if foreign else _UNTRACKED}; {_FIX}'
      )
  if foreign:
    raise LayerError(
      f'layer.variables gives {foreign[0]!r:.80} of type {_class(foreign[0])}, which is not a '
      f'tf.Variable; {_FIX}'
    )


_UNTRACKED = 'its variables are not in layer.variables, so they are neither trained nor saved'


def _name(found: Any) -> str:
  name = getattr(found, 'name', '')
  return f'{_class(found)} {name!r}' if isinstance(name, str) and name else _class(found)


def _class(found: Any) -> str:
  return f'{type(found).__module__}.{type(found).__qualname__}'


def _is_keras3(item: Any) -> bool:
  return any(
    cls.__module__.split('.')[0] == 'keras' and cls.__name__ in ('Layer', 'Variable')
    for cls in type(item).__mro__
  )


def _keras3_parts(layer: Any) -> Iterator[tuple[str, Any]]:
  """Yields place and object of what belongs to Keras 3 and has variables."""
  pending: list[tuple[str, Any, int]] = [(f'{type(layer).__name__}', layer, 0)]
  seen: dict[int, Any] = {}
  while pending and len(seen) < _MOST_OBJECTS:
    place, current, depth = pending.pop()
    if id(current) in seen or depth > _DEEPEST:
      continue
    seen[id(current)] = current
    if _is_keras3(current):
      if getattr(current, 'variables', [current]):
        yield place, current
    elif isinstance(current, Mapping):
      pending += [(f'{place}[{key!r}]', item, depth + 1) for key, item in list(current.items())]
    elif isinstance(current, (list, tuple)):
      pending += [(f'{place}[{n}]', item, depth + 1) for n, item in enumerate(current)]
    elif (
      isinstance(current, tf.Module) or type(current).__module__.partition('.')[0] not in _OTHERS
    ):
      attributes = list(getattr(current, '__dict__', {}).items())
      hidden = ('_self_', '_obj_', '_unconditional_', '_tf_')
      pending += [
        (f'{place}.{name}', item, depth + 1)
        for name, item in attributes
        if not name.startswith(hidden) and not isinstance(item, type)
      ]


# Their objects hold no layers of a user; those of a user's own classes may.
_OTHERS = ('tensorflow', 'tf_keras', 'numpy', 'builtins', 'functools', 'types', 'threading', 'absl')
