"""Keras layers of both versions as they are constructed, and the frames of their calls.

Keras publishes no hook for either. Run with tf-keras 2.16 to 2.21 and Keras 3.12 to 3.15.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any
from unittest import mock

from tf_keras.src.engine import base_layer

from tf2verify.tensorflow_internals import keras3

# Methods in which a layer makes operations or variables.
_METHODS = ('__call__', 'add_weight')
# What AutoGraph of TensorFlow 2.16 makes of the call of a layer of tf-keras.
_CONVERTED_CALL = 'tf____call__'


def _families() -> tuple[Any, ...]:
  module = keras3.loaded()
  return (base_layer.Layer, *(() if module is None else (module.Layer,)))


def _operations() -> tuple[Any, ...]:
  """Returns the class of what `keras.ops` makes of symbolic tensors, in a functional model."""
  module = keras3.loaded()
  return () if module is None else (module.Operation,)


class Frames:
  """What frames of a stack say of layers, for the Keras that is loaded now: one for each walk."""

  def __init__(self) -> None:
    """Looks which Keras is loaded."""
    self._families = _families()
    self._codes = _codes(self._families, _operations())
    self._regularizing = _regularizing(self._families)

  def running(self, frame: FrameType) -> Any:
    """Returns the layer that makes operations or variables in a frame; None for any other."""
    code = frame.f_code
    name = self._codes.get(code)
    if name is None and code.co_name == _CONVERTED_CALL:
      layer = frame.f_locals.get('self')
      return layer if isinstance(layer, self._families) else None
    return None if name is None else frame.f_locals.get(name)

  def regularized(self, frame: FrameType) -> str | None:
    """Returns the path of the variable that Keras 3 regularizes in a frame; None elsewhere.

    A model does so for the variables of all of its layers, and no frame is of the layer.
    """
    if frame.f_code is not self._regularizing:
      return None
    return str(getattr(frame.f_locals.get('variable'), 'path', ''))


@functools.cache
def _codes(families: tuple[Any, ...], operations: tuple[Any, ...]) -> dict[CodeType, str]:
  """Returns the variable that holds the layer, or operation, by the code of the frames."""
  found = [(getattr(family, method), 'self') for family in families for method in _METHODS]
  found += [(family.__call__, 'self') for family in operations]
  # The losses of regularizers, which are formed long after the call.
  found.append((base_layer.Layer.losses.fget, 'layer'))
  return {inspect.unwrap(method).__code__: name for method, name in found}


@functools.cache
def _regularizing(families: tuple[Any, ...]) -> CodeType | None:
  """Returns the code in which Keras 3 regularizes a variable; None where it is not loaded."""
  code: CodeType | None = None
  for family in families[1:]:
    code = family._get_regularization_losses.__code__
  return code


@contextlib.contextmanager
def constructed(
  on_layer: Callable[[Any], None], on_weight: Callable[[str], None]
) -> Iterator[None]:
  """Has functions called with every layer, operation and weight that is made, until exit.

  Args:
    on_layer: called before its `__init__`, also with operations of Keras 3 on symbolic tensors:
      the layer has nothing of its own yet.
    on_weight: called with the path of a variable that a layer of Keras 3 has declared; where the
      layer is built by a symbolic call, it is made after that, far from the line that declares it.
  """
  module = keras3.loaded()
  with contextlib.ExitStack() as stack:
    families = _families()
    for family in (*families, *_operations()):
      known = vars(family)['__new__']
      stack.callback(setattr, family, '__new__', known)
      others = () if family in families else families  # a layer is an operation, and told of once
      family.__new__ = staticmethod(_calling(known.__func__, on_layer, others))
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


def _calling(
  known: Callable[..., Any], on_layer: Callable[[Any], None], others: tuple[Any, ...]
) -> Callable[..., Any]:
  def new(cls: Any, *arguments: Any, **keywords: Any) -> Any:
    layer = known(cls, *arguments, **keywords)
    if not issubclass(cls, others):
      on_layer(layer)
    return layer

  return new
