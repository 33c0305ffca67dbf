"""The user's lines that made operations: by their stack, or as they were remembered."""

from collections.abc import Mapping

import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.sides.graphs.source_lines import is_own_file, is_user_file, source_line

# Of an imported graph: where the lines of its operations are.
_LINES = '_tf2verify_lines'


def remember_lines(graph: tf.Graph, lines: Mapping[str, SourceLine]) -> None:
  """Lets `user_source` know the lines of an imported graph, by the names of its operations."""
  setattr(graph, _LINES, lines)


def is_kept(graph: tf.Graph) -> bool:
  """Returns whether a graph is one of which lines were remembered."""
  return hasattr(graph, _LINES)


def user_source(op: tf.Operation) -> SourceLine | None:
  """Returns the innermost line of the user's code that made an operation."""
  lines: Mapping[str, SourceLine] | None = getattr(op.graph, _LINES, None)
  if lines is not None:
    return lines.get(op.name)
  for frame in reversed(op.traceback):
    if is_user_file(frame.filename):
      return source_line(frame.filename, frame.lineno, frame.name)
    if is_own_file(frame.filename):
      return None  # further out there is whoever runs tf2verify
  return None


def user_source_behind(tensor: tf.Tensor) -> SourceLine | None:
  """Returns the user's line that made a tensor, or what hands it on unchanged."""
  op = tensor.op
  found = user_source(op)
  while found is None and op.type == 'Identity':
    op = op.inputs[0].op
    found = user_source(op)
  return found
