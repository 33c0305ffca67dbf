"""What a verdict depends on: the files of the case, and the versions of what it runs on."""

import hashlib
import os
import site
import sys
import sysconfig
from collections.abc import Mapping

_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


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


def _is_installed(path: str) -> bool:
  folders = [sysconfig.get_path(name) for name in ('stdlib', 'platstdlib', 'purelib', 'platlib')]
  folders += [*site.getsitepackages(), site.getusersitepackages()]
  inside = tuple(os.path.abspath(folder) + os.sep for folder in folders)
  return path.startswith((*inside, _OWN_FOLDER))


def files_of_loaded_modules(known: frozenset[str]) -> dict[str, str]:
  """Returns path and digest of the user's modules that this process has loaded.

  Args:
    known: names of the modules that were there before.
  """
  found = {}
  for name, module in list(sys.modules.items()):
    path = getattr(module, '__file__', None)
    if name in known or not path:
      continue
    path = os.path.abspath(path)
    if not _is_installed(path):
      found[path] = sha256_of(path)
  return found


def are_unchanged(files: Mapping[str, str]) -> bool:
  """Tells whether files have the content that they had."""
  return all(digest and sha256_of(path) == digest for path, digest in files.items())
