"""Callbacks for every operation, also where a graph is traced.

`tf.debugging` has the same only as files of dumps. Run with TensorFlow 2.16 to 2.21.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.framework import op_callbacks


@contextlib.contextmanager
def called(on_op: Callable[..., Any]) -> Iterator[None]:
  """Has every operation call a function until exit.

  Args:
    on_op: takes type (text or bytes), inputs, attributes, outputs, and by name the
      `op_name` and the `graph`; both None for an eager operation.
  """
  op_callbacks.add_op_callback(on_op)
  try:
    yield
  finally:
    op_callbacks.remove_op_callback(on_op)
