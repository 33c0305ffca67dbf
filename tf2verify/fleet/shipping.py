"""The files that another machine needs to run cases, and the paths that they have there."""

import dataclasses
import fnmatch
import os
import re
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tf2verify.errors import UsageError
from tf2verify.fleet.places import Place, root_of

# The two folders that are shipped; the user's are `0`, … in the second.
OWN, CODE = 'tf2verify', 'tf2verify_shipped_code'
IGNORE_FILE = '.rayignore'
_IGNORE_FILES = (IGNORE_FILE, '.gitignore')  # Ray would follow them a second time
_LEFT_OUT = (
  '.git',
  '.hg',
  '.svn',
  '.venv',
  'venv',
  '__pycache__',
  'node_modules',
  '.tox',
  '.nox',
  '.mypy_cache',
  '.pytest_cache',
  '.ruff_cache',
)
_ENVIRONMENT = 'pyvenv.cfg'  # is in every virtual environment
# Of what Ray keeps: RAY_max_grpc_message_size and its own limit on packages are 512 MiB.
LARGEST = 500 * 2**20
_SHOWN_FOLDERS = 5
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def roots_of(places: Sequence[Place]) -> tuple[str, ...]:
  """Returns the folders to ship: those of the repositories that cases are in.

  For a file in no repository and no project, the working folder if the file is below it,
  else the file's own; for a module, that of the working folder.
  """
  here = os.getcwd()
  found = []
  for place in places:
    if not place.is_file:
      found.append(root_of(os.path.join(here, place.target)) or here)
      continue
    folder = os.path.dirname(place.target)
    below = f'{folder}/'.startswith(here.rstrip('/') + '/')
    found.append(root_of(place.target) or (here if below else folder))
  unique = sorted(dict.fromkeys(found))
  return tuple(one for one in unique if not any(_is_below(one, other) for other in unique))


def _is_below(path: str, folder: str) -> bool:
  return path != folder and path.startswith(folder.rstrip('/') + '/')


def stage(roots: Sequence[str], folder: str, without: Iterable[str] = ()) -> None:
  """Fills a folder with links to all that is shipped: this package, and the user's folders.

  Left out are version control, virtual environments, caches, what `.rayignore` at the top
  of a root names (a path or a glob a line), and some paths more.

  Args:
    roots: as of `roots_of`.
    folder: an empty one.
    without: absolute paths of files that are not shipped.

  Raises:
    UsageError: it would be too much.
  """
  left_out = frozenset(without)
  os.mkdir(os.path.join(folder, CODE))
  for source, name in ((_OWN_FOLDER, OWN), *_named(roots, CODE)):
    sizes: dict[str, int] = {}
    for path, size in _files(source, left_out):
      below = os.path.relpath(path, source)
      top = below.split(os.sep)[0]
      sizes[top] = sizes.get(top, 0) + size
      if sum(sizes.values()) > LARGEST:
        raise UsageError(_too_large(source, sizes))
      link = os.path.join(folder, name, below)
      os.makedirs(os.path.dirname(link), exist_ok=True)
      os.symlink(path, link)


def _named(roots: Sequence[str], code: str) -> list[tuple[str, str]]:
  return [(root, f'{code}/{number}') for number, root in enumerate(roots)]


def shipped_code(path: Sequence[str]) -> str:
  """Returns where the user's folders are.

  Args:
    path: of modules, to which Ray adds the folders that it has unpacked.

  Raises:
    FileNotFoundError: Ray has unpacked nothing.
  """
  for entry in path:
    if os.path.isdir(os.path.join(entry, CODE)):
      return os.path.join(os.path.abspath(entry), CODE)
  raise FileNotFoundError(f'{CODE} is in none of {", ".join(path)}')


def _too_large(root: str, sizes: Mapping[str, int]) -> str:
  largest = sorted(sizes, key=lambda name: -sizes[name])[:_SHOWN_FOLDERS]
  named = ', '.join(f'{name} {sizes[name] / 2**20:.0f} MiB' for name in largest)
  return (
    f'{root} would be shipped to the nodes of Ray, and is more than {LARGEST // 2**20} MiB (so '
    f'far: {named}); name what cases do not read, a path or a glob a line, in {root}/{IGNORE_FILE},'
    ' and keep large data on a file system that all nodes see'
  )


