"""Process-wide state: put back, and set where a side needs it."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tf2verify.errors import EnvironmentProblem
from tf2verify.reference import tf1_semantics as reference_semantics
from tf2verify.sides.process import own_arithmetic, randomness
from tf2verify.tensorflow_internals import autograph_cache, keras, keras3, layer_classes
from tf2verify.tensorflow_internals.process_globals import PROCESS_GLOBALS

# The oldest TensorFlow whose remapper all examples have been through without arithmetic
# optimization. That of 2.16.2, with oneDNN, ends the process with a segmentation fault on the
# attention of the transformer block of the examples.
_REMAPS = (2, 21)


@contextlib.contextmanager
def preserved() -> Iterator[None]:
  """Puts every process global back on exit, also after an error.

  Inside, Keras layer classes are TF2's, whatever graphs the process has built before, and numpy is
  silent outside of the user's code.
  """
  saved = [(piece, piece.read()) for piece in PROCESS_GLOBALS]
  layer_classes.use_tf2_classes()
  with contextlib.ExitStack() as stack:
    # Last in, first out: they are written in their own order, all of them, even
    # if one cannot be.
    for piece, value in reversed(saved):
      stack.callback(piece.write, value)
    # Kernels that have drawn draw on where the process goes on.
    stack.callback(randomness.forget_draws)
    stack.enter_context(autograph_cache.by_file())
    stack.enter_context(own_arithmetic.silent())
    yield


def reset_names() -> None:
  """Lets names be counted from the start, so that a fresh layer has the first ones.

  Keras counts the names of layers, TensorFlow how often a variable scope is opened.
  """
  keras.reset_names()
  keras3.reset_names()


@contextlib.contextmanager
def tf1_semantics(v2_tensorshape: bool) -> Iterator[None]:
  """Gives TF1's meaning to tensors and shapes, as `reference.tf1_semantics` does.

  On exit, Keras layer classes that were turned into TF1's are what they were, too.
  """
  with _put_back('Keras layer classes'), reference_semantics.tf1_semantics(v2_tensorshape):
    yield


@contextlib.contextmanager
def without_arithmetic_optimization() -> Iterator[None]:
  """Keeps grappler from rewriting arithmetic in functions that run inside.

  A function that was traced before is optimized anew, without being traced again.
  """
  options = {'arithmetic_optimization': False}
  if tuple(int(part) for part in tf.__version__.split('.')[:2]) < _REMAPS:
    options['remapping'] = False
  with _put_back('grappler options'):
    tf.config.optimizer.set_experimental_options(options)
    yield


@contextlib.contextmanager
def _put_back(name: str) -> Iterator[None]:
  """Puts the process global of a name back on exit."""
  saved = [(piece, piece.read()) for piece in PROCESS_GLOBALS if piece.name == name]
  try:
    yield
  finally:
    for piece, value in saved:
      piece.write(value)


def require_eager() -> None:
  """Raises `EnvironmentProblem` where eager execution is off."""
  if not tf.executing_eagerly():
    raise EnvironmentProblem(
      'eager execution is off, so the tf2 side cannot run: a module that was imported called '
      'tf.disable_v2_behavior() or tf.disable_eager_execution(), as TF1 files do at their top; '
      'remove that line (tf2verify runs the builder inside a tf.Graph, where TF1 semantics hold '
      'anyway)'
    )
