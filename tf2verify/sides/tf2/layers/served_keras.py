"""Which Keras a port was verified under, and which one it is served by."""

import ast
import functools
import os
import sys
from collections.abc import Iterable
from typing import Any

from tf2verify.environment import installed, legacy_keras
from tf2verify.reference.graph_ops import reached
from tf2verify.sides.graphs.lines.source_lines import is_user_file
from tf2verify.sides.tf2.layers import layer_parts

# Classes of TF1's API: they come from tf-keras in any process, and do not exist in Keras 3.
_TF1_ONLY = ('legacy_tf_layers', 'legacy_cells')
# Where `track_tf1_style_variables` keeps the variables of a layer, TF 2.16 to 2.21.
_SHIM_STORE = '_tf1_style_var_store'
_OLD, _NEW, _TENSORFLOW = 'tf_keras', 'keras', 'tensorflow'
# Of modules; where code imports more, nothing is said of it.
_MOST = 200


def uses_keras_layers(layer: Any) -> bool:
  """Returns whether a port is or holds a layer of tf-keras, or one with weights made by Keras.

  A layer under `track_tf1_style_variables` does not count: Keras 3 has no such decorator, so
  that it fails there and does not compute something else.

  Args:
    layer: a layer or `tf.Module` that has been called.
  """
  return any(_is_of_keras(module) for module in layer_parts.modules_of(layer))


def _is_of_keras(module: Any) -> bool:
  homes = [cls.__module__.split('.') for cls in type(module).__mro__]
  if any(name in home for home in homes for name in _TF1_ONLY):
    return False
  if homes[0][0] == 'tf_keras':
    return True
  users_own = any(home[0] == 'tf_keras' for home in homes) and not hasattr(module, _SHIM_STORE)
  return users_own and bool(module._trainable_weights or module._non_trainable_weights)


def served_keras_note(layer: Any, case: Any = None) -> tuple[str, bool] | None:
  """Returns what to say of the Keras that was verified, and whether it is a blind spot.

  Args:
    layer: the port, after a call.
    case: which makes it; None without one.

  Returns:
    None where the Keras of production is the one verified, as tf-keras is that code imports by its
    own name, or no layer is of Keras. It is no
    blind spot where the user has set TF_USE_LEGACY_KERAS=1.
  """
  if legacy_keras.serves_keras_3():
    return None  # a layer of tf-keras is one by its own import
  serving = installed.version('keras')
  release = installed.minor(serving)
  if release is None or release < (3, 0) or not uses_keras_layers(layer):
    return None
  own = [type(module) for module in layer_parts.modules_of(layer)]
  if _is_keras2_anywhere([*own, *([] if case is None else [type(case)])]):
    return None
  verified = f'the port was verified under Keras 2 (tf-keras {installed.version("tf_keras")})'
  if legacy_keras.CHOSEN not in os.environ:
    return f'{verified}, as {legacy_keras.FLAG}=1 in the environment asks for', False
  return (
    f'{verified}; in production tf.keras is Keras 3 (keras {serving}) unless '
    f'{legacy_keras.FLAG}=1 is set there, and some of its layers compute different numbers',
    True,
  )


def _is_keras2_anywhere(classes: Iterable[type]) -> bool:
  """Returns whether code names tf-keras, and `keras` of TensorFlow nowhere.

  Its own import is Keras 2 in every process; `tf.keras` is the one that the process has chosen.

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
