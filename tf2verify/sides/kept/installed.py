"""What belongs to installed packages, whose version stands for their code."""

import functools
import hashlib
import importlib.metadata
import os
import site
import sys
import sysconfig
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

import tf2verify

_OWN = os.path.dirname(os.path.abspath(tf2verify.__file__)) + os.sep
# Packages whose modules are looked through for what was put in the place of their own.
_LOOKED_THROUGH = ('tensorflow', 'keras', 'tf_keras', 'tf_slim', 'numpy')
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
# Differ from process to process, or are made by use: none of them is a setting.
_PASSING = frozenset(
  (
    '__annotations__',
    '__builtins__',
    '__cached__',
    '__doc__',
    '__file__',
    '__path__',
    '__slotnames__',  # made by the first copy of an object
    '__warningregistry__',
    'FLAGS',  # made when a flag is first read
    '_END_TIME_OF_LAST_WRITE',  # of a checkpoint
    '_api_export_symbol_id',  # Keras 3's, by the address of a class
    '_non_mixed_precision_session_created',
    '_plugin_dir',
    '_s',
    'operator',  # of loops over sets, and so is `tensor_oper`
    'tensor_oper',
  )
)


@functools.cache
def _folders() -> tuple[str, ...]:
  found = {sysconfig.get_path(name) for name in ('stdlib', 'platstdlib', 'purelib', 'platlib')}
  found |= {*site.getsitepackages(), site.getusersitepackages()}
  return tuple(os.path.abspath(folder) + os.sep for folder in found if folder)


@functools.lru_cache(maxsize=8192)
def is_installed_file(path: str) -> bool:
  """Returns whether a file is of the standard library, an installed package or tf2verify."""
  path = os.path.abspath(path)
  return path.startswith((*_folders(), _OWN)) or f'{os.sep}site-packages{os.sep}' in path


def is_installed(module: types.ModuleType | None) -> bool:
  """Returns whether a module is; one without a file is Python's own, but for `__main__`."""
  if module is None:
    return False
  path = vars(module).get('__file__')
  if path is None:
    folders = list(vars(module).get('__path__', ()) or ())
    if folders:  # a package without __init__.py
      return all(is_installed_file(folder) for folder in folders)
    return vars(module).get('__name__') != '__main__'
  return is_installed_file(path)


def is_known(function: types.FunctionType) -> bool:
  """Returns whether an installed module has a function by its name.

  TensorFlow wraps what another module has made, `tf.nn.tanh`, and leaves it the name of that one.
  """
  module = sys.modules.get(function.__module__ or '')
  if not is_installed(module):
    return False
  if at(module, function.__qualname__) is function:
    return True
  wrapped: Any = function
  while wrapped is not None:
    code = getattr(wrapped, '__code__', None)
    if code is None or not is_installed_file(code.co_filename):
      return False
    wrapped = getattr(wrapped, '__wrapped__', None)
  name, root = function.__name__, function.__module__.partition('.')[0] + '.'
  return any(
    vars(other).get(name) is function
    for other_name, other in list(sys.modules.items())
    if other_name.startswith(root) and isinstance(other, types.ModuleType) and is_installed(other)
  )


@functools.cache
def own_digest() -> str:
  """Returns the digest of tf2verify itself, whose version stays while it is worked on."""
  found = hashlib.sha256()
  for folder, names, files in os.walk(_OWN):
    names.sort()
    for name in sorted(files):
      if name.endswith('.py'):
        found.update(f'{os.path.relpath(folder, _OWN)}/{name}\0'.encode())
        with open(os.path.join(folder, name), 'rb') as file:
          found.update(file.read())
  return found.hexdigest()


def versions() -> tuple[tuple[str, str], ...]:
  """Returns the version of everything that is installed, with a digest of the list of its files.

  That list has the digest of each file: one's own package is often installed again in one version.
  """
  found = set()
  for dist in importlib.metadata.distributions():
    files = (dist.read_text('RECORD') or '').encode('utf-8', 'surrogatepass')
    digest = hashlib.sha256(files).hexdigest()
    found.add((dist.metadata['Name'] or '?', f'{dist.version or "?"} {digest}'))
  return tuple(sorted(found))


def file_stamp(path: str | None) -> str:
  """Returns size and time of a file; '' where there is none."""
  try:
    found = os.stat(path or '')
  except OSError:
    return ''
  return f'{found.st_size} {found.st_mtime_ns}'


