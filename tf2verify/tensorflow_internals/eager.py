"""The eager context of the process.

TensorFlow has no public way to ask whether it has started without starting it, to be eager
inside a graph of another thread, or to ask for the mode that a new thread gets. Run with
TensorFlow 2.16 to 2.21.
"""

from typing import Any

from tensorflow.python.eager import context
from tensorflow.python.framework import config
from tensorflow.python.ops import stateful_random_ops
from tensorflow.python.util import _pywrap_util_port


def has_started() -> bool:
  """Returns whether TensorFlow has computed something, so that devices cannot be divided."""
  return bool(context.context()._initialized)


def eager_mode() -> Any:
  """Returns a context manager in which operations run eagerly, also inside a graph."""
  return context.eager_mode()


def default_execution_mode() -> int:
  """Returns whether a new thread is eager."""
  return int(context.default_execution_mode)


def forget_global_generator() -> None:
  """Has the next use of the global `tf.random.Generator` make a new one."""
  stateful_random_ops.global_generator = None


def is_op_determinism_enabled() -> bool:
  """Returns whether operations have to be deterministic."""
  return bool(config.is_op_determinism_enabled())


def disable_op_determinism() -> None:
  """Takes `tf.config.experimental.enable_op_determinism` back."""
  config.disable_op_determinism()


def is_onednn_enabled() -> bool:
  """Returns whether this build computes by oneDNN on this processor."""
  return bool(_pywrap_util_port.IsMklEnabled())
