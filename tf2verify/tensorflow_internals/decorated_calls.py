"""The decorated `call` of layer classes, which AutoGraph gives another function to decorate.

Keras converts `layer.call` where a layer is called in a graph. Where the method has a
decorator, such as `track_tf1_style_variables`, TensorFlow (2.21: `tf_decorator.rewrap`) may
put what was converted into the decorator itself, for the whole class and process. Layers made
afterwards were then given a `training` that they do not take (seen behind the stage
`execution_modes`).
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.util import tf_decorator

from tf2verify.reference.graph_ops import reached

_METHODS = ('call', '__call__')
_MARK = '_tf_decorator'
_SHIM = 'track_tf1_style_variables'
_Method = Callable[..., Any]


def _decorated() -> Iterator[_Method]:
  """Yields the decorated methods of all classes of modules and layers."""
  for cls in reached([tf.Module], type.__subclasses__):
    found = (vars(cls).get(name) for name in _METHODS)
    yield from (method for method in found if hasattr(method, _MARK))


def shimmed_method(cls: type) -> str | None:
  """Returns the method of a class that `track_tf1_style_variables` decorates; None without one."""
  for name in _METHODS:
    method = getattr(cls, name, None)
    decorators = tf_decorator.unwrap(method)[0] if hasattr(method, _MARK) else []
    if any(decorator.decorator_name == _SHIM for decorator in decorators):
      return name
  return None


def read_targets() -> tuple[tuple[_Method, _Method], ...]:
  """Returns each decorated method, and what it decorates, for `write_targets`."""
  return tuple((method, tf_decorator.unwrap(method)[1]) for method in _decorated())


def write_targets(saved: tuple[tuple[_Method, _Method], ...]) -> None:
  """Has every method decorate what it did when `saved` was read."""
  for method, target in saved:
    now = tf_decorator.unwrap(method)[1]
    if now is not target:
      tf_decorator.rewrap(method, now, target)


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Has every method decorate at exit what it did at entry."""
  saved = read_targets()
  try:
    yield
  finally:
    write_targets(saved)
