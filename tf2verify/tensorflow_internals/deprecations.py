"""What TensorFlow says about the age of TF1's code, which the port is there to replace."""

import contextlib
import warnings
from collections.abc import Iterator

from tensorflow.python.util import deprecation

# As tf_keras words it for tf.compat.v1.layers and the cells of tf.compat.v1.nn.rnn_cell.
_OF_LAYERS = r'`[\w.]+` (is deprecated and )?will be removed in a future version'


@contextlib.contextmanager
def unsaid() -> Iterator[None]:
  """Keeps TensorFlow's deprecation warnings back meanwhile; every other warning is shown."""
  # `deprecation.silence` does not put the switch back where an error ends the block.
  said = deprecation._PRINT_DEPRECATION_WARNINGS
  deprecation._PRINT_DEPRECATION_WARNINGS = False
  try:
    with warnings.catch_warnings():
      warnings.filterwarnings('ignore', message=_OF_LAYERS, category=UserWarning)
      yield
  finally:
    deprecation._PRINT_DEPRECATION_WARNINGS = said
