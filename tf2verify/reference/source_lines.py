"""The user's lines that made ops and variables."""

import linecache
import os
import sys
from typing import Any, Dict, List, Tuple

from .user_files import FRAMEWORKS, is_file_of_user

_OWN_FILE = os.path.abspath(__file__)
# Shipped, all of this is one file; in tf2verify, it is a folder of them.
_OWN_FOLDER = os.path.dirname(_OWN_FILE) if __name__.endswith('.source_lines') else ''


def is_own_file(path: str) -> bool:
  """Returns whether a file is one of those that the code of this recorder is in."""
  path = os.path.abspath(path)
  return path == _OWN_FILE or os.path.dirname(path) == _OWN_FOLDER


def _framework_folders() -> Tuple[str, ...]:
  found = []
  for name in FRAMEWORKS:
    module = sys.modules.get(name)
    for folder in getattr(module, '__path__', None) or ():
      found.append(os.path.abspath(folder) + os.sep)
  return tuple(found)


class SourceLines:
  """The table of the user's lines that the graphs of a recording refer to."""

  def __init__(self) -> None:
    self.table: List[List[Any]] = []
    self._index: Dict[Tuple[str, int, str], int] = {}
    self._user_files: Dict[str, bool] = {}
    self._own_files: Dict[str, bool] = {}
    self._folders = _framework_folders()

  def of_frames(self, frames: Any) -> int:
    """Returns the number of the innermost user's line of a stack, innermost last; -1: none."""
    for position in range(len(frames) - 1, -1, -1):
      frame = frames[position]
      path, line, function = (
        (frame.filename, frame.lineno, frame.name) if hasattr(frame, 'filename') else frame[:3]
      )
      if self.is_user_file(path):
        return self._number(path, line, function)
      if self._own_files[path]:
        return -1  # further out there is whoever records
    return -1

  def of_op(self, op: Any) -> int:
    """Returns the number of the line that made an op."""
    frames = getattr(op, '_traceback', None)  # `op.traceback` of 1.x reads every line's text
    return self.of_frames(op.traceback if frames is None else frames)

  def is_user_file(self, path: str) -> bool:
    """Returns whether a file is neither a framework's, nor Python's, nor the recorder's."""
    if path not in self._user_files:
      self._own_files[path] = is_own_file(path)
      self._user_files[path] = not self._own_files[path] and is_file_of_user(path, self._folders)
    return self._user_files[path]

  def _number(self, path: str, line: int, function: str) -> int:
    key = (path, line, function)
    if key not in self._index:
      self._index[key] = len(self.table)
      code = linecache.getline(path, line).strip()
      self.table.append([_shown_path(path), line, function, code])
    return self._index[key]


def _shown_path(path: str) -> str:
  """Returns a path relative to the working folder where it is below."""
  below = path if path.startswith('<') else os.path.relpath(path)
  return path if below.startswith('..') else below
