"""How a journal names a file: alike on every machine and from every folder."""

import dataclasses
import os
from collections.abc import Sequence

from tf2verify.environment.case_files import case_files
from tf2verify.errors import UsageError
from tf2verify.safe_text import safe_line

_REPOSITORY = '.git'
_PROJECT = ('pyproject.toml', 'setup.py', 'setup.cfg', 'MODULE.bazel', 'WORKSPACE')


@dataclasses.dataclass
class Place:
  """A file or module that may declare cases."""

  # The path from the folder of the repository, or of the project, to the file; the absolute path
  # where it is in neither; the name of a module.
  key: str
  target: str  # what to run: an absolute path, or the name of a module
  wanted: set[str]  # names of the cases that were asked for; empty for all
  named: bool  # whether it was named itself, and not found in a folder

  @property
  def is_file(self) -> bool:
    """Whether it is a file and no module."""
    return os.path.isabs(self.target)


def key_of(path: str) -> str:
  """Returns the name of a file that does not depend on the folder it is looked at from."""
  path = os.path.abspath(path)
  root = root_of(path)
  name = path if root is None else os.path.relpath(path, root).replace(os.sep, '/')
  return safe_line(name, longest=None)


def root_of(path: str) -> str | None:
  """Returns the folder of the repository, or of the project, that a file is in; None without."""
  folders: list[str] = []
  folder = os.path.dirname(path)
  while not folders or folder != folders[-1]:
    folders.append(folder)
    folder = os.path.dirname(folder)
  for names in ((_REPOSITORY,), _PROJECT):
    for folder in folders:
      if any(os.path.exists(os.path.join(folder, name)) for name in names):
        return folder
  return None


def places_of(targets: Sequence[str]) -> list[Place]:
  """Returns the files and modules that arguments stand for, each once.

  Raises:
    UsageError: there is no such file, or two files would have one name.
  """
  found: dict[str, Place] = {}
  for target in targets:
    argument, _, case = target.partition('::')
    for name in case_files(argument):
      is_file = os.path.isfile(name)
      place = os.path.abspath(name) if is_file else name
      identity = os.path.realpath(name) if is_file else name
      known = found.get(identity)
      wanted = {case} if case else set()
      if known is None:
        key = key_of(name) if is_file else name
        found[identity] = Place(key, place, wanted, name == argument)
      else:
        known.wanted = known.wanted | wanted if known.wanted and wanted else set()
        known.named = known.named or name == argument
  by_key: dict[str, Place] = {}
  for one in found.values():
    other = by_key.setdefault(one.key, one)
    if other is not one:
      raise UsageError(
        f'{other.target} and {one.target} are both {one.key} in their repositories; give each '
        'repository a journal of its own'
      )
  return list(found.values())
