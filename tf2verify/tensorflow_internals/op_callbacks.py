"""Callbacks for every operation, also where a graph is traced.

`tf.debugging` has the same only as files of dumps. Run with TensorFlow 2.16 to 2.21.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tensorflow.python.framework import op_callbacks


class Operation(NamedTuple):
  """An operation that has just run, or that was added to a graph."""

  kind: str
  inputs: Any
  outputs: Any
  name: str | None  # None for an eager one
  graph: Any  # likewise


@contextlib.contextmanager
def called(on_op: Callable[[Operation], None]) -> Iterator[None]:
  """Has every operation call a function until exit."""

  def callback(
    op_type: str | bytes,
    inputs: Any,
    attributes: Any,
    outputs: Any,
    op_name: str | bytes | None = None,
    graph: Any = None,
  ) -> None:
    del attributes
    kind = op_type if isinstance(op_type, str) else op_type.decode()
    on_op(Operation(kind, inputs, outputs, None if op_name is None else str(op_name), graph))

  op_callbacks.add_op_callback(callback)
  try:
    yield
  finally:
    op_callbacks.remove_op_callback(callback)