def _files(root: str, left_out: frozenset[str]) -> Iterator[tuple[str, int]]:
  ignored = _ignored(root)
  seen: set[str] = set()
  for folder, folders, names in os.walk(root, followlinks=True):
    real = os.path.realpath(folder)
    if real in seen or (_ENVIRONMENT in names and folder != root):
      folders.clear()
      continue
    seen.add(real)
    below = os.path.relpath(folder, root)
    kept = [name for name in folders if name not in _LEFT_OUT]
    folders[:] = sorted(one for one in kept if not ignored(os.path.normpath(f'{below}/{one}')))
    for name in sorted(names):
      path = os.path.join(folder, name)
      is_ignored = name in _IGNORE_FILES or ignored(os.path.normpath(f'{below}/{name}'))
      if path not in left_out and not is_ignored and os.path.isfile(path):
        yield path, os.path.getsize(path)


def _ignored(root: str) -> Any:
  """Returns what tells whether a path below a root is named by its `.rayignore`."""
  try:
    with open(os.path.join(root, IGNORE_FILE), encoding='utf-8') as file:
      lines = [line.strip() for line in file]
  except FileNotFoundError:
    return lambda _: False
  globs = [line.strip('/') for line in lines if line and not line.startswith('#')]

  def is_ignored(path: str) -> bool:
    name = os.path.basename(path)
    return any(fnmatch.fnmatch(path, glob) or fnmatch.fnmatch(name, glob) for glob in globs)

  return is_ignored


class PathMapping:
  """Maps paths of one machine to those of a different one.

  Args:
    pairs: folders, here and there.
  """

  def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
    found = {here.rstrip('/'): there.rstrip('/') for here, there in pairs}
    self._there = {here: there for here, there in found.items() if here and here != there}
    longest = sorted(self._there, key=len, reverse=True)
    folders = '|'.join(map(re.escape, longest))
    # A whole path, or the beginning of one.
    self._pattern = re.compile(rf'(?<![\w./-])({folders})(?![\w.-])') if longest else None

  def text(self, text: str) -> str:
    """Returns a text with all paths in it moved."""
    if self._pattern is None:
      return text
    return self._pattern.sub(lambda found: self._there[found[1]], text)

  def everywhere(self, value: Any) -> Any:
    """Returns what JSON can hold, with all paths in it moved."""
    if isinstance(value, str):
      return self.text(value)
    if isinstance(value, dict):
      return {self.text(key): self.everywhere(item) for key, item in value.items()}
    if isinstance(value, list):
      return [self.everywhere(item) for item in value]
    return value


@dataclasses.dataclass(frozen=True)
class Origin:
  """The machine that the files come from.

  Attributes:
    roots: the user's folders that were shipped.
    own_folder: of this package.
    working_folder: of the fleet.
    path: of its modules.
    installed: as of `installed_folders`.
    environment: the variables that go with the cases.
    versions: of packages; the same everywhere, or verdicts could not be compared.
  """

  roots: tuple[str, ...]
  own_folder: str
  working_folder: str
  path: tuple[str, ...]
  installed: tuple[str, ...]
  environment: Mapping[str, str]
  versions: Mapping[str, str]

  def moves_to(self, code: str) -> PathMapping:
    """Returns where the shipped folders are.

    Args:
      code: as of `shipped_code`.
    """
    return PathMapping([(self.own_folder, _OWN_FOLDER), *_named(self.roots, code)])

  def moves_back(self, code: str) -> PathMapping:
    """Returns the reverse, with the folders of installed packages."""
    shipped = [(there, root) for root, there in _named(self.roots, code)]
    installed = zip(installed_folders(), self.installed, strict=True)
    return PathMapping([*installed, (_OWN_FOLDER, self.own_folder), *shipped])

  def path_at(self, code: str, own_path: Sequence[str]) -> tuple[str, ...]:
    """Returns the path of modules for the cases there.

    Args:
      code: as of `shipped_code`.
      own_path: that of the worker.
    """
    move = self.moves_to(code)
    theirs = [move.text(entry) for entry in self.path if entry and not self._is_installed(entry)]
    own = [entry for entry in own_path if not _is_of_ray(entry)]
    return tuple(dict.fromkeys((os.path.dirname(_OWN_FOLDER), *theirs, *own)))

  def _is_installed(self, entry: str) -> bool:
    return any(f'{entry}/'.startswith(f'{folder}/') for folder in self.installed)

  def working_folder_at(self, code: str) -> str:
    """Returns the folder that the cases run in there."""
    there = self.moves_to(code).text(self.working_folder)
    if there != self.working_folder or not self.roots:
      return there
    return f'{code}/0'


def _is_of_ray(entry: str) -> bool:
  return '/site-packages/ray/' in f'{entry}/' or os.path.isdir(os.path.join(entry, CODE))


def installed_folders() -> tuple[str, ...]:
  """Returns the folders of installed packages, and of Python's own modules."""
  return tuple(sysconfig.get_path(name) for name in ('purelib', 'platlib', 'stdlib'))