def is_looked_through(module: str) -> bool:
  """Returns whether a module is of a package whose names are compared, whatever reads them."""
  return module.partition('.')[0] in _LOOKED_THROUGH


def bindings(only: Collection[str] = ()) -> Mapping[str, str]:
  """Returns a digest of what the names of each loaded module of TensorFlow and numpy stand for.

  Whoever puts a function, or another number, in the place of one of theirs changes it.

  Args:
    only: the modules to look at; empty for all that are loaded.
  """
  texts: dict[int, str] = {}  # what one function has several names for is described once
  found = {}
  for name, names in _looked_through(only):
    rows = [f'{known}={_described(value, texts)}' for known, value in names.items()]
    rows.sort()
    rows.append(file_stamp(vars(sys.modules[name]).get('__file__')))
    text = '\n'.join(rows).encode('utf-8', 'surrogatepass')
    found[name] = hashlib.sha256(text).hexdigest()
  return found


def held_bindings() -> Mapping[str, Mapping[str, Any]]:
  """Returns what these names stand for now, to be compared later in this process."""
  return dict(_looked_through())


def rebound(before: Mapping[str, Mapping[str, Any]]) -> list[str]:
  """Returns the names that stand for something else since; what is new is not among them."""
  found = []
  for module, names in _looked_through():
    known = before.get(module, {})
    for name, value in names.items():
      old = known.get(name, value)
      if old is not value and _short(old) != _short(value):
        found.append(f'{module}.{name}')
  return found


def _looked_through(only: Collection[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields the loaded modules, each with its names and those of the classes that it defines."""
  for module, found in sorted(sys.modules.items()):
    if only and module not in only:
      continue
    if not is_looked_through(module) or not isinstance(found, types.ModuleType):
      continue
    if module.endswith('_pb2'):
      continue  # messages, whose code is made by protobuf
    names = dict(types.ModuleType.__getattribute__(found, '__dict__'))
    for name, value in list(names.items()):
      if name in _PASSING:
        del names[name]
      elif isinstance(value, type) and value.__module__ == module:
        for member, inner in list(vars(value).items()):
          if member not in _PASSING:
            names[f'{name}.{member}'] = inner
    yield module, names


def _described(value: Any, texts: dict[int, str]) -> str:
  if type(value) is not types.FunctionType:
    return _short(value)
  if id(value) not in texts:
    texts[id(value)] = _short(value)
  return texts[id(value)]


def _short(value: Any) -> str:
  kind = type(value)
  if kind is types.FunctionType:
    code = value.__code__
    defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    given = [v if type(v) in _PLAIN else type(v).__name__ for v in defaults]
    return f'{code.co_filename}:{code.co_firstlineno}:{code.co_name}{given}'
  if kind in _PLAIN:
    return f'{kind.__name__} {value!r}'
  if isinstance(value, type):
    return f'class {value.__module__}.{value.__qualname__}'
  if kind in (staticmethod, classmethod):
    return f'{kind.__name__} {_short(value.__func__)}'
  if kind is property:
    return f'property {_short(value.fget)}'
  if kind is types.BuiltinFunctionType:
    return f'builtin {value.__module__}.{value.__qualname__}'
  if issubclass(kind, types.ModuleType):
    return 'module'  # loaded when it is first used, or not yet
  return kind.__name__


def file_digest(path: str | None) -> str:
  """Returns the SHA-256 of a file; '' where it cannot be read."""
  if not path:
    return ''
  try:
    with open(path, 'rb') as file:
      return hashlib.sha256(file.read()).hexdigest()
  except OSError:
    return ''


def is_made_elsewhere(value: type) -> bool:
  """Returns whether a class is not in the module that it names.

  It is what a package has made of the user's class, such as a subclass by a decorator.
  """
  return at(sys.modules.get(value.__module__), value.__qualname__) is not value


def at(module: types.ModuleType | None, qualified: str) -> Any:
  """Returns what a qualified name stands for in a module; None where that is nothing."""
  found: Any = module
  for name in qualified.split('.'):
    found = vars(found).get(name) if hasattr(found, '__dict__') else None
  return found


def is_ufunc(value: np.ufunc) -> bool:
  """Returns whether a universal function has a name in numpy or another package."""
  homes = [np, *(sys.modules.get(name) for name in ('scipy.special', 'ml_dtypes'))]
  return any(getattr(home, value.__name__, None) is value for home in homes)
