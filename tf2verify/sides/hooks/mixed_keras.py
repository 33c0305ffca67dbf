"""tf-keras and Keras 3 in one model: what is said of it, and how an error of Keras shows it."""

import os
import types
from typing import Any

from tf2verify.environment import legacy_keras

_OLD, _NEW = 'tf_keras', 'keras'
_ON = ('1', 'true', 'True')
_TENSOR, _LAYER = 'KerasTensor', 'Layer'
_VARIABLE, _OPTIMIZER = 'Variable', 'Optimizer'


def is_old_layer(item: Any) -> bool:
  """Returns whether something is a layer of tf-keras; its metrics, which are layers, are none."""
  names = _bases(item, _OLD)
  return _LAYER in names and 'Metric' not in names


def is_keras3(item: Any) -> bool:
  """Returns whether something is a layer or variable of Keras 3."""
  return bool(_bases(item, _NEW) & {_LAYER, 'Variable'})


def one_keras(name: str) -> str:
  """Returns how to have one Keras only, and why `tf.keras` is tf-keras in this process.

  Args:
    name: the class of the layer of tf-keras.
  """
  return f'use keras.layers.{name} of Keras 3{old_by_flag()}'


def old_by_flag() -> str:
  """Returns `; ` and why `tf.keras` is tf-keras in this process; '' where no flag makes it that."""
  value = os.environ.get(legacy_keras.FLAG, '')
  if value not in _ON:
    return ''
  by = 'import tf2verify has set' if legacy_keras.CHOSEN in os.environ else 'the environment sets'
  return (
    f'; tf.keras is tf-keras (Keras 2) here because {by} {legacy_keras.FLAG}={value}: if it '
    f'is Keras 3 in production, start the process with {legacy_keras.FLAG}=0'
  )


def hint(error: BaseException) -> str:
  """Returns the fix where one Keras has raised while it handled what belongs to the other.

  Args:
    error: what was raised, with its traceback.
  """
  trace = error.__traceback__
  while trace is not None:
    library = str(trace.tb_frame.f_globals.get('__name__', '')).partition('.')[0]
    other = {_OLD: _NEW, _NEW: _OLD}.get(library)
    owner = trace.tb_frame.f_locals.get('self')
    has_new = _first_of(trace.tb_frame, _NEW, _VARIABLE) is not None
    if _OPTIMIZER in _bases(owner, _OLD) and has_new:
      return (
        '; the optimizer is one of tf-keras (Keras 2), and the variables are of Keras 3: use '
        f'keras.optimizers.{type(owner).__name__}{old_by_flag()}'
      )
    found = None if other is None else _first_of(trace.tb_frame, other)
    if found is not None:
      return f'; {_said(found, library)}; {one_keras(_layer_name(trace.tb_frame, found))}'
    trace = trace.tb_next
  return ''


def _bases(item: Any, package: str) -> set[str]:
  bases = type(item).__mro__
  return {cls.__name__ for cls in bases if cls.__module__.partition('.')[0] == package}


def _first_of(frame: types.FrameType, package: str, *kinds: str) -> Any:
  """Returns what a function was given of a package, None for none: a layer or symbolic tensor."""
  given = (value for value in frame.f_locals.values())
  flat = (
    one for value in given for one in (value if isinstance(value, (list, tuple)) else [value])
  )
  wanted = set(kinds or (_LAYER, _TENSOR))
  return next((one for one in flat if _bases(one, package) & wanted), None)


def _said(found: Any, library: str) -> str:
  names = {_OLD: 'tf-keras', _NEW: 'Keras 3'}
  other = names[_NEW if library == _OLD else _OLD]
  noun = 'a symbolic tensor' if _TENSOR in _bases(found, _package(found)) else type(found).__name__
  return f'{names[library]} was given {noun} of {other}; a model is made of one Keras throughout'


def _package(item: Any) -> str:
  return _OLD if _bases(item, _OLD) else _NEW


def _layer_name(frame: types.FrameType, found: Any) -> str:
  """Returns the class of the layer of tf-keras that is concerned."""
  layers = (one for one in (found, *frame.f_locals.values()) if is_old_layer(one))
  return next((type(one).__name__ for one in layers), '…')
