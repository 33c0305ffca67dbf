"""The boundary at which the user's own code runs."""

import contextlib
import itertools
import os
import re
import traceback
from collections.abc import Iterator, Sequence

from tf2verify.errors import EnvironmentProblem, Tf2VerifyError, UserCodeError
from tf2verify.safe_text import message_of, safe
from tf2verify.sides.graphs.lines.source_lines import OWN_FOLDER, is_user_file
from tf2verify.sides.hooks import known_errors, mixed_keras, tf1_names
from tf2verify.sides.process import own_arithmetic
from tf2verify.tensorflow_internals import eager, keras3

_LONGEST_SUMMARY = 300
_KERAS_WRAPPING = 'Exception encountered when calling'
_NODE = 'Node: '
# tf.Assert, tf.debugging.assert_less, tf.compat.v1.assert_equal, ...
_ASSERT = re.compile(r'\b(Assert|assert_\w+)\(')
_EAGER_IS_OFF = (
  'eager execution is off after it: it called disable_eager_execution() or disable_v2_behavior(), '
  'and the port runs eagerly: remove the call'
)
_SECOND_STACK = 'Original stack trace for'


def _is_own(path: str) -> bool:
  return os.path.abspath(path).startswith(OWN_FOLDER)


def _user_traceback(error: BaseException) -> str:
  """Formats the traceback from the user's first frame on, without tf2verify's own frames."""
  frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_own(f.filename)]
  while frames and not is_user_file(frames[0].filename):
    del frames[0]
  lines = ['Traceback (most recent call last):\n', *traceback.format_list(frames)]
  text = ''.join(lines + traceback.format_exception_only(type(error), error)).rstrip()
  return safe(_without_callers(text.partition(_SECOND_STACK)[0].rstrip()))


def _without_callers(text: str) -> str:
  """Leaves out how the user's builder was called.

  An error in a session quotes the stack that built the op, from the start of the program.
  """
  lines = text.splitlines()
  own = [number for number, line in enumerate(lines) if f'File "{OWN_FOLDER}' in line]
  if not own:
    return text
  start = end = own[-1]
  while lines[start - 1].lstrip().startswith('File "'):
    start -= 1
  return '\n'.join(lines[:start] + lines[end + 1 :])


def _message(error: BaseException) -> str:
  """Returns the line of the message that says what was wrong, where the first one does not."""
  lines = [line.strip() for line in message_of(error).splitlines() if line.strip()]
  for line, following in itertools.pairwise(lines):
    if line.startswith(_NODE):  # an op's error in a session
      return f'{following} (in {line.removeprefix(_NODE)})'
  if len(lines) > 1 and lines[0].startswith(_KERAS_WRAPPING):
    return f'{lines[1]} (in {lines[0].removeprefix(_KERAS_WRAPPING).strip(" .")})'
  return _sentence(lines)


def _sentence(lines: Sequence[str]) -> str:
  """Returns the first line, with those that go on with its sentence: Keras breaks its own."""
  found = lines[0] if lines else ''
  for line in lines[1:]:
    is_entry = ':' in line.split(' ')[0]  # `name: ...`
    if not line[:1].islower() or is_entry or found.endswith(('.', ':')):
      break
    found = f'{found} {line}'
  return found


@contextlib.contextmanager
def importing(what: str) -> Iterator[None]:
  """As `user_code` for a file of cases, of which each error says where it was raised.

  Raises:
    UserCodeError: whatever was raised, but for what is wrong with the environment.
  """
  hook = f'importing {what}'
  try:
    with user_code('case', hook):
      yield
  except (EnvironmentProblem, UserCodeError):
    raise
  except Tf2VerifyError as error:
    raise UserCodeError('case', hook, _summary(error), _user_traceback(error)) from error


def _summary(error: BaseException) -> str:
  """Returns type and message on one line, and the fix where type and name tell the cause."""
  message = _message(error)
  text = f'{type(error).__name__}: {message}' if message else type(error).__name__
  if len(text) > _LONGEST_SUMMARY:
    text = text[: _LONGEST_SUMMARY - 1] + '…'
  name = getattr(error, 'name', None) or ''
  missing = isinstance(error, (AttributeError, ImportError))
  gone = name == 'contrib' or name.startswith('tensorflow.contrib')
  if missing and (gone or "has no attribute 'contrib'" in message):
    text += (
      '; tf.contrib is gone in TensorFlow 2. tf.contrib.slim and tf.contrib.layers live on as '
      '`import tf_slim as slim`, tf.contrib.rnn as tf.compat.v1.nn.rnn_cell, tf.contrib.framework '
      'as tf_slim or tf.nest; HParams is types.SimpleNamespace with the same attributes; '
      '`python -m tf2verify new FILE.py:FUNCTION` lists the place of each name'
    )
  return text


def _collection_hint(error: BaseException) -> str:
  """Returns the fix where slim looks a variable up in a collection, which fails in eager mode."""
  frames = traceback.extract_tb(error.__traceback__)
  if not any(frame.name == '_add_variable_to_collections' for frame in frames):
    return ''
  return (
    '; slim asks `variable in collection`, which compares element by element in eager mode: leave '
    "'variables_collections' out of the port's normalizer_params, in an arg_scope inside of the "
    "net's own; a layer knows its variables without collections"
  )


def _assert_hint(error: BaseException) -> str:
  """Returns the fix where it is an assert of TensorFlow that failed, as an operation."""
  frames = traceback.extract_tb(error.__traceback__)
  own = [frame for frame in frames if is_user_file(frame.filename)]
  if type(error).__name__ != 'InvalidArgumentError' or not own:
    return ''
  if not _ASSERT.search(own[-1].line or ''):
    return ''
  return (
    '; an assert that no fetched tensor depends on never runs in tf1, and always runs in eager '
    'mode: fix what it asserts, or leave it out of the port'
  )


@contextlib.contextmanager
def user_code(side: str, hook: str, slip: str = '') -> Iterator[None]:
  """Turns whatever the user's code raises into a `UserCodeError` with its traceback.

  Args:
    side: 'tf1', 'tf2' or 'case'.
    hook: the method that is called inside.
    slip: what is said of a possible cause, whatever is raised; '' for nothing.
  """
  mode, scopes = eager.default_execution_mode(), keras3.read_open_scopes()
  try:
    with own_arithmetic.as_user_wants():
      yield
    # What builds a graph is fenced, and says so in its own words.
    if side != 'tf1' and eager.default_execution_mode() != mode:
      raise RuntimeError(_EAGER_IS_OFF)
  except Tf2VerifyError:
    raise
  except (Exception, SystemExit) as error:  # the user's code may raise anything
    hint = ''
    if side == 'tf2':
      hint = _assert_hint(error) or _collection_hint(error) or mixed_keras.hint(error)
    frames = traceback.extract_tb(error.__traceback__)
    hint = hint or tf1_names.hint(error, side, [f for f in frames if is_user_file(f.filename)])
    hint = hint or known_errors.hint(_message(error))
    said = _summary(error)
    summary = (said.rstrip('.') + hint if hint else said) + (f'; {slip}' if slip else '')
    raise UserCodeError(side, hook, summary, _user_traceback(error)) from error
  finally:
    # Keras leaves one open that TensorFlow refuses, also where it goes on without it.
    keras3.write_open_scopes(scopes)
