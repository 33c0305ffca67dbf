"""The boundary within which the user's code runs."""

import collections.abc
import contextlib
import inspect
import traceback
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from .errors import RecorderError
from .source_lines import is_own_file

# Returns what is known of an error's cause beyond its message; '' for nothing.
Hint = Callable[[BaseException], str]


def no_hint(_: BaseException) -> str:
  """Returns that nothing is known."""
  return ''


OTHER_GRAPH = (
  'a different graph from the one it is called in: usually a `with tf.Graph().as_default():` or '
  '`tf.reset_default_graph()` inside the builder; remove it, each call gets a fresh graph'
)


@contextlib.contextmanager
def user_code(what: str, hint: Hint = no_hint) -> Iterator[None]:
  """Turns whatever the user's code raises into a `RecorderError` that shows it."""
  try:
    yield
  except RecorderError:
    raise
  except (Exception, SystemExit) as error:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ['']
    text = '{} raised {}: {}'.format(what, type(error).__name__, lines[0][:300])
    if 'same graph' in lines[0] or 'is not an element of this graph' in lines[0]:
      text += '; maybe since it makes ' + OTHER_GRAPH
    elif 'tf.reset_default_graph()' in lines[0]:
      text += '; remove that line, each call of the builder gets a fresh graph'
    else:
      text += hint(error)
    raise RecorderError(text) from error


def input_hint(error: BaseException, inputs: Any) -> str:
  """Returns how the inputs came to be what the builder was given, where that may be the cause."""
  text = str(error)
  if isinstance(inputs, np.ndarray):
    if not isinstance(error, TypeError) or 'valid indices' not in text:
      return ''
    return (
      '; `inputs` was one tensor, since there is one array, without a name of its own: '
      'numpy.savez(FILE, x=array) makes it a dictionary with the key x'
    )
  if not isinstance(inputs, collections.abc.Mapping):
    return ''
  slips = (TypeError, AttributeError, ValueError)
  alone = len(inputs) == 1 and isinstance(error, slips)
  if not (alone or isinstance(error, KeyError) or 'dict' in text):
    return ''
  keys = ', '.join(repr(key) for key in inputs)
  hint = '; `inputs` was a dictionary of tensors with the keys {}, as the arrays are named'.format(
    keys
  )
  if len(inputs) > 1:
    return hint
  return hint + ': to give the tensor itself, save the array as numpy.savez(FILE, inputs=array)'


def check_call(what: str, function: Any, names: Sequence[str], slip: str = '') -> None:
  """Raises `RecorderError` where a function cannot be called with these arguments."""
  try:
    signature = inspect.signature(function)
  except (TypeError, ValueError):  # of one that is not written in Python
    return
  try:
    signature.bind(*names)
  except TypeError as error:
    raise RecorderError(
      '{} is called as {}({}), which it does not take: {}{}'.format(
        what, call_name(function), ', '.join(names), error, slip and '; ' + slip
      )
    ) from None


def call_name(function: Any) -> str:
  """Returns what a function is called by, for a message."""
  return str(getattr(function, '__name__', None) or type(function).__name__)


def user_traceback(error: BaseException) -> str:
  """Returns the traceback of what the user's code raised, without the recorder's frames."""
  frames = traceback.extract_tb(error.__traceback__)
  own = [
    frame for frame in frames if not is_own_file(frame[0]) and not frame[0].startswith('<frozen')
  ]
  lines = ['Traceback (most recent call last):\n']
  return ''.join(
    lines + traceback.format_list(own) + traceback.format_exception_only(type(error), error)
  )
