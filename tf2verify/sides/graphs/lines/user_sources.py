"""The user's lines that made operations: by their stack, or as they were remembered."""

import dataclasses
from collections.abc import Mapping, Sequence

import tensorflow as tf

from tf2verify.records.observation import CodePlace, SourceLine
from tf2verify.sides.graphs.lines.source_lines import line_of_stack, settings_of
from tf2verify.tensorflow_internals import graphs

# Of an imported graph: where the lines of its operations are.
_LINES = '_tf2verify_lines'
# Of a traced graph: what its operations were made in.
_LAYERS = '_tf2verify_layers'
_SETTINGS = 4


@dataclasses.dataclass(frozen=True)
class Around:
  """What operations are made in."""

  layers: tuple[CodePlace, ...] = ()  # where the layers of Keras were constructed, innermost first
  # Where `arg_scope` of TF-Slim set arguments, those of the innermost function first.
  scopes: tuple[CodePlace, ...] = ()
  # What called the function that constructed the innermost layer: a helper makes many of them.
  callers: tuple[CodePlace, ...] = ()


def remember_lines(graph: tf.Graph, lines: Mapping[str, SourceLine]) -> None:
  """Lets `user_source` know the lines of an imported graph, by the names of its operations."""
  setattr(graph, _LINES, lines)


def remember_layers(graph: tf.Graph, around: Mapping[str, Around]) -> None:
  """Lets `user_source` know what operations were made in, by their names."""
  setattr(graph, _LAYERS, around)


def is_kept(graph: tf.Graph) -> bool:
  """Returns whether a graph is one of which lines were remembered."""
  return hasattr(graph, _LINES)


def user_source(op: tf.Operation) -> SourceLine | None:
  """Returns the innermost line of the user's code that made an operation."""
  lines: Mapping[str, SourceLine] | None = getattr(op.graph, _LINES, None)
  if lines is not None:
    return lines.get(op.name)
  known: Mapping[str, Around] = getattr(op.graph, _LAYERS, {})
  return with_layers(line_of_stack(graphs.stack_of(op)), known.get(op.name, Around()))


def with_layers(line: SourceLine | None, around: Around) -> SourceLine | None:
  """Returns a line with the places where the layers were constructed that it runs in.

  Without a line, as in a functional model, which calls its layers itself, that of the innermost,
  with those that called the function in which it was constructed.
  With the line go the places where its arguments, and those of the constructors, were set.
  """
  made: Sequence[CodePlace] = around.layers
  if line is None:
    if not made:
      return None
    # What it is in, the model itself, is made of such lines and says no more.
    place, made = made[0], ()
    line = SourceLine(place.path, place.line, place.function, place.code, place.last_line)
    line = dataclasses.replace(line, callers=around.callers, settings=settings_of(line))
  known = {line.at, *(place.at for place in line.callers)}
  places = tuple(place for place in made if place.at not in known)
  inner = tuple(place.line for place in made if place.path == line.path)
  found: dict[CodePlace, None] = dict.fromkeys(settings_of(line, inner) if made else line.settings)
  for place in around.scopes:
    if place.at not in known:
      found[place] = None
      found.update(dict.fromkeys(settings_of(place)))
  for place in made:
    found.update(dict.fromkeys(settings_of(place)))
  shown = known | {place.at for place in places}
  settings = tuple(place for place in found if place.at not in shown)
  return dataclasses.replace(line, made=places, settings=settings[:_SETTINGS])


def user_source_behind(tensor: tf.Tensor) -> SourceLine | None:
  """Returns the user's line that made a tensor, or what hands it on unchanged."""
  op = tensor.op
  found = user_source(op)
  while found is None and op.type == 'Identity':
    op = op.inputs[0].op
    found = user_source(op)
  return found
