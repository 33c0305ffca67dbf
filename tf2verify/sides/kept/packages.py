"""What installed packages hold of the user: settings, and functions that were registered there."""

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tf2verify.reference.arrays import array_digest
from tf2verify.sides.kept import states
from tf2verify.sides.kept.installed import (
  file_stamp,
  is_installed,
  is_installed_file,
  is_looked_through,
)
from tf2verify.tensorflow_internals import registries

# Whose names are looked through; the stack of its arg scopes is a setting.
_SLIM = 'tf_slim'
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
# State that is nested deeper is that of an algorithm, and no setting.
_DEEPEST = 8


def is_third_party(module: str) -> bool:
  """Returns whether a module is of an installed package whose names nobody looks through."""
  root = module.partition('.')[0]
  return (
    root not in sys.stdlib_module_names
    and root not in ('builtins', 'tf2verify', '__main__')
    and not (is_looked_through(module) and root != _SLIM)
    and is_installed(sys.modules.get(root))
  )


def state_of(root: str, put: Callable[[str, Any], None]) -> Iterator[str]:
  """Yields texts that change with the files, names and settings of a package's loaded modules.

  Args:
    root: the name of the package.
    put: takes functions and classes of the user that the package holds, each after a name of it.
  """
  reader = _Reader(put)
  for name, module in sorted(sys.modules.items()):
    if name.partition('.')[0] == root and isinstance(module, types.ModuleType):
      names = dict(types.ModuleType.__getattribute__(module, '__dict__'))
      yield f'{name} {file_stamp(names.get("__file__"))}'
      yield from reader.names(name, names)


def registered(strings: set[str], put: Callable[[str, Any], None]) -> None:
  """Adds what the user has registered in TensorFlow and Keras, to be found by name or type.

  Custom objects of Keras count where a text of the reference names them: ports have them too.

  Args:
    strings: all texts that the reference reaches.
    put: takes a name for the reader, and the object.
  """
  for registry, key, value in registries.entries():
    if is_of_user(value) and (
      not registry.is_of_ports or key in strings or key.rpartition('>')[2] in strings
    ):
      put(f'{key} in the {registry.name}', value)


def is_of_user(value: Any) -> bool:
  """Returns whether a function, a class or an object's class is of no installed package."""
  if isinstance(value, functools.partial):
    return is_of_user(value.func)
  if type(value) is types.FunctionType and not value.__code__.co_filename.startswith('<'):
    return not is_installed_file(value.__code__.co_filename)
  module = sys.modules.get(getattr(value, '__module__', None) or '')
  return module is not None and not is_installed(module)


class _Reader:
  """Reads plain values; of anything else its class is known, and what an instance holds."""

  def __init__(self, put: Callable[[str, Any], None]) -> None:
    self._put = put
    self._seen: dict[int, Any] = {}  # which keeps them, and so their identities

  def names(self, module: str, names: dict[str, Any]) -> Iterator[str]:
    for name, value in sorted(names.items()):
      if name.startswith('__'):
        continue
      if isinstance(value, type) and value.__module__ == module:
        for member, inner in sorted(vars(value).items()):
          if not member.startswith('__'):
            yield f'{name}.{member}={self._text(inner, 0)}'
      else:
        yield f'{name}={self._text(value, 0)}'

  def _text(self, value: Any, depth: int) -> str:
    kind = type(value)
    if kind in _PLAIN:
      return f'{kind.__name__} {states.text_of(value)}'
    if isinstance(value, (types.FunctionType, type)):
      return self._named(value)
    if isinstance(value, types.ModuleType):
      return 'module'
    if kind is np.ndarray and value.dtype.kind not in 'OV':
      return f'array {value.dtype.str} {array_digest(value)}'
    if id(value) in self._seen or depth > _DEEPEST:
      return kind.__name__
    self._seen[id(value)] = value
    if isinstance(value, (functools.partial, types.MethodType)) or is_of_user(kind):
      self._put(f'a {kind.__name__} in an installed package', value)
      return kind.__name__
    if isinstance(value, dict):
      return f'{kind.__name__}{self._rows(value, depth)}'
    if isinstance(value, (list, tuple)):
      return f'{kind.__name__}{[self._text(inner, depth + 1) for inner in list(value)]}'
    if isinstance(value, (set, frozenset)):
      return f'{kind.__name__}{sorted(self._text(inner, depth + 1) for inner in list(value))}'
    own = getattr(value, '__dict__', None)
    found = self._rows(own, depth) if isinstance(own, dict) else []
    return f'{kind.__module__}.{kind.__qualname__} {found}'

  def _rows(self, values: dict[Any, Any], depth: int) -> list[str]:
    return [
      f'{self._text(key, depth + 1)}: {self._text(inner, depth + 1)}'
      for key, inner in list(dict.items(values))
    ]

  def _named(self, value: Any) -> str:
    if is_of_user(value):
      self._put(f'{value.__module__}.{value.__qualname__} in an installed package', value)
    place = ''
    if type(value) is types.FunctionType:
      place = f'{value.__code__.co_filename}:{value.__code__.co_firstlineno}'
    return f'{value.__module__}.{value.__qualname__} {place}'
