"""A recorded graph, imported to be read and run here."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.errors import NotApplicable, RecordingError
from tf2verify.recordings import observations
from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.recording import Recording
from tf2verify.records import rounds
from tf2verify.records.observation import SourceLine
from tf2verify.reference.graph_ops import ops_run_by
from tf2verify.sides.process import randomness
from tf2verify.sides.recorded import graph_safety
from tf2verify.sides.recorded.graph_safety import RefusedOp
from tf2verify.sides.recorded.stand_ins import with_stand_ins
from tf2verify.sides.tf1.graphs import seed_rewriting
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient, GraphVariable

v1 = tf.compat.v1


class RecordedBuild:
  """A graph of a recording.

  What `graph_safety` refuses, and what this TensorFlow does not have, is replaced by
  placeholders while it is imported.

  Attributes:
    built: the graph, for the randomness mode that was asked for.
    gradients: of the recorded loss, where the graph holds them.
    refused: the operations that are replaced.
    placeholders: from a tensor of theirs to the placeholder in its place.
  """

  def __init__(self, recording: Recording, entry: GraphEntry, mode: str) -> None:
    """Imports the graph.

    Raises:
      NotApplicable: this TensorFlow cannot import it, or it is not to be imported.
    """
    constant = mode == randomness.CONSTANT
    graph_def = parsed(recording.graph_def(entry, constant), recording.path)
    if constant and entry.constant_graph_def is None:
      obstacle = seed_rewriting.make_constant(entry, graph_def)
      if obstacle:
        raise RecordingError(
          f'{recording.path} has no graph of constant mode, and its graph cannot be rewritten for '
          f'that: {obstacle}; record again'
        )
    self.refused = graph_safety.refused_ops(graph_def)
    self.placeholders: Mapping[str, str] = {}
    if self.refused:
      replaced = with_stand_ins(graph_def, {op.name for op in self.refused if not op.in_function})
      graph_def, self.placeholders = replaced.graph_def, replaced.placeholders
    in_functions = [op for op in self.refused if op.in_function]
    if in_functions:
      raise NotApplicable(
        'the recorded graph is not imported: within a function, '
        f'{graph_safety.refusal_text(in_functions)}'
      )
    graph = imported(graph_def, recording.path)
    self.built = built_graph(entry, graph, mode or None)
    self.gradients = gradients_of(entry)
    self._recording = recording
    self._entry = entry
    self._lines: Mapping[str, SourceLine] | None = None

  def source_of(self, op: tf.Operation) -> SourceLine | None:
    """Returns the line of the reference's code that made an operation."""
    if self._lines is None:
      self._lines = lines_of(self._recording, self._entry)
    return self._lines.get(op.name) or self._lines.get(rounds.whole(op.name))

  def stand_ins_behind(self, names: Iterable[str]) -> tuple[RefusedOp, ...]:
    """Returns the replaced operations that operations or tensors depend on."""
    if not self.refused:
      return ()
    graph = self.built.graph
    seen = ops_run_by(graph.get_operation_by_name(name.partition(':')[0]) for name in names)
    return tuple(op for op in self.refused if op.name in seen)

  def is_given(self, op: RefusedOp, known: Mapping[str, np.ndarray]) -> bool:
    """Returns whether all that is read of a replaced operation is among some known tensors."""
    read = [tensor for tensor in self.placeholders if tensor.rpartition(':')[0] == op.name]
    return bool(read) and all(tensor in known for tensor in read)


def lines_of(recording: Recording, entry: GraphEntry) -> dict[str, SourceLine]:
  """Returns the line of the reference's code that made each operation, by its name."""
  numbers = recording.op_sources(entry).tolist()
  nodes = parsed(recording.graph_def(entry), recording.path).node
  if len(nodes) != len(numbers):
    raise RecordingError(
      f'{recording.path} has {len(numbers)} source lines for {len(nodes)} operations; record again'
    )
  lines = observations.source_lines(entry.sources)
  return {n.name: lines[line] for n, line in zip(nodes, numbers, strict=True) if line >= 0}


def parsed(data: bytes, path: str) -> Any:
  """Returns the GraphDef of serialized bytes.

  Raises:
    RecordingError: they are none, or larger than is allowed.
  """
  graph_safety.check_bytes(data, path)
  graph_def = v1.GraphDef()
  try:
    graph_def.ParseFromString(data)
  except Exception as error:
    raise RecordingError(
      f'a graph of {path} is not a GraphDef of TensorFlow: {error!s:.120}; record again'
    ) from error
  graph_safety.check_nodes(graph_def, path)
  return graph_def


def imported(graph_def: Any, path: str) -> tf.Graph:
  """Returns a graph with the operations of a GraphDef; nothing of it is run.

  Raises:
    NotApplicable: this TensorFlow cannot import it.
  """
  graph = tf.Graph()
  try:
    with graph.as_default():
      tf.import_graph_def(graph_def, name='')
  except (ValueError, TypeError, KeyError, tf.errors.OpError) as error:
    raise NotApplicable(
      f'TensorFlow {tf.__version__} cannot import the graph of {path}: {error!s:.300}'
    ) from error
  return graph


def built_graph(entry: GraphEntry, graph: tf.Graph, mode: str | None = None) -> BuiltGraph:
  """Returns an imported graph with what the recording knows of it by name."""
  return BuiltGraph(
    graph=graph,
    mode=mode or randomness.NUM_RANDOM_OPS,
    training=entry.training,
    placeholders=entry.placeholders,
    structure=entry.structure,
    outputs=entry.outputs,
    output_nest=None,
    variables=variables_of(entry),
    regularization_losses=entry.regularization_losses,
    update_ops=entry.update_ops,
    table_initializers=entry.table_initializers,
    random_draws=observations.random_draws(
      entry.random_draws, observations.source_lines(entry.sources)
    ),
    seed_obstacle=entry.seed_obstacle,
    operation_seeds=entry.operation_seeds,
  )


def variables_of(entry: GraphEntry) -> tuple[GraphVariable, ...]:
  """Returns the variables of a recorded graph."""
  lines = observations.source_lines(entry.sources)
  return tuple(
    GraphVariable(
      observations.variable_record(variable, lines),
      variable.read,
      variable.initializer,
      variable.value,
      variable.shares_value,
      variable.may_change,
      variable.local,
      variable.global_step,
    )
    for variable in entry.variables
  )


def gradients_of(entry: GraphEntry) -> tuple[GraphGradient, ...]:
  """Returns the gradients that a recorded graph holds."""
  return tuple(GraphGradient(g.variable, g.values, g.indices, g.shape) for g in entry.gradients)
