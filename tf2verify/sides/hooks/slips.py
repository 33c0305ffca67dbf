"""What tells of an error of a hook: a wrong key, a batch of another size, an operator."""

import collections
import difflib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf2verify.errors import UserCodeError
from tf2verify.safe_text import message_of
from tf2verify.sides.losses.loss_function import leaves_of

# Which hooks take what; a hook is named in `UserCodeError.hook`, words around it.
_OF_MODEL = ('build_tf1_graph', 'call_tf2_layer')
_OF_LOSS = ('_loss', '_metrics')
# What resource variables refuse, and those of TF1 did not.
_IN_PLACE = re.compile(r'`var(?:iable)? ([-+*/%]+)= value`')
# How TensorFlow calls the dtype that it did not expect, and what it allows in its place.
_DOUBLE = re.compile(r'\b(float64|double)\b')
_ONLY_INTEGERS = re.compile(r'allowed values: (u?int\d+(, )?)+$')
_OF_TRAINING = ('_train_op', '_train_step')


def likely_slip(error: UserCodeError, inputs: Any, labels: Any) -> str:
  """Returns what may be wrong with what a hook was given; '' where nothing is seen.

  Args:
    error: of the hook.
    inputs: the nest of `make_inputs`.
    labels: the nest of `make_labels`; None without.
  """
  hook, cause = error.hook, error.__cause__
  in_place = None if cause is None else _IN_PLACE.search(message_of(cause))
  if in_place is not None:
    sign = in_place[1]
    return (
      f'in TF1, `w {sign}= value` created a new tensor and did not change the variable; '
      f'write `w = w {sign} value` (assign_add would change the variable)'
    )
  nests = []
  if any(part in hook for part in (*_OF_MODEL, '_train_step')):
    nests.append(('inputs', inputs))
  if any(part in hook for part in (*_OF_LOSS, '_train_step')):
    nests.append(('labels', labels))
  doubles = [_doubles(cause, noun, nest) for noun, nest in nests]
  if any(doubles):
    return '; '.join(filter(None, doubles))
  if isinstance(cause, KeyError):
    return '; '.join(filter(None, (_keys(cause, noun, nest) for noun, nest in nests)))
  takes_inputs = any(part in hook for part in (*_OF_MODEL, *_OF_LOSS, *_OF_TRAINING))
  return _first_dimensions(inputs) if takes_inputs else ''


def _doubles(error: BaseException | None, noun: str, nest: Any) -> str:
  """Names arrays of numpy's default dtype where that is what a message is about."""
  said = '' if error is None else message_of(error)
  if not _DOUBLE.search(said):
    return ''
  paths = [path for path, leaf in leaves_of(nest).items() if leaf.dtype == np.float64]
  if not paths:
    return ''
  shown = ', '.join(f'{noun}{path}' for path in paths[:3] if path)
  dtype = 'int32' if _ONLY_INTEGERS.search(said) else 'float32'
  return (
    f'make_{noun} returns float64{" for " * bool(shown)}{shown}, the dtype that numpy makes by '
    f'default: return x.astype(np.{dtype}), if production feeds {dtype}'
  )


def _keys(error: KeyError, noun: str, nest: Any) -> str:
  key = error.args[0] if error.args else None
  if not isinstance(nest, Mapping) or not isinstance(key, str) or key in nest:
    return ''
  names = [str(name) for name in nest]
  close = difflib.get_close_matches(key, names, 1)
  guess = f' (did you mean {close[0]!r}?)' if close else ''
  return f'the {noun} have: {", ".join(names)}{guess}'


def _first_dimensions(inputs: Any) -> str:
  """Names the first dimensions where a single input, of three or more, has another one."""
  sizes = [(path, leaf.shape[0]) for path, leaf in leaves_of(inputs).items() if leaf.ndim]
  counts = collections.Counter(size for _, size in sizes)
  if len(sizes) < 3 or sorted(counts.values()) != [1, len(sizes) - 1]:
    return ''
  shown = [f'{size} ({path})' if counts[size] == 1 else str(size) for path, size in sizes]
  return f'the inputs have first dimensions {", ".join(shown)}: a mistake in make_inputs?'
