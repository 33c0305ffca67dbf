"""Layers of Keras 3 and of tf-keras that do not track each other's variables, in one port."""

import types
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import tensorflow as tf

from tf2verify.errors import LayerError
from tf2verify.sides.hooks import mixed_keras
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.tensorflow_internals import keras3

_DEEPEST = 8
_MOST_OBJECTS = 50_000
_FIX = (
  'make the port itself a keras.Layer or keras.Model of Keras 3, make it of tf.keras.layers '
  '(tf-keras), or keep the tf.Variables that it computes with in an '
  'attribute of the port: [variable.value for variable in layer.variables]'
)
# What a layer of Keras 3 keeps its parts in besides the attributes of its user.
_LISTS_OF_KERAS_3 = ('._tracker', '._layers', '._operations', '._nodes', '._functional')


def check_not_mixed(layer: Any) -> None:
  """Raises `LayerError` for a port of Keras 3 that holds a layer of tf-keras.

  Args:
    layer: the port, called or not.
  """
  if not keras3.is_layer(layer):
    return
  for place, found in _parts(layer, mixed_keras.is_old_layer):
    raise LayerError(
      f'{place} is a layer of tf-keras ({_class(found)}), and {type(layer).__name__} is one of '
      'Keras 3, which neither trains nor saves its variables; '
      f'{mixed_keras.one_keras(type(found).__name__)}'
    )


def check_keras3(port: Port) -> None:
  """Raises `LayerError` for a port whose Keras 3 variables it does not hold as tf.Variables.

  Args:
    port: it has been called.
  """
  layer, variables = port.layer, port.variables()
  if keras3.is_layer(layer):
    check_not_mixed(layer)  # it may have made layers while it was built or called
    return
  foreign = [variable for variable in variables if not isinstance(variable, tf.Variable)]
  known = {id(variable) for variable in variables}
  for place, found in _parts(layer, _has_keras3_variables):
    own = getattr(found, 'variables', [found])
    if foreign or any(id(getattr(one, 'value', None)) not in known for one in own):
      raise LayerError(
        f'the port holds {_name(found)} of Keras 3 in {place}: '
        f'{"layer.variables gives its Keras 3 variables" if foreign else _UNTRACKED}; {_fix(layer)}'
      )
  if foreign:
    raise LayerError(
      f'layer.variables gives {foreign[0]!r:.80} of type {_class(foreign[0])}, which is not a '
      f'tf.Variable; {_fix(layer)}'
    )
  for path in port.recorder.keras3_paths_beside(variables):
    # A functional model of tf-keras has the operations of such a layer, and not the layer.
    raise LayerError(
      f'the port computes with {path!r} of a layer of Keras 3: {_UNTRACKED}; {_fix(layer)}'
    )


_UNTRACKED = 'its variables are not in layer.variables, so they are neither trained nor saved'


def _fix(layer: Any) -> str:
  return f'{_FIX}{mixed_keras.old_by_flag()}' if mixed_keras.is_old_layer(layer) else _FIX


def _name(found: Any) -> str:
  name = getattr(found, 'name', '')
  return f'{_class(found)} {name!r}' if isinstance(name, str) and name else _class(found)


def _class(found: Any) -> str:
  return f'{type(found).__module__}.{type(found).__qualname__}'


def _has_keras3_variables(item: Any) -> bool:
  return mixed_keras.is_keras3(item) and bool(getattr(item, 'variables', [item]))


def _parts(layer: Any, is_meant: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
  """Yields place and object of what a layer holds, wherever it is, and is meant."""
  pending: list[tuple[str, Any, int]] = [(f'{type(layer).__name__}', layer, 0)]
  seen: dict[int, Any] = {}
  while pending and len(seen) < _MOST_OBJECTS:
    place, current, depth = pending.pop()
    if id(current) in seen or depth > _DEEPEST:
      continue
    seen[id(current)] = current
    if is_meant(current):
      yield place, current
    else:
      pending += [(f'{place}{step}', item, depth + 1) for step, item in _held_by(current)]


def _held_by(item: Any) -> list[tuple[str, Any]]:
  """Returns what something holds, with the way to it; what is to be looked at first is last."""
  if isinstance(item, Mapping):
    return [(f'[{key!r}]', value) for key, value in list(item.items())]
  if isinstance(item, (list, tuple)):
    return [(f'[{n}]', value) for n, value in enumerate(item)]
  if isinstance(item, Set):
    return [(' (a set)', value) for value in item]
  if isinstance(item, types.FunctionType):
    cells = zip(item.__code__.co_freevars, item.__closure__ or (), strict=True)
    return [(f' ({name})', value) for name, cell in cells for value in _content(cell)]
  if not isinstance(item, tf.Module) and not keras3.is_layer(item) and _is_of_library(item):
    return []
  hidden = ('_self_', '_obj_', '_unconditional_', '_tf_')
  found = [
    (f'.{name}', value)
    for name, value in list(getattr(item, '__dict__', {}).items())
    if not name.startswith(hidden) and not isinstance(value, type)
  ]
  if keras3.is_model(item):
    found += [(f'.layers[{n}]', value) for n, value in enumerate(item.layers)]
  return sorted(found, key=_rank)


def _rank(step: tuple[str, Any]) -> int:
  """Sorts what is the user's own name of something to the end."""
  if step[0].startswith(_LISTS_OF_KERAS_3):
    return 0
  return 1 if step[0].startswith('.layers[') else 2


def _content(cell: types.CellType) -> list[Any]:
  try:
    return [cell.cell_contents]
  except ValueError:  # of a variable that is not assigned yet
    return []


def _is_of_library(item: Any) -> bool:
  return type(item).__module__.partition('.')[0] in _LIBRARIES


# Their objects hold no layers of a user; those of a user's own classes may.
_LIBRARIES = (
  'tensorflow',
  'tf_keras',
  'keras',
  'numpy',
  'builtins',
  'functools',
  'types',
  'threading',
  'absl',
)
