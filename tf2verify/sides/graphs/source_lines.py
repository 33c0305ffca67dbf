"""Which line of the user's code is running."""

import functools
import importlib.util
import linecache
import os
import sys
import types

import tf2verify
from tf2verify.records.observation import SourceLine
from tf2verify.reference.user_files import AUTOGRAPH, FRAMEWORKS, is_file_of_user
from tf2verify.tensorflow_internals import graphs

_OWN_FOLDER = os.path.dirname(os.path.abspath(tf2verify.__file__)) + os.sep
# They are called in the user's midst.
_RECORDERS = (
  'keras_draws.py',
  'made_lines.py',
  'op_callbacks.py',
  'op_recorder.py',
  'run_ops.py',
  'source_lines.py',
  os.path.join('reference', 'updates.py'),
)


@functools.cache
def _framework_folders() -> tuple[str, ...]:
  # Found, not imported: to import Keras 3 takes 0.3 s, and nobody here needs it.
  specs = [importlib.util.find_spec(name) for name in FRAMEWORKS]
  found = [spec.submodule_search_locations or () for spec in specs if spec is not None]
  return (_OWN_FOLDER, *(os.path.abspath(folder) + os.sep for all_ in found for folder in all_))


@functools.lru_cache(maxsize=4096)
def is_user_file(path: str) -> bool:
  """Returns whether a file belongs to neither a framework nor the standard library.

  TF-Slim's layers are a framework; its `nets` are somebody's models.
  """
  return is_file_of_user(path, _framework_folders())


def is_own_file(path: str) -> bool:
  """Returns whether a file is tf2verify's, and not called in the midst of the user's code."""
  return path.startswith(_OWN_FOLDER) and not path.endswith(_RECORDERS)


def user_line(without: object = None) -> SourceLine | None:
  """Returns the innermost line of the stack that belongs to the user's hooks; None without one.

  Args:
    without: an object whose own methods are passed over; None for none.
  """
  frame: types.FrameType | None = sys._getframe(1)
  while frame is not None:
    path = frame.f_code.co_filename
    if is_user_file(path) and not (without is not None and _is_method_of(frame, without)):
      return source_line(path, frame.f_lineno, frame.f_code.co_name)
    if AUTOGRAPH in path:
      return _line_before_autograph()
    if is_own_file(path):
      return None  # further out there is whoever runs tf2verify
    frame = frame.f_back
  return None


def _is_method_of(frame: types.FrameType, owner: object) -> bool:
  names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
  return bool(names) and frame.f_locals.get(names[0]) is owner


def _line_before_autograph() -> SourceLine | None:
  """Returns the user's line by TensorFlow's own stack, which maps what autograph wrote."""
  for frame in reversed(graphs.stack()):
    if is_user_file(frame.filename):
      return source_line(frame.filename, frame.lineno, frame.name)
  return None


@functools.lru_cache(maxsize=4096)
def source_line(path: str, line: int, function: str) -> SourceLine:
  """Returns the record of one line, its path relative to the working folder where it is below."""
  code = linecache.getline(path, line).strip()
  below = os.path.relpath(path) if not path.startswith('<') else path
  return SourceLine(path if below.startswith('..') else below, line, function, code)
