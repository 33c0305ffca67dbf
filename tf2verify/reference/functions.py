"""The user's functions: by which names, of which files."""

import hashlib
import importlib
import os
import sys
import sysconfig
import types
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Set

from .errors import RecorderError
from .source_lines import is_own_file
from .user_code import user_code


def load_function(name: str, option: str) -> Callable[..., Any]:
  """Imports `package.module:function`.

  Raises:
    RecorderError: the name is wrong, or the import fails.
  """
  module, _, attribute = name.partition(':')
  if not module or not attribute:
    raise RecorderError(
      '--{} {!r} names no function; write package.module:function, as in my_model:build'.format(
        option, name
      )
    )
  if os.getcwd() not in sys.path:
    sys.path.insert(0, os.getcwd())
  if module.endswith('.py'):
    raise RecorderError(
      '--{0} {1!r} names a file; name the module: --{0} {2}:{3}'.format(
        option, name, module[:-3].replace(os.sep, '.'), attribute
      )
    )
  with user_code('--{} {}: importing {}'.format(option, name, module)):
    found: Any = importlib.import_module(module)
  for part in attribute.split('.'):
    if not hasattr(found, part):
      known = [n for n, v in vars(found).items() if callable(v) and not n.startswith('_')]
      raise RecorderError(
        '--{} {}: {} has no {!r}; it has {}'.format(
          option, name, module, part, ', '.join(sorted(known)[:12]) or 'no function'
        )
      )
    found = getattr(found, part)
  if not callable(found):
    raise RecorderError(
      '--{} {} is of type {}, which cannot be called'.format(option, name, type(found).__name__)
    )
  return found  # type: ignore[no-any-return]


def function_name(function: Any) -> str:
  """Returns `module:name` of a function, of a script its file for the module."""
  module = getattr(function, '__module__', None) or '?'
  if module == '__main__':
    path = getattr(sys.modules['__main__'], '__file__', None) or '__main__'
    module = os.path.splitext(os.path.basename(path))[0]
  name = getattr(function, '__qualname__', None) or type(function).__name__
  return '{}:{}'.format(module, name)


def source_files(functions: Iterable[Any], known: FrozenSet[str]) -> List[Dict[str, str]]:
  """Returns path and digest of the user's files that the functions come from.

  Those of the modules that are reached from the functions' own by what these name, and
  of the modules that were imported since: below the working folder, or next to one.
  """
  modules: List[Any] = [sys.modules.get(getattr(f, '__module__', None) or '') for f in functions]
  folders = {os.path.dirname(os.path.abspath(m.__file__)) for m in modules if _is_file(m)}
  folders.add(os.getcwd())
  pending = modules + [m for name, m in list(sys.modules.items()) if name not in known]
  found: Dict[str, str] = {}
  seen: Set[int] = set()
  while pending:
    module = pending.pop()
    if id(module) in seen or not _is_file(module):
      continue
    seen.add(id(module))
    path = os.path.abspath(module.__file__)
    folder = next((f for f in sorted(folders) if path.startswith(f + os.sep)), None)
    installed = any(word in path.split(os.sep) for word in ('site-packages', 'dist-packages'))
    ours = module.__name__.split('.')[0] == 'tf2verify' or is_own_file(path)
    if folder is None or installed or ours or path.startswith(sysconfig.get_path('stdlib')):
      continue
    below = os.getcwd() if path.startswith(os.getcwd() + os.sep) else folder
    with open(path, 'rb') as file:
      found[os.path.relpath(path, below)] = hashlib.sha256(file.read()).hexdigest()
    for value in list(vars(module).values()):
      owner = value.__name__ if isinstance(value, types.ModuleType) else _module_of(value)
      pending.append(sys.modules.get(owner))
  return [{'path': path, 'sha256': found[path]} for path in sorted(found)]


def _is_file(module: Any) -> bool:
  path = getattr(module, '__file__', None)
  return isinstance(path, str) and path.endswith('.py') and os.path.isfile(path)


def _module_of(value: Any) -> str:
  name = getattr(value, '__module__', None) if callable(value) else None
  return name if isinstance(name, str) else ''
