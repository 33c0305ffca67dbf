"""Which of the user's modules have changed on disk, and which have to be imported again for it."""

import ast
import os
import sys
import types
from collections.abc import Iterable, Mapping

from tf2verify.reference.graph_ops import reached
from tf2verify.sides.kept.installed import file_digest, is_installed

Modules = Mapping[str, types.ModuleType]


class WatchedFiles:
  """Files, each with what was seen of it last."""

  def __init__(self) -> None:
    self._seen: dict[str, tuple[tuple[int, int] | None, str]] = {}

  def __len__(self) -> int:
    return len(self._seen)

  def watch(self, paths: Iterable[str]) -> None:
    """Looks at these files too, from now on."""
    for path in paths:
      if path not in self._seen:
        self._seen[path] = _stamp(path), file_digest(path)

  def are_changed(self) -> bool:
    """Returns whether `changed` would return a file."""
    return any(
      _stamp(path) != stamp and file_digest(path) != digest
      for path, (stamp, digest) in self._seen.items()
    )

  def changed(self) -> tuple[str, ...]:
    """Returns the files whose text is another since they were last looked at."""
    found = []
    for path, (stamp, digest) in list(self._seen.items()):
      now = _stamp(path)
      if now != stamp:
        text = file_digest(path)
        self._seen[path] = now, text
        if text != digest:
          found.append(path)
    return tuple(found)


def user_modules(of_cases: Modules) -> dict[str, types.ModuleType]:
  """Returns the loaded modules that are the user's: those of the cases, and any other."""
  others = {
    name: module
    for name, module in list(sys.modules.items())
    if name != '__main__' and path_of(module) and not is_installed(module)
  }
  return {**others, **of_cases}


def path_of(module: types.ModuleType | None) -> str:
  """Returns the source file of a module; '' without one."""
  path = getattr(module, '__file__', None)
  return os.path.abspath(path) if isinstance(path, str) and path.endswith('.py') else ''


def outdated(modules: Modules, files: Iterable[str]) -> frozenset[str]:
  """Returns the names of the modules of some files, and of all that import them."""
  wanted = set(files)
  found = {name for name, module in modules.items() if path_of(module) in wanted}
  imports = {name: _imports(name, module, modules) for name, module in modules.items()}
  return frozenset(
    reached(found, lambda one: [name for name, known in imports.items() if one in known])
  )


def _imports(name: str, module: types.ModuleType, modules: Modules) -> set[str]:
  """Returns which of some modules the source of one names in an import."""
  try:
    with open(path_of(module), 'rb') as file:
      tree = ast.parse(file.read())
  except (OSError, SyntaxError, ValueError):
    return set(modules)  # nobody knows
  package = (getattr(module, '__package__', None) or '').split('.')
  found: set[str] = set()
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        found |= _with_packages(alias.name)
    elif isinstance(node, ast.ImportFrom):
      base = '.'.join(package[: len(package) - node.level + 1]) if node.level else ''
      home = '.'.join(part for part in (base, node.module or '') if part)
      found |= _with_packages(home) | {f'{home}.{alias.name}' for alias in node.names}
  return found & modules.keys() - {name}


def _with_packages(name: str) -> set[str]:
  parts = name.split('.')
  return {'.'.join(parts[:count]) for count in range(1, len(parts) + 1)}


def _stamp(path: str) -> tuple[int, int] | None:
  try:
    found = os.stat(path)
  except OSError:
    return None
  return found.st_mtime_ns, found.st_size
