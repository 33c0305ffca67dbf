"""Keras layers of both versions as they are constructed, and the frames of their calls.

Keras publishes no hook for either. Run with tf-keras 2.16 to 2.21 and Keras 3.12 to 3.15.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any
from unittest import mock

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
def constructed(
  on_layer: Callable[[Any], None], on_weight: Callable[[str], None]
) -> Iterator[None]:
  """Has functions called with every layer that is being constructed, and weight, until exit.

  Args:
    on_layer: called before its `__init__`: the layer has nothing of its own yet.
    on_weight: called with the path of a variable that a layer of Keras 3 has declared; where the
      layer is built by a symbolic call, it is made after that, far from the line that declares it.
  """
  module = keras3.loaded()
  with contextlib.ExitStack() as stack:
    for family in _families():
      known = vars(family)['__new__']
      stack.callback(setattr, family, '__new__', known)
      family.__new__ = staticmethod(_calling(known.__func__, on_layer))
    if module is not None:
      declare = module.Layer.add_weight
      stack.enter_context(mock.patch.object(module.Layer, 'add_weight', _told(declare, on_weight)))
    yield


def _told(known: Callable[..., Any], on_weight: Callable[[str], None]) -> Callable[..., Any]:
  @functools.wraps(known)
  def add_weight(*arguments: Any, **keywords: Any) -> Any:
    variable = known(*arguments, **keywords)
    on_weight(str(variable.path))
    return variable

  return add_weight


def _calling(known: Callable[..., Any], on_layer: Callable[[Any], None]) -> Callable[..., Any]:
  def new(cls: Any, *arguments: Any, **keywords: Any) -> Any:
    layer = known(cls, *arguments, **keywords)
    on_layer(layer)
    return layer

  return new
