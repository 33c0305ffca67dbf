"""The files that a recorded builder was made of, held against those that are here."""

import hashlib
import os
from collections.abc import Iterator, Sequence

from tf2verify.errors import RecordingError
from tf2verify.recordings.manifest_entries import BuilderEntry, SourceFile

_SHOWN = 4


def check(builder: BuilderEntry, files: Sequence[str], path: str) -> tuple[str, ...]:
  """Compares the recorded source files with those that are here.

  A file is looked for by its recorded path: next to the case, in the folders around that up
  to the working folder or the root of the repository, and in the working folder.

  Args:
    builder: of the recording.
    files: of the case.
    path: of the recording, for messages.

  Returns:
    Notes on files that are not here.

  Raises:
    RecordingError: one is here and has changed.
  """
  folders = _folders(files)
  missing = []
  for source in builder.sources:
    found = [os.path.join(folder, source.path) for folder in folders]
    digests = {name: _digest(name) for name in found if os.path.isfile(name)}
    if not digests:
      missing.append(source.path)
    elif source.sha256 not in digests.values():
      raise RecordingError(_changed(source, *next(iter(digests.items())), path))
  if not missing:
    return ()
  shown = ', '.join(missing[:_SHOWN]) + (', …' if len(missing) > _SHOWN else '')
  return (
    f'whether the reference has changed since it was recorded is not checked: {shown} of '
    f'{builder.name} {"is" if len(missing) == 1 else "are"} not here',
  )


def _changed(source: SourceFile, name: str, digest: str, path: str) -> str:
  return (
    f'{source.path} has changed since it was recorded: {os.path.relpath(name)} has the sha256 '
    f'{digest[:12]}…, and {path} was recorded from {source.sha256[:12]}…: record again, or restore '
    'the file'
  )


def _folders(files: Sequence[str]) -> list[str]:
  found = [folder for file in files for folder in _around(os.path.dirname(os.path.abspath(file)))]
  return [*dict.fromkeys([*found, os.getcwd()])]


def _around(folder: str) -> Iterator[str]:
  """Yields a folder and those around it, as far as they are one project."""
  inner = []
  start, ends = folder, os.getcwd()
  while True:
    inner.append(folder)
    outer = os.path.dirname(folder)
    if folder == ends or os.path.exists(os.path.join(folder, '.git')):
      yield from inner
      return
    if outer == folder:  # neither was met: no folder around this one is known to belong to it
      yield start
      return
    folder = outer


def _digest(path: str) -> str:
  with open(path, 'rb') as file:
    return hashlib.sha256(file.read()).hexdigest()
