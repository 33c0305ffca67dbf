"""Where Keras 3 got into the process before tf2verify could choose Keras 2.

`tf.keras`, `tf.losses`, `tf.compat.v1.layers`, ... are lazy loaders: each reads
TF_USE_LEGACY_KERAS when an attribute of it is first used, and never again.
`import tensorflow` alone resolves none of them. `import tensorflow.keras` by-passes
the loader and takes the first match on `tensorflow.__path__`.
Source: tensorflow/python/util/lazy_loader.py and tensorflow/__init__.py, TF 2.16 to 2.21.
"""

import ast
import dataclasses
import pathlib
import re
import sys
import sysconfig
import types
from collections.abc import Iterator

# The names under which TensorFlow's API modules hold a lazy loader of Keras.
_LOADER_NAMES = frozenset(
  ('keras', 'layers', 'losses', 'metrics', 'optimizers', 'initializers', 'rnn_cell')
)

# `tf.keras.x` and, where `tf` is tensorflow.compat.v1, `tf.layers.x` resolve a loader;
# `tf.keras` alone does not. `tf.losses` is Keras in v2 only, so that it proves nothing.
_KERAS_ATTRIBUTE = re.compile(
  r'(tf\w*|tensorflow)(\.compat\.v[12])?\.(keras|layers|nn\.rnn_cell)\.'
)
_KERAS_IMPORT = re.compile(r'tensorflow(\.compat\.v[12])?\.keras\b')


@dataclasses.dataclass(frozen=True)
class SourceLine:
  """One line of the user's code."""

  path: str
  number: int
  text: str


def keras_3_places() -> tuple[str, ...]:
  """The API names that are Keras 3 in this process, such as 'tf.keras', sorted."""
  places = set()
  for name, module in _api_modules():
    for attribute in _LOADER_NAMES & vars(module).keys():
      value = vars(module)[attribute]  # not getattr(), which would resolve a lazy loader
      if isinstance(value, types.ModuleType) and _is_keras_3(value):
        places.add(f'{_public_name(name)}.{attribute}')
  return tuple(sorted(places))


def first_keras_line() -> SourceLine | None:
  """The first line of the user's own code that uses Keras ahead of tf2verify.

  A search of the sources, for a message only: it sees imports and attribute chains that
  run at import time, not a use of Keras in a function or in an installed package.

  Returns:
    The line, or None when none was found.
  """
  for name, module in list(sys.modules.items()):
    path = vars(module).get('__file__') if isinstance(module, types.ModuleType) else None
    if not isinstance(path, str) or not path.endswith('.py') or _is_installed(path):
      continue
    if name.split('.')[0] == 'tf2verify':
      continue
    try:
      source = pathlib.Path(path).read_text(encoding='utf-8')
      number = _first_keras_number(ast.parse(source))
    except (OSError, SyntaxError, ValueError):
      continue
    if number is not None:
      return SourceLine(path, number, source.splitlines()[number - 1].strip())
  return None


def _api_modules() -> Iterator[tuple[str, types.ModuleType]]:
  for name, module in list(sys.modules.items()):
    # tensorflow.python holds TensorFlow's own old copy of Keras, which is not tf.keras.
    inside = name == 'tensorflow' or name.startswith('tensorflow.')
    if inside and not name.startswith('tensorflow.python') and isinstance(module, types.ModuleType):
      yield name, module


def _is_keras_3(module: types.ModuleType) -> bool:
  name = vars(module).get('__name__') or ''
  file = vars(module).get('__file__') or ''
  return name.startswith('keras._tf_keras') or '_tf_keras' in pathlib.PurePath(file).parts


def _public_name(module_name: str) -> str:
  return 'tf' + module_name.removeprefix('tensorflow').removeprefix('._api.v2')


def _is_installed(path: str) -> bool:
  parts = pathlib.PurePath(path).parts
  if 'site-packages' in parts or 'dist-packages' in parts:
    return True
  return pathlib.PurePath(path).is_relative_to(sysconfig.get_paths()['stdlib'])


def _first_keras_number(tree: ast.Module) -> int | None:
  numbers = []
  for node in _run_at_import(tree):
    if any(name.split('.')[0] == 'tf2verify' for name in _imported(node)):
      break  # what follows has not run yet
    if _names_keras(node):
      numbers.append(node.lineno)
  return min(numbers, default=None)


def _run_at_import(node: ast.AST) -> Iterator[ast.stmt | ast.expr]:
  for child in ast.iter_child_nodes(node):
    if isinstance(child, ast.stmt | ast.expr):
      yield child
    if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
      continue
    yield from _run_at_import(child)


def _names_keras(node: ast.stmt | ast.expr) -> bool:
  if isinstance(node, ast.Attribute):
    return _KERAS_ATTRIBUTE.match(ast.unparse(node)) is not None
  return any(_KERAS_IMPORT.match(name) for name in _imported(node))


def _imported(node: ast.stmt | ast.expr) -> tuple[str, ...]:
  if isinstance(node, ast.Import):
    return tuple(alias.name for alias in node.names)
  if isinstance(node, ast.ImportFrom) and not node.level:
    return (node.module or '',)
  return ()
