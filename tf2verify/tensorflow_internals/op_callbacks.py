"""Callbacks for every operation, also where a graph is traced.

`tf.debugging` has the same only as files of dumps. Run with TensorFlow 2.16 to 2.21.
"""

import contextlib
import contextvars
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
  attributes: tuple[Any, ...] = ()  # of an eager one: names and values in turn

  @property
  def seeds(self) -> tuple[int, int] | None:
    """The seeds of an eager op that draws by a kernel of its own; None of any other."""
    given = dict(zip(self.attributes[::2], self.attributes[1::2], strict=False))
    return (given['seed'], given['seed2']) if 'seed2' in given else None


_TOLD_AS: contextvars.ContextVar[str | None] = contextvars.ContextVar(
  'tf2verify_told_as', default=None
)


@contextlib.contextmanager
def told_as(kind: str) -> Iterator[None]:
  """Has an eager operation that stands in for another told of as that one, without attributes."""
  token = _TOLD_AS.set(kind)
  try:
    yield
  finally:
    _TOLD_AS.reset(token)


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
    standing_for = _TOLD_AS.get() if graph is None else None
    if standing_for is not None:
      on_op(Operation(standing_for, inputs[:1], outputs, None, None))
      return
    kind = op_type if isinstance(op_type, str) else op_type.decode()
    name = None if op_name is None else str(op_name)
    own = () if graph is not None or attributes is None else attributes
    on_op(Operation(kind, inputs, outputs, name, graph, own))

  op_callbacks.add_op_callback(callback)
  try:
    yield
  finally:
    op_callbacks.remove_op_callback(callback)
