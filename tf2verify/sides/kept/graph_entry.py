"""A built graph as bytes and plain values, and back."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.records.observation import CodePlace, RandomDraw, SourceLine, VariableRecord
from tf2verify.reference.variables import static_shape
from tf2verify.sides.graphs.lines.user_sources import remember_lines, user_source
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient, GraphVariable

v1 = tf.compat.v1
Gradients = tuple[GraphGradient, ...]
# The fields of a line that hold further places.
_PLACES = ('callers', 'made', 'settings')
# They call Python functions that live as long as the process.
_PYTHON = ('PyFunc', 'EagerPyFunc', 'PyFuncStateless')


class NotKept(Exception):
  """A graph is not to be kept; the message says why."""


def entry_of(built: BuiltGraph, gradients: Gradients | None) -> tuple[dict[str, Any], bytes]:
  """Returns what is known of a graph by name, and its GraphDef.

  Raises:
    NotKept: it needs this process.
  """
  graph_def = built.graph.as_graph_def()
  nodes = [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
  for node in nodes:
    if node.op in _PYTHON:
      raise NotKept(f'{node.op} {node.name} calls a Python function')
  if any(not (leaf is None or isinstance(leaf, str)) for _, leaf in built.outputs):
    raise NotKept('an output is an array')
  lines: dict[SourceLine, int] = {}
  sources: dict[str, int] = {}
  shapes: dict[str, Any] = {}
  for op in built.graph.get_operations():
    line = user_source(op)
    if line is not None:
      sources[op.name] = lines.setdefault(line, len(lines))
    for tensor in op.outputs:
      if tensor.shape.rank is not None:
        shapes[tensor.name] = static_shape(tensor.shape)
  entry = {
    'mode': built.mode,
    'training': built.training,
    'placeholders': built.placeholders,
    'structure': built.structure,
    'outputs': built.outputs,
    'variables': [dataclasses.asdict(one) for one in built.variables],
    'regularization_losses': built.regularization_losses,
    'update_ops': built.update_ops,
    'table_initializers': built.table_initializers,
    'random_draws': [dataclasses.asdict(one) for one in built.random_draws],
    'seed_obstacle': built.seed_obstacle,
    'operation_seeds': built.operation_seeds,
    'keras_seeds': built.keras_seeds,
    'fixed_draws': [dataclasses.asdict(one) for one in built.fixed_draws],
    'gradients': None if gradients is None else [dataclasses.asdict(one) for one in gradients],
    'lines': [dataclasses.asdict(line) for line in lines],
    'sources': sources,
    'shapes': shapes,
  }
  return entry, graph_def.SerializeToString(deterministic=True)


def graph_of(entry: Mapping[str, Any], data: bytes) -> tuple[BuiltGraph, Gradients | None]:
  """Returns a graph that was kept, imported; nothing of it is run."""
  graph_def = v1.GraphDef()
  graph_def.ParseFromString(data)
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
  lines = [_known_line(line) for line in entry['lines']]
  remember_lines(graph, {name: lines[number] for name, number in entry['sources'].items()})
  _restore_shapes(graph, entry['shapes'])
  built = BuiltGraph(
    graph=graph,
    mode=entry['mode'],
    training=entry['training'],
    placeholders=_pairs(entry['placeholders']),
    structure=entry['structure'],
    outputs=_pairs(entry['outputs']),
    output_nest=None,
    variables=tuple(map(_variable, entry['variables'])),
    regularization_losses=tuple(
      (tuple(names), tensor) for names, tensor in entry['regularization_losses']
    ),
    update_ops=tuple(entry['update_ops']),
    table_initializers=tuple(entry['table_initializers']),
    random_draws=tuple(map(_draw, entry['random_draws'])),
    seed_obstacle=entry['seed_obstacle'],
    operation_seeds=entry['operation_seeds'],
    keras_seeds=tuple(entry['keras_seeds']),
    fixed_draws=tuple(map(_draw, entry['fixed_draws'])),
  )
  kept = entry['gradients']
  return built, None if kept is None else tuple(map(_gradient, kept))


def _restore_shapes(graph: tf.Graph, shapes: Mapping[str, Sequence[int | None]]) -> None:
  """Gives tensors the shapes that the builder has set, which a GraphDef does not have."""
  for op in graph.get_operations():
    for tensor in op.outputs:
      known = shapes.get(tensor.name)
      if known is not None and static_shape(tensor.shape) != tuple(known):
        tensor.set_shape(known)


def _pairs(values: Sequence[Sequence[Any]]) -> tuple[tuple[Any, Any], ...]:
  return tuple((one, other) for one, other in values)


def _line(value: Mapping[str, Any] | None) -> SourceLine | None:
  return None if value is None else _known_line(value)


def _known_line(value: Mapping[str, Any]) -> SourceLine:
  places = {field: tuple(CodePlace(**place) for place in value.get(field, ())) for field in _PLACES}
  return SourceLine(**{**value, **places})


def _variable(entry: Mapping[str, Any]) -> GraphVariable:
  record = dict(entry['record'])
  record.update(
    shape=tuple(record['shape']),
    collections=tuple(record['collections']),
    source=_line(record['source']),
  )
  return GraphVariable(**{**entry, 'record': VariableRecord(**record)})


def _draw(entry: Mapping[str, Any]) -> RandomDraw:
  return RandomDraw(**{**entry, 'shape': tuple(entry['shape']), 'source': _line(entry['source'])})


def _gradient(entry: Mapping[str, Any]) -> GraphGradient:
  return GraphGradient(**{**entry, 'shape': tuple(entry['shape'])})
