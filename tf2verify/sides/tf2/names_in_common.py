"""Variables of Keras layers that have their names in common, told apart by the layers around them.

tf-keras names a variable by the layer that makes it, without the model that this is in: the first
layers of an actor and of a critic both have an `h1/kernel`.
"""

import collections
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.reference.variables import call_variable, variable_name
from tf2verify.tensorflow_internals import keras, keras3


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
  for variable in twice:
    place = places.get(id(variable))
    if place is None:
      continue
    own = variable_name(variable).split('/')
    around = place[:-1] if place and place[-1] == own[0] else place
    name = whole = '/'.join((*around, *own))
    number = 0
    while name in taken:
      number += 1
      name = f'{whole}_{number}'
    taken.add(name)
    call_variable(variable, name)


def _places(layer: Any) -> dict[int, tuple[str, ...]]:
  """Returns the names of the layers around each variable, from the outside, by its identity."""
  found: dict[int, tuple[str, ...]] = {}
  for place, part in _parts(layer, ()):
    for variable in _weights(part):
      known = found.setdefault(id(keras3.held(variable)), place)
      if len(place) > len(known) and place[: len(known)] == known:
        found[id(keras3.held(variable))] = place
  return found


def _weights(part: Any) -> Sequence[Any]:
  if hasattr(part, '_tf1_style_var_store'):
    return ()
  # Not `part.weights`, which a model of tf-keras raises from while it is not built.
  return list(part.weights if keras3.is_layer(part) else tf.Module.variables.fget(part))


def _parts(layer: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
  yield place, layer
  for part in keras.layers_within(layer):
    yield from _parts(part, (*place, part.name))
