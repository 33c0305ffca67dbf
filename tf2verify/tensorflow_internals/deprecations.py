"""What TensorFlow and Keras say about the age of code that is not the port's, or say again.

A ladder calls a port dozens of times: what each call warns of is said once.
"""

import contextlib
import logging
import os
import re
import warnings
from collections.abc import Iterator

from tensorflow.python.util import deprecation

# As tf_keras words it for tf.compat.v1.layers and the cells of tf.compat.v1.nn.rnn_cell.
_OF_LAYERS = r'`[\w.]+` (is deprecated and )?will be removed in a future version'
# It logs this one of MultiRNNCell.
_LOGGED = re.compile(r'`[\w.]+` is deprecated\.')
# numpy says it of the variables of Keras 3, at the line of Keras that converts one.
_OF_KERAS_ARRAYS = r"__array__ implementation doesn't accept a copy keyword"
_KERAS_3 = r'keras\.src\.'
# Keras of TensorFlow 2.17 asks Python for a number up to 1e9, a float, at each seed.
_OF_FLOATS = r'non-integer arguments to randrange\(\)'
# numpy 1.26 says it of what TensorFlow 2.17 passes to a session.
_SESSION = r'tensorflow\.python\.client\.session'
# The tool calls an initializer again, to compare what it draws.
_OF_INITIALIZERS = r'The initializer \w+ is unseeded and being called multiple times'
# Set to anything, they are shown where cases are run by a test runner or by `verify`.
VARIABLE = 'TF2VERIFY_DEPRECATIONS'


class _OtherRecords(logging.Filter):
  """Lets through what is not about the age of a name, each text once."""

  def __init__(self) -> None:
    super().__init__()
    self._said: set[str] = set()

  def filter(self, record: logging.LogRecord) -> bool:
    text = record.getMessage()
    is_new = text not in self._said
    self._said.add(text)
    return is_new and _LOGGED.match(str(record.msg)) is None


@contextlib.contextmanager
def unsaid() -> Iterator[None]:
  """Keeps the deprecation warnings of TensorFlow and Keras back meanwhile.

  Others are shown: those that TensorFlow logs, and that of unseeded initializers, once.
  """
  # `deprecation.silence` does not put the switch back where an error ends the block.
  said = deprecation._PRINT_DEPRECATION_WARNINGS
  deprecation._PRINT_DEPRECATION_WARNINGS = False
  log, others = logging.getLogger('tensorflow'), _OtherRecords()
  log.addFilter(others)
  try:
    with warnings.catch_warnings():
      warnings.filterwarnings('ignore', message=_OF_LAYERS, category=UserWarning)
      warnings.filterwarnings(
        'ignore', message=_OF_KERAS_ARRAYS, category=DeprecationWarning, module=_KERAS_3
      )
      warnings.filterwarnings('ignore', message=_OF_FLOATS, category=DeprecationWarning)
      warnings.filterwarnings('ignore', category=FutureWarning, module=_SESSION)
      warnings.filterwarnings('once', message=_OF_INITIALIZERS, category=UserWarning)
      yield
  finally:
    log.removeFilter(others)
    deprecation._PRINT_DEPRECATION_WARNINGS = said


@contextlib.contextmanager
def unsaid_unless_asked() -> Iterator[None]:
  """Does as `unsaid`, unless the user has set TF2VERIFY_DEPRECATIONS."""
  with contextlib.nullcontext() if os.environ.get(VARIABLE) else unsaid():
    yield


@contextlib.contextmanager
def asked() -> Iterator[None]:
  """Shows them meanwhile, as if the user had set TF2VERIFY_DEPRECATIONS."""
  before = os.environ.get(VARIABLE)
  os.environ[VARIABLE] = '1'
  try:
    yield
  finally:
    os.environ.pop(VARIABLE)
    if before is not None:
      os.environ[VARIABLE] = before
