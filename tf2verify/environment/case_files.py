"""Which files a command-line argument names, and what they are; nothing is imported."""

import ast
import os
import sys

from tf2verify.errors import UsageError

_PREFIX = 'test_'
_SUFFIXES = ('_test.py', '_case.py')


def _is_case_file(name: str) -> bool:
  return name.endswith('.py') and (name.startswith(_PREFIX) or name.endswith(_SUFFIXES))


def case_files(place: str) -> list[str]:
  """Returns the files that an argument stands for, in order.

  Args:
    place: a file, a folder (its test_*.py, *_test.py and *_case.py, also below) or the
      name of a module, which stands for itself.

  Raises:
    UsageError: there is no such file, or the folder has none of these names.
  """
  if os.path.isfile(place):
    return [place]
  if not os.path.isdir(place):
    if place.endswith('.py') or os.sep in place:
      raise UsageError(f'{place} does not exist; give a file, a folder or a module name')
    return [place]
  found = []
  for folder, folders, names in os.walk(place):
    folders[:] = sorted(f for f in folders if not f.startswith('.') and f != '__pycache__')
    found += [os.path.join(folder, name) for name in sorted(names) if _is_case_file(name)]
  if not found:
    raise UsageError(
      f'{place} has no file named test_*.py, *_test.py or *_case.py; name the file that contains '
      'the cases'
    )
  return found


def runs_its_tests(path: str) -> bool:
  """Returns whether `python FILE` runs the tests of a file: by a `main()` of a test framework.

  That is `tf2verify.main()`, `absltest.main()`, ... outside of functions and classes; or
  `main()`, where the file has imported it. A file of a package is none: Python does not find the
  package where such a file is started by its path.
  """
  if os.path.exists(os.path.join(os.path.dirname(path), '__init__.py')):
    return False
  try:
    with open(path, 'rb') as file:
      module = ast.parse(file.read())
  except (OSError, SyntaxError, ValueError):
    return False
  definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
  nodes = [
    node
    for statement in module.body
    if not isinstance(statement, definitions)
    for node in ast.walk(statement)
  ]
  imported = any(
    isinstance(node, ast.ImportFrom) and 'main' in [one.asname or one.name for one in node.names]
    for node in nodes
  )
  calls = [node.func for node in nodes if isinstance(node, ast.Call)]
  return any(
    (isinstance(call, ast.Attribute) and call.attr == 'main')
    or (isinstance(call, ast.Name) and call.id == 'main' and imported)
    for call in calls
  )


def shown_path(path: str) -> str:
  """Returns a path as one would type it in the working folder."""
  below = os.path.relpath(path)
  return path if below.startswith('..') else below


def place_of(cls: type) -> str:
  """Returns the file of a class, or its module where it has none."""
  path = getattr(sys.modules.get(cls.__module__), '__file__', None)
  return cls.__module__ if path is None else shown_path(path)
