"""Which line of the user's code is running."""

import dataclasses
import functools
import importlib.util
import linecache
import os
import sys
import traceback
import types
from collections.abc import Sequence
from typing import Any

import tf2verify
from tf2verify.hooks import HOOKS
from tf2verify.records.observation import CodePlace, SourceLine
from tf2verify.reference.user_files import AUTOGRAPH, FRAMEWORKS, is_file_of_user
from tf2verify.sides.graphs.lines import statements
from tf2verify.tensorflow_internals import graphs

# Path, line and function.
Frame = tuple[str, int, str]
_CALLERS = 3
_HOOKS = frozenset(hook.name for hook in HOOKS)

OWN_FOLDER = os.path.dirname(os.path.abspath(tf2verify.__file__)) + os.sep
# They are called in the user's midst.
_RECORDERS = (
  'arg_scopes.py',
  'conversions.py',
  'keras_draws.py',
  'layer_calls.py',
  'loop_draws.py',
  'made_layers.py',
  'made_lines.py',
  'numbers_read.py',
  'op_callbacks.py',
  'op_recorder.py',
  os.path.join('tensorflow_internals', 'random_ops.py'),
  'run_ops.py',
  'source_lines.py',
  os.path.join('reference', 'updates.py'),
)


@functools.cache
def _framework_folders() -> tuple[str, ...]:
  # Found, not imported: to import Keras 3 takes 0.3 s, and nobody here needs it.
  specs = [importlib.util.find_spec(name) for name in FRAMEWORKS]
  found = [spec.submodule_search_locations or () for spec in specs if spec is not None]
  return (OWN_FOLDER, *(os.path.abspath(folder) + os.sep for all_ in found for folder in all_))


@functools.lru_cache(maxsize=4096)
def is_user_file(path: str) -> bool:
  """Returns whether a file belongs to neither a framework nor the standard library.

  TF-Slim's layers are a framework; its `nets` are somebody's models.
  """
  return is_file_of_user(path, _framework_folders())


def is_own_file(path: str) -> bool:
  """Returns whether a file is tf2verify's, and not called in the midst of the user's code."""
  return path.startswith(OWN_FOLDER) and not path.endswith(_RECORDERS)


def is_hook(function: str) -> bool:
  """Returns whether a function has the name of a hook, whose line only says that a case calls."""
  return function in _HOOKS


def user_line(without: object = None) -> SourceLine | None:
  """Returns the innermost line of the stack that belongs to the user's hooks; None without one.

  Args:
    without: an object whose own methods are passed over; None for none.
  """
  frame: types.FrameType | None = sys._getframe(1)
  found: list[Frame] = []
  while frame is not None:
    path = frame.f_code.co_filename
    if is_user_file(path) and not (without is not None and _is_method_of(frame, without)):
      found.append((path, frame.f_lineno, frame.f_code.co_name))
    elif AUTOGRAPH in path and not found:
      # TensorFlow's own stack maps what autograph wrote.
      return line_of_stack(graphs.stack(), own_first=True)
    elif is_own_file(path):
      break  # further out there is whoever runs tf2verify
    frame = frame.f_back
  return line_of(found)


def _is_method_of(frame: types.FrameType, owner: object) -> bool:
  names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
  return bool(names) and frame.f_locals.get(names[0]) is owner


def line_of_stack(frames: Sequence[Any], own_first: bool = False) -> SourceLine | None:
  """Returns the innermost user's line of a stack of TensorFlow's, whose last frame is innermost.

  Args:
    frames: the stack.
    own_first: whether its innermost frames are tf2verify's.
  """
  found: list[Frame] = []
  for frame in reversed(frames):
    path = frame.filename
    if is_user_file(path):
      found.append((path, frame.lineno, frame.name))
      if len(found) > _CALLERS + 1:
        break
    elif is_own_file(path) and (found or not own_first):
      break  # further out there is whoever runs tf2verify
  return line_of(found)


def line_of_error(error: BaseException) -> SourceLine | None:
  """Returns the innermost user's line that an error, or its cause, came through."""
  frames = traceback.extract_tb((error.__cause__ or error).__traceback__)
  found = [(f.filename, f.lineno or 0, f.name) for f in frames if is_user_file(f.filename)]
  return line_of(found[::-1])


def line_of(frames: Sequence[Frame]) -> SourceLine | None:
  """Returns a line with those that led to it; None without any.

  Args:
    frames: path, line and function of frames of the user's, innermost first.
  """
  if not frames:
    return None
  callers = [frame for frame in frames[1:] if not is_hook(frame[2])]
  return _line(frames[0], tuple(dict.fromkeys(callers))[:_CALLERS])


@functools.lru_cache(maxsize=4096)
def _line(frame: Frame, callers: tuple[Frame, ...]) -> SourceLine:
  places = tuple(code_place(*caller) for caller in callers if caller[:2] != frame[:2])
  line = source_line(*frame)
  return dataclasses.replace(line, callers=places, settings=settings_of(line))


@functools.lru_cache(maxsize=4096)
def source_line(path: str, line: int, function: str) -> SourceLine:
  """Returns the record of one line, its path relative to the working folder where it is below."""
  place = code_place(path, line, function)
  return SourceLine(place.path, line, function, place.code, place.last_line)


@functools.lru_cache(maxsize=4096)
def code_place(path: str, line: int, function: str) -> CodePlace:
  """Returns the same of a line that leads to another."""
  below = os.path.relpath(path) if not path.startswith('<') else path
  last = statements.last_line(path, line)
  return CodePlace(
    path if below.startswith('..') else below,
    line,
    function,
    statements.text(path, line),
    last if last > line else 0,
  )


@functools.lru_cache(maxsize=4096)
def settings_of(place: CodePlace, layers: tuple[int, ...] | None = None) -> tuple[CodePlace, ...]:
  """Returns where names were assigned that a line passes on: settings, constants.

  Args:
    place: the line.
    layers: lines that construct those that it runs in; see `statements.settings`.
  """
  found = []
  for setting in statements.settings(place.path, place.line, layers):
    made = code_place(place.path, setting.first, setting.function)
    last = setting.last if setting.last > setting.first else 0
    found.append(dataclasses.replace(made, last_line=last))
  return tuple(found)


def forget_lines() -> None:
  """Reads files anew from now on."""
  linecache.checkcache()
  for known in (_line, source_line, code_place, settings_of):
    known.cache_clear()
