"""Which line of the user's code is running."""

import functools
import linecache
import os
import sys
import sysconfig
import types

import absl
import keras
import numpy as np
import tensorflow as tf
import tf_keras
from tensorflow.python.util import tf_stack

import tf2verify
from tf2verify.records.observation import SourceLine

# Part of the name of the files into which a `tf.function` is rewritten.
_AUTOGRAPH = '__autograph_generated_file'


def _folder(package: types.ModuleType) -> str:
  assert package.__file__ is not None
  return os.path.dirname(os.path.abspath(package.__file__)) + os.sep


_OWN_FOLDER = _folder(tf2verify)


@functools.cache
def _framework_folders() -> tuple[str, ...]:
  packages = (tf, tf_keras, keras, np, absl, tf2verify)
  # `tensorflow` is a virtual package of several folders (tensorflow/_api, ...).
  return tuple(_folder(package) for package in packages)


@functools.lru_cache(maxsize=4096)
def is_user_file(path: str) -> bool:
  """Tells whether a file belongs to neither a framework nor the standard library.

  TF-Slim's layers are a framework; its `nets` are somebody's models.
  """
  if path.startswith('<'):
    return path.startswith('<ipython')
  path = os.path.abspath(path)
  if f'{os.sep}tf_slim{os.sep}' in path:
    return f'{os.sep}tf_slim{os.sep}nets{os.sep}' in path
  if path.startswith(_framework_folders()) or _AUTOGRAPH in path:
    return False
  installed = f'{os.sep}site-packages{os.sep}' in path
  return installed or not path.startswith(sysconfig.get_path('stdlib') + os.sep)


def user_line() -> SourceLine | None:
  """Returns the innermost line of the stack that belongs to the user's hooks; None without one."""
  frame: types.FrameType | None = sys._getframe(1)
  recording = True  # the innermost frames are those of the recorder
  while frame is not None:
    path = frame.f_code.co_filename
    if is_user_file(path):
      return source_line(path, frame.f_lineno, frame.f_code.co_name)
    if _AUTOGRAPH in path:
      return _line_before_autograph()
    own = path.startswith(_OWN_FOLDER)
    if own and not recording:
      return None  # further out there is whoever runs tf2verify
    recording = recording and own
    frame = frame.f_back
  return None


def _line_before_autograph() -> SourceLine | None:
  """Returns the user's line from TensorFlow's own stack, which maps the code that autograph wrote."""
  for frame in reversed(tf_stack.extract_stack()):
    if is_user_file(frame.filename):
      return source_line(frame.filename, frame.lineno, frame.name)
  return None


def source_line(path: str, line: int, function: str) -> SourceLine:
  """Returns the record of one line, its path relative to the working folder where it is below."""
  code = linecache.getline(path, line).strip()
  below = os.path.relpath(path) if not path.startswith('<') else path
  return SourceLine(path if below.startswith('..') else below, line, function, code)
