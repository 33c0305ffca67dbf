"""What a session takes for fetches, and its base class.

`tf.compat.v1.Session` has no public method that says what it would run. Run with TensorFlow
2.16 to 2.21.
"""

from typing import Any

from tensorflow.python.client import session

# Both public sessions derive from it.
BaseSession: Any = session.BaseSession


def fetched(graph: Any, fetches: Any) -> tuple[list[Any], list[Any]]:
  """Returns the tensors and the operations that a session would run.

  Args:
    graph: the session's.
    fetches: whatever `session.run` takes: nests, names, variables.

  Raises:
    TypeError, ValueError, KeyError: a session would not take them.
  """
  handler = session._FetchHandler(graph, fetches, {})
  return handler.fetches(), handler.targets()


def mark_as_closed(made: Any) -> None:
  """Lets a session that was refused in its constructor be deleted."""
  made._session = None  # its __del__ looks there
