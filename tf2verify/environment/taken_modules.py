"""Modules of another folder that have the names of those beside a case.

Python keeps one module of each name: where two folders each have a `port.py` and one process runs
the cases of both, as pytest does, the second case silently gets the first one's port.
"""

import os
import sys

from tf2verify.errors import CaseDefinitionError


def check_taken_modules(module_name: str) -> None:
  """Checks that a case uses the modules of its own folder, where it would alone.

  Args:
    module_name: of the module that defines the case.

  Raises:
    CaseDefinitionError: one of them was imported before from another folder.
  """
  path = getattr(sys.modules.get(module_name), '__file__', None)
  if path is None:
    return
  folder = os.path.dirname(os.path.abspath(path))
  places = [os.path.abspath(place or os.getcwd()) for place in sys.path]
  for name in sorted(_used_by(module_name, folder)):
    own, loaded = _beside(folder, name), getattr(sys.modules.get(name), '__file__', None)
    if own is None or loaded is None or os.path.realpath(loaded) == os.path.realpath(own):
      continue
    other = os.path.abspath(loaded)
    is_package = os.path.basename(other) == '__init__.py'
    other = os.path.dirname(os.path.dirname(other) if is_package else other)
    if folder in places and (other not in places or places.index(folder) < places.index(other)):
      raise CaseDefinitionError(
        f'the module {name} that {os.path.basename(path)} uses is {loaded}, which this process had '
        f'imported before, and not {own} beside it: Python keeps one module of each name. So '
        'another model would be verified. Rename one of the two, make packages of both folders '
        '(an __init__.py in each, imports with a dot), or run each folder in a process of its own; '
        '`python -m tf2verify run` tells them apart'
      )


def _used_by(module_name: str, folder: str) -> set[str]:
  """Returns the modules of a folder whose contents a module uses, itself or through others."""
  found: set[str] = set()
  pending = [module_name]
  while pending:
    module = sys.modules.get(pending.pop())
    for value in list(vars(module).values()) if module is not None else ():
      name = getattr(value, '__name__' if type(value) is type(sys) else '__module__', None)
      name = name.partition('.')[0] if isinstance(name, str) else module_name
      if name != module_name and name not in found and _beside(folder, name) is not None:
        found.add(name)
        pending.append(name)
  return found


def _beside(folder: str, name: str) -> str | None:
  """Returns the file of a module in a folder; None if there is none."""
  files = (os.path.join(folder, f'{name}.py'), os.path.join(folder, name, '__init__.py'))
  return next((file for file in files if os.path.isfile(file)), None)
