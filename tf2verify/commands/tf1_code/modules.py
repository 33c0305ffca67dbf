"""Files of TF1 code: how they are imported, and what they import of the same project."""

import ast
import keyword
import os
import unicodedata
from collections.abc import Iterator

from tf2verify.errors import UsageError

# So that a case for one function does not read a whole collection of models.
_MOST_MODULES = 40


def module_name(path: str) -> str:
  """Returns the name that a file is imported by: dotted where it is part of a package.

  Raises:
    UsageError: it does not end in .py; or a name has a dot, which Python takes for the separator
      of packages.
  """
  if not path.endswith('.py'):
    raise UsageError(
      f'{path} cannot be imported: files of Python modules end in .py; rename it, or give the '
      'file that has the function'
    )
  root = _root(path)
  parts = os.path.relpath(os.path.abspath(path), root).removesuffix('.py').split(os.sep)
  parts = parts[:-1] if parts[-1] == '__init__' else parts
  for part in parts:
    if '.' in part:
      raise UsageError(
        f'{path} cannot be imported: Python takes the dot in {part} for the separator of packages; '
        f'rename it, such as to {part.replace(".", "_")}'
      )
  return '.'.join(parts)


def can_be_written(module: str) -> bool:
  """Returns whether `from MODULE import` takes a name; `importlib.import_module` takes more."""
  return all(
    part.isidentifier()
    and not keyword.iskeyword(part)
    # Python normalizes the names in code, and not those of files.
    and unicodedata.normalize('NFKC', part) == part
    for part in module.split('.')
  )


def shown_file(path: str, beside: str) -> str:
  """Returns a file as seen from the working folder, or else from where its project is imported.

  Args:
    path: of the file.
    beside: of the module that the case is for.
  """
  path = os.path.abspath(path)
  below = os.path.relpath(path)
  shown = os.path.relpath(path, _root(beside)) if below.startswith('..') else below
  return ' '.join(shown.split())  # a line break in a name would end a comment


def imported_files(path: str, tree: ast.Module) -> dict[str, ast.Module]:
  """Returns the files that a module imports of its own project, directly or not, by path.

  One that cannot be read or parsed is left out: it says so itself when it is imported.
  """
  start = os.path.abspath(path)
  found: dict[str, ast.Module] = {}
  waiting = [(start, tree)]
  while waiting:
    at, module = waiting.pop(0)
    for file in _imports_of(at, module, _root(start)):
      if file == start or file in found or len(found) == _MOST_MODULES:
        continue
      try:
        with open(file, 'rb') as opened:
          found[file] = ast.parse(opened.read())
      except (OSError, SyntaxError, ValueError):
        continue
      waiting.append((file, found[file]))
  return found


def _root(path: str) -> str:
  """Returns the folder that the package of a file is in, or the file itself if it is in none."""
  folder = os.path.dirname(os.path.abspath(path))
  while os.path.isfile(os.path.join(folder, '__init__.py')) and folder != os.path.dirname(folder):
    folder = os.path.dirname(folder)
  return folder


def _imports_of(path: str, tree: ast.Module, root: str) -> Iterator[str]:
  folder = os.path.dirname(path)
  # Programs start in the working folder, and Python 2 looked beside the module as well.
  places = list(dict.fromkeys((root, folder, os.getcwd())))
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        yield from _files(places, alias.name.split('.'))
    elif isinstance(node, ast.ImportFrom):
      words = node.module.split('.') if node.module else []
      above = places
      if node.level:
        above = [os.path.normpath(os.path.join(folder, *['..'] * (node.level - 1)))]
      yield from _files(above, words)
      for alias in node.names:
        yield from _files(above, [*words, alias.name])


def _files(places: list[str], words: list[str]) -> Iterator[str]:
  """Yields the file of a module; the first place that has it counts."""
  for place in places if words else ():
    base = os.path.join(place, *words)
    for file in (f'{base}.py', os.path.join(base, '__init__.py')):
      if os.path.isfile(file):
        yield file
        return
