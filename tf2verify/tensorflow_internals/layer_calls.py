"""Keras layers of both versions as they are constructed, and the frames of their calls.

Keras publishes no hook for either. Run with tf-keras 2.16 to 2.21 and Keras 3.12 to 3.15.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from tf_keras.src.engine import base_layer

from tf2verify.tensorflow_internals import keras3

# Methods in which a layer makes operations or variables, its local `self`.
_METHODS = ('__call__', 'add_weight')


def _families() -> tuple[Any, ...]:
  module = keras3.loaded()
  return (base_layer.Layer, *(() if module is None else (module.Layer,)))


def codes() -> frozenset[CodeType]:
  """Returns the code of the frames in which layers make operations and variables."""
  return _codes(_families())


@functools.cache
def _codes(families: tuple[Any, ...]) -> frozenset[CodeType]:
  found = (getattr(family, method) for family in families for method in _METHODS)
  return frozenset(inspect.unwrap(method).__code__ for method in found)


@contextlib.contextmanager
def constructed(on_layer: Callable[[Any], None]) -> Iterator[None]:
  """Has a function called with every layer that is being constructed, until exit.

  Before its `__init__`: the layer has nothing of its own yet.
  """
  before = [(family, vars(family)['__new__']) for family in _families()]
  for family, known in before:
    family.__new__ = staticmethod(_calling(known.__func__, on_layer))
  try:
    yield
  finally:
    for family, known in before:
      family.__new__ = known


def _calling(known: Callable[..., Any], on_layer: Callable[[Any], None]) -> Callable[..., Any]:
  def new(cls: Any, *arguments: Any, **keywords: Any) -> Any:
    layer = known(cls, *arguments, **keywords)
    on_layer(layer)
    return layer

  return new
