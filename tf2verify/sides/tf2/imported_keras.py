"""Whether code has tf-keras by its own import: that is Keras 2 in every process.

`tf.keras` is the Keras that the process has chosen, tf-keras or Keras 3.
"""

import ast
import functools
import sys
from collections.abc import Iterable

from tf2verify.reference.graph_ops import reached
from tf2verify.sides.graphs.source_lines import is_user_file

_OLD, _NEW, _TENSORFLOW = 'tf_keras', 'keras', 'tensorflow'
# Of modules; where code imports more, nothing is said of it.
_MOST = 200


def is_keras2_anywhere(classes: Iterable[type]) -> bool:
  """Returns whether code names tf-keras, and `keras` of TensorFlow nowhere.

  Args:
    classes: of the case and of the port's layers; modules of the user's that theirs import are
      read as well.
  """
  homes = dict.fromkeys(cls.__module__ for one in classes for cls in one.__mro__)
  modules = reached((home for home in homes if _path(home)), _imported)
  if not 0 < len(modules) <= _MOST:
    return False
  found = [_named(_path(name))[0] for name in modules]
  return any(_OLD in names for names in found) and not any(_NEW in names for names in found)


def _path(module: str) -> str:
  """Returns the file of a module of the user's; '' for others."""
  path = str(getattr(sys.modules.get(module), '__file__', None) or '')
  return path if path and is_user_file(path) else ''


def _imported(module: str) -> list[str]:
  """Returns the user's modules that one imports."""
  package = getattr(sys.modules[module], '__package__', None) or ''
  found = []
  for level, path in _named(_path(module))[1]:
    above = package.split('.')[: package.count('.') + 2 - level] if level else []
    names = [*above, *filter(None, path.split('.'))]
    # What is imported may be a module, or something of one.
    found += ['.'.join(names[:end]) for end in range(1, len(names) + 1)]
  return [name for name in dict.fromkeys(found) if _path(name)]


@functools.lru_cache(maxsize=512)
def _named(path: str) -> tuple[frozenset[str], tuple[tuple[int, str], ...]]:
  """Returns which Keras a file names, tf-keras or TensorFlow's, and the paths that it imports.

  Each with how many levels up these begin.
  """
  try:
    with open(path, encoding='utf-8') as file:
      nodes = list(ast.walk(ast.parse(file.read())))
  except (OSError, SyntaxError, ValueError):
    return frozenset((_NEW,)), ()  # what cannot be read may have it
  imports = [(0, alias.name) for n in nodes if isinstance(n, ast.Import) for alias in n.names]
  for node in nodes:
    if isinstance(node, ast.ImportFrom):
      home = f'{node.module}.' if node.module else ''
      imports += [(node.level, f'{home}{alias.name}') for alias in node.names]
  parts = [name.split('.') for level, name in imports if not level]
  is_new = any({_TENSORFLOW, _NEW} <= set(one) for one in parts)
  is_new |= any(isinstance(node, ast.Attribute) and node.attr == _NEW for node in nodes)
  is_old = any(one[0] == _OLD for one in parts)
  names = [name for name, found in ((_OLD, is_old), (_NEW, is_new)) if found]
  return frozenset(names), tuple(imports)
