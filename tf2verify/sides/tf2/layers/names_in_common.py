"""Variables of a port that have their names in common, told apart by where they are in it.

tf-keras names a variable by the layer that makes it, without the model that this is in: the first
layers of an actor and of a critic both have an `h1/kernel`. In a tf.Module, a variable without a
name of its own is a `Variable`.
"""

import collections
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.variables import call_variable, variable_name
from tf2verify.tensorflow_internals import keras, keras3
from tf2verify.tensorflow_internals.variables import paths_of

# The names of the layers around a variable, from the outside, and the identity of its own layer.
_Place = tuple[tuple[str, ...], int]
_NOWHERE: _Place = ((), 0)
# The attribute of a module that holds what `get_variable` makes in it.
_OF_GET_VARIABLE = '_tf1_style_var_store'


def tell_apart(layer: Any, variables: Sequence[Any]) -> None:
  """Gives those variables of a layer of Keras that have a name in common names of their own.

  A variable that `get_variable` made keeps its name, which is meant to be the one of TF1.
  """
  counts = collections.Counter(map(variable_name, variables))
  twice = [variable for variable in variables if counts[variable_name(variable)] > 1]
  if not twice:
    return
  places = _places(layer)
  taken = {name for name, count in counts.items() if count == 1}
  makers: dict[str, set[int]] = collections.defaultdict(set)
  for variable in twice:
    makers[variable_name(variable)].add(places.get(id(variable), _NOWHERE)[1])
  # Of one layer that makes a variable twice, the names are right.
  shared = {name for name, parts in makers.items() if len(parts) > 1}
  for variable in twice:
    place, _ = places.get(id(variable), _NOWHERE)
    if not place or variable_name(variable) not in shared:
      continue
    own = tuple(variable_name(variable).split('/'))
    name = whole = '/'.join((*_not_named(place, own), *own))
    number = 0
    while name in taken:
      number += 1
      name = f'{whole}_{number}'
    taken.add(name)
    call_variable(variable, name)


def tell_apart_by_path(module: Any, variables: Sequence[Any]) -> None:
  """Gives those variables of a tf.Module that have a name in common names of their own.

  That is the path of attributes that leads there, as in a checkpoint: `blocks/0/w`. A variable that
  `get_variable` made keeps its name, which is meant to be the one of TF1.
  """
  counts = collections.Counter(map(variable_name, variables))
  twice = {id(one): one for one in variables if counts[variable_name(one)] > 1}
  if not twice or not isinstance(module, tf.Module):
    return
  taken = {name for name, count in counts.items() if count == 1}
  for path, variable in paths_of(module):
    name = '/'.join(path)
    if id(variable) in twice and name not in taken and _OF_GET_VARIABLE not in path:
      taken.add(name)
      call_variable(variable, name)


def _not_named(place: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
  """Returns the layers around a variable that its own name does not begin with, or have in it."""
  if any(own[start : start + len(place)] == place for start in range(len(own))):
    return ()
  return place[:-1] if place[-1] == own[0] else place


def _places(layer: Any) -> dict[int, _Place]:
  """Returns where each variable is, by its identity."""
  found: dict[int, _Place] = {}
  for place, part in _parts(layer, ()):
    for variable in _weights(part):
      known, _ = found.setdefault(id(keras3.held(variable)), (place, id(part)))
      if len(place) > len(known) and place[: len(known)] == known:
        found[id(keras3.held(variable))] = place, id(part)
  return found


def _weights(part: Any) -> Sequence[Any]:
  if hasattr(part, _OF_GET_VARIABLE):
    return ()
  # Not `part.weights`, which a model of tf-keras raises from while it is not built.
  return list(part.weights if keras3.is_layer(part) else tf.Module.variables.fget(part))


def _parts(layer: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
  yield place, layer
  for part in keras.layers_within(layer):
    yield from _parts(part, (*place, part.name))
