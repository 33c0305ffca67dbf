"""Process-wide state: put back, and set where a side needs it."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from tf2verify.errors import EnvironmentProblem
from tf2verify.tensorflow_internals import autograph_cache, keras, layer_classes
from tf2verify.tensorflow_internals.process_globals import PROCESS_GLOBALS

v1 = tf.compat.v1


@contextlib.contextmanager
def preserved() -> Iterator[None]:
  """Puts every process global back on exit, also after an error.

  Inside, Keras layer classes are TF2's, whatever graphs the process has built before.
  """
  saved = [(piece, piece.read()) for piece in PROCESS_GLOBALS]
  layer_classes.use_tf2_classes()
  with contextlib.ExitStack() as stack:
    # Last in, first out: they are written in their own order, all of them, even
    # if one cannot be.
    for piece, value in reversed(saved):
      stack.callback(piece.write, value)
    stack.enter_context(autograph_cache.by_file())
    yield


def reset_names() -> None:
  """Lets names be counted from the start, so that a fresh layer has the first ones.

  Keras counts the names of layers, TensorFlow how often a variable scope is opened.
  """
  keras.reset_names()


@contextlib.contextmanager
def tf1_semantics(v2_tensorshape: bool) -> Iterator[None]:
  """Gives TF1's meaning to `==` on tensors and variables and to the items of a shape.

  On exit, Keras layer classes that were turned into TF1's are what they were.

  With tensor equality on, `variable in collection` compares elements, and every
  look-up hashes a variable slowly: 12 of the 20 seconds that building
  Inception-ResNet-v2 takes.

  Args:
    v2_tensorshape: whether `shape[i]` is an int (TF2) or a `Dimension` with a
      `.value` (TF1).
  """
  names = ('tensor equality', 'v2 tensor shapes', 'Keras layer classes')
  saved = [(piece, piece.read()) for piece in PROCESS_GLOBALS if piece.name in names]
  try:
    v1.disable_tensor_equality()
    v1.enable_v2_tensorshape() if v2_tensorshape else v1.disable_v2_tensorshape()
    yield
  finally:
    for piece, value in saved:
      piece.write(value)


@contextlib.contextmanager
def without_arithmetic_optimization() -> Iterator[None]:
  """Keeps grappler from rewriting arithmetic in functions that run inside.

  A function that was traced before is optimized anew, without being traced again.
  """
  saved = [(piece, piece.read()) for piece in PROCESS_GLOBALS if piece.name == 'grappler options']
  tf.config.optimizer.set_experimental_options({'arithmetic_optimization': False})
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
