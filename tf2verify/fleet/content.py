"""What a verdict depends on: the files of the case, and the versions of what it runs on."""

import functools
import glob
import hashlib
import importlib.metadata
import os
import platform
import site
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping
from typing import Any

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PACKAGES = ('tensorflow', 'tf-keras', 'tf-slim', 'numpy', 'tf2verify')
# Packages whose versions are among those of a run.
_TOLD_BY_VERSION = ('tensorflow', 'tf_keras', 'keras', 'tf_slim', 'numpy', 'absl')
# Variables of the environment that change what TensorFlow computes.
_VARIABLES = (
  'TF_ENABLE_ONEDNN_OPTS',
  'TF_DETERMINISTIC_OPS',
  'TF_NUM_INTEROP_THREADS',
  'TF_NUM_INTRAOP_THREADS',
  'TF_XLA_FLAGS',
  'XLA_FLAGS',
  'CUDA_VISIBLE_DEVICES',
)
# With these a variable may begin that goes with cases to another machine.
_PREFIXES = ('TF_', 'XLA_', 'TF2VERIFY_')
_NO_FILES = ('/proc/', '/sys/', '/dev/')


def sha256_of(path: str) -> str:
  """Returns the digest of a file's content; '' for one that cannot be read."""
  digest = hashlib.sha256()
  try:
    with open(path, 'rb') as file:
      while part := file.read(2**20):
        digest.update(part)
  except OSError:
    return ''
  return digest.hexdigest()


def versions() -> dict[str, str]:
  """Returns what a verdict depends on besides the case's own files."""
  return package_versions() | {
    name: os.environ[name] for name in _VARIABLES if os.environ.get(name)
  }


def environment_of_cases() -> dict[str, str]:
  """Returns the variables that cases are to have on another machine as well."""
  threads = 'OMP_NUM_THREADS'
  return {
    name: value
    for name, value in os.environ.items()
    if name == threads or name.startswith(_PREFIXES)
  }


def package_versions() -> dict[str, str]:
  """Returns the part of `versions` that is not of the environment."""
  found = {'python': platform.python_version(), 'machine': platform.machine()}
  for package in _PACKAGES:
    try:
      found[package] = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
      continue
  # A checkout keeps its version while it changes.
  found['tf2verify'] = f'{found.get("tf2verify", "unknown")}+{_own_digest()[:8]}'
  return found


@functools.cache
def _own_digest() -> str:
  digest = hashlib.sha256()
  for path in sorted(glob.glob(os.path.join(glob.escape(_OWN_FOLDER), '**/*.py'), recursive=True)):
    digest.update(f'{os.path.relpath(path, _OWN_FOLDER)} {sha256_of(path)}\n'.encode())
  return digest.hexdigest()


@functools.cache
def _folders() -> tuple[tuple[str, ...], tuple[str, ...]]:
  """Returns the folders of Python's own modules, and those of installed packages."""
  library = [sysconfig.get_path(name) for name in ('stdlib', 'platstdlib')]
  installed = [sysconfig.get_path(name) for name in ('purelib', 'platlib')]
  installed += [*site.getsitepackages(), site.getusersitepackages()]
  return (
    tuple(os.path.abspath(folder) + os.sep for folder in library),
    tuple(os.path.abspath(folder) + os.sep for folder in installed),
  )


def _is_told_by_version(path: str) -> bool:
  library, installed = _folders()
  for folder in installed:
    if path.startswith(folder):
      return path.removeprefix(folder).split(os.sep)[0] in _TOLD_BY_VERSION
  return path.startswith((*library, _OWN_FOLDER))


def files_of_loaded_modules(known: frozenset[str], scratch: str) -> dict[str, str]:
  """Returns path and digest of the modules that this process has loaded.

  Python's own modules and TensorFlow's are left out: their versions tell.

  Args:
    known: names of the modules that were there before.
    scratch: a folder for temporary files; what AutoGraph writes there is left out.
  """
  paths = set()
  for name, module in list(sys.modules.items()):
    path = getattr(module, '__file__', None)
    if name not in known and isinstance(path, str):
      paths.add(os.path.abspath(path))
  return {
    path: sha256_of(path)
    for path in sorted(paths)
    if not _is_told_by_version(path) and not path.startswith(scratch)
  }


class FilesRead:
  """What this process opens for reading through Python: data, recordings, `.npz` files.

  What TensorFlow opens itself is not seen, so that a checkpoint has to be named.

  Args:
    scratch: a folder for temporary files, which are left out.
  """

  def __init__(self, scratch: str) -> None:
    self._scratch = scratch
    self._start = time.time()
    self._read: set[str] = set()
    self._written: set[str] = set()
    sys.addaudithook(self._note)

  def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
    if event != 'open' or len(arguments) != 3 or not isinstance(arguments[0], str):
      return
    path, _, flags = arguments
    if path.endswith('.pyc') or not isinstance(flags, int):
      return
    kept = self._written if flags & (os.O_WRONLY | os.O_RDWR) else self._read
    if path not in kept and not path.startswith(_NO_FILES):
      kept.add(path if os.path.isabs(path) else os.path.abspath(path))

  def files(self) -> dict[str, str]:
    """Returns path and digest of what was read and is not a product of this process."""
    found = {}
    for path in sorted(self._read - self._written):
      left_out = path.startswith(self._scratch) or _is_told_by_version(path)
      if left_out or not os.path.isfile(path):
        continue
      if os.path.getmtime(path) < self._start:
        found[path] = sha256_of(path)
    return found


def files_of_checkpoint(prefix: str) -> dict[str, str]:
  """Returns path and digest of the files that tell a checkpoint's content.

  The index of a checkpoint holds a checksum of every tensor, so that the data need not
  be read.

  Args:
    prefix: as given to `Saver.restore`.
  """
  paths = (prefix, f'{prefix}.index')  # of the old format, of the new
  return {os.path.abspath(path): sha256_of(path) for path in paths if os.path.isfile(path)}


def files_around(path: str) -> dict[str, str]:
  """Returns path and digest of a Python file and of those next to it.

  For a process that ended before it could tell what it had imported.
  """
  beside = glob.glob(os.path.join(glob.escape(os.path.dirname(path) or '.'), '*.py'))
  return {os.path.abspath(one): sha256_of(one) for one in (path, *sorted(beside))}


class Digests:
  """Compares files with what they were; each is read once."""

  def __init__(self) -> None:
    self._known: dict[str, str] = {}

  def are_unchanged(self, files: Mapping[str, str]) -> bool:
    """Returns whether all files have the content that they had."""
    return not any(True for _ in self.changed(files))

  def changed(self, files: Mapping[str, str]) -> Iterable[str]:
    """Yields the files that have another content now, or are gone."""
    for path, digest in files.items():
      if path not in self._known:
        self._known[path] = sha256_of(path)
      if not digest or self._known[path] != digest:
        yield path
