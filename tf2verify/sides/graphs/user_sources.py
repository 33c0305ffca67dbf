"""The user's lines that made operations: by their stack, or as they were remembered."""

import dataclasses
from collections.abc import Mapping, Sequence

import tensorflow as tf

from tf2verify.records.observation import CodePlace, SourceLine
from tf2verify.sides.graphs.source_lines import line_of_stack

# Of an imported graph: where the lines of its operations are.
_LINES = '_tf2verify_lines'
# Of a traced graph: where the layers were constructed that made its operations.
_LAYERS = '_tf2verify_layers'


def remember_lines(graph: tf.Graph, lines: Mapping[str, SourceLine]) -> None:
  """Lets `user_source` know the lines of an imported graph, by the names of its operations."""
  setattr(graph, _LINES, lines)


def remember_layers(graph: tf.Graph, made: Mapping[str, tuple[CodePlace, ...]]) -> None:
  """Lets `user_source` know where the layers were constructed that made operations, by name."""
  setattr(graph, _LAYERS, made)


def is_kept(graph: tf.Graph) -> bool:
  """Returns whether a graph is one of which lines were remembered."""
  return hasattr(graph, _LINES)


def user_source(op: tf.Operation) -> SourceLine | None:
  """Returns the innermost line of the user's code that made an operation."""
  lines: Mapping[str, SourceLine] | None = getattr(op.graph, _LINES, None)
  if lines is not None:
    return lines.get(op.name)
  layers: Mapping[str, tuple[CodePlace, ...]] = getattr(op.graph, _LAYERS, {})
  return with_layers(line_of_stack(op.traceback), layers.get(op.name, ()))


def with_layers(line: SourceLine | None, made: Sequence[CodePlace]) -> SourceLine | None:
  """Returns a line with the places where the layers were constructed that it runs in.

  Without a line, as in a functional model, which calls its layers itself, that of the innermost.
  """
  if line is None:
    if not made:
      return None
    place, *made = made
    line = SourceLine(place.path, place.line, place.function, place.code, place.last_line)
  known = {(line.path, line.line), *((place.path, place.line) for place in line.callers)}
  places = tuple(place for place in made if (place.path, place.line) not in known)
  return dataclasses.replace(line, made=places) if places else line


def user_source_behind(tensor: tf.Tensor) -> SourceLine | None:
  """Returns the user's line that made a tensor, or what hands it on unchanged."""
  op = tensor.op
  found = user_source(op)
  while found is None and op.type == 'Identity':
    op = op.inputs[0].op
    found = user_source(op)
  return found
