"""A run of the reference's graph of which every tensor can be asked for."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records import rounds
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import VARIABLE
from tf2verify.sides import side
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.reading import GraphReader, Target, regularization_target
from tf2verify.sides.graphs.rewriting.unrolled_loops import is_apart, take_apart
from tf2verify.sides.graphs.rewriting.whole_writes import with_whole_writes, writes_rows, written_by
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient
from tf2verify.sides.tf1.sessions import session_values


def graph_run_of(
  run: side.RunSpec,
  built: BuiltGraph,
  gradients: Sequence[GraphGradient],
  source_of: Callable[[tf.Operation], SourceLine | None],
  given: Mapping[str, np.ndarray] | None = None,
  labels: Mapping[str, tuple[str, np.ndarray]] | None = None,
  targets: Sequence[Target] = (),
) -> GraphRun:
  """Returns a run of a graph of which every tensor can be asked for.

  Args:
    run: what to feed, and the values of the variables.
    built: the graph.
    gradients: those that are targets, besides outputs, losses and updates.
    source_of: tells the user's line of an operation.
    given: values of further placeholders, by tensor name.
    labels: by tensor name of a placeholder, what both sides call it, and its value.
    targets: further ones.
  """
  feeds = _feeds(run, built, given or {}, labels or {})
  prepare = _preparation(run, built)
  if run.unrolls:
    known = built.graph
    built = _unrolled(built, prepare, feeds, run.parts)
    source_of = of_rounds(known, source_of)
  if any(writes_rows(op.type) for op in built.graph.get_operations()):
    graph_def = built.graph.as_graph_def()
    with_whole_writes(graph_def)
    source_of = _of_writes(built.graph, source_of)
    built = dataclasses.replace(built, graph=imported(graph_def))
  handles = {
    built.graph.get_operation_by_name(variable.initializer).inputs[0].op.name: variable
    for variable in built.variables
  }
  reader = GraphReader(
    built.graph,
    {op_name: variable.record.name for op_name, variable in handles.items()},
    {
      **{name.rpartition(':')[0]: path for path, name in built.placeholders},
      **{name.rpartition(':')[0]: f'recorded {name}' for name in given or {}},
      **{name.rpartition(':')[0]: label for name, (label, _) in (labels or {}).items()},
    },
    {},
    source_of,
  )
  wanted = [*_targets(built, gradients), *targets]
  op_graph = reader.read(wanted, built.update_ops, side.TF1)
  read = {op.name: op.tensors[0] for op in op_graph.ops if op.op_type == VARIABLE}
  reads = {
    op_name: read[variable.record.name]
    for op_name, variable in handles.items()
    if variable.record.name in read
  }
  return GraphRun(op_graph, built.graph, feeds, prepare, reads)


def _feeds(
  run: side.RunSpec,
  built: BuiltGraph,
  given: Mapping[str, np.ndarray],
  labels: Mapping[str, tuple[str, np.ndarray]],
) -> dict[str, np.ndarray]:
  fed = {name: value for name, (_, value) in labels.items()}
  return {**session_values.feeds(built, run.inputs), **given, **fed}


def _preparation(run: side.RunSpec, built: BuiltGraph) -> Callable[[Any], None]:
  """Returns what gives the variables of a session their values."""

  def prepare(session: Any) -> None:
    session_values.fetch(session, built.table_initializers)
    session_values.assign(session, built.variables, run)

  return prepare


def _unrolled(
  built: BuiltGraph,
  prepare: Callable[[Any], None],
  feeds: Mapping[str, np.ndarray],
  in_parts: bool,
) -> BuiltGraph:
  """Returns a graph with the rounds of its loops; itself without loops."""
  if is_apart(built.graph) and not in_parts:
    return built
  graph_def = built.graph.as_graph_def()

  def evaluate(tensors: Sequence[str]) -> Sequence[np.ndarray]:
    with open_session(imported(graph_def)) as session:
      prepare(session)
      return session.run(list(tensors), feeds)  # type: ignore[no-any-return]

  take_apart(graph_def, evaluate, in_parts)
  return dataclasses.replace(built, graph=imported(graph_def))


def _of_writes(
  graph: tf.Graph, source_of: Callable[[tf.Operation], SourceLine | None]
) -> Callable[[tf.Operation], SourceLine | None]:
  """Returns what tells the user's line of an operation, of a graph with whole writes."""

  def line_of(op: tf.Operation) -> SourceLine | None:
    return source_of(graph.get_operation_by_name(written_by(op.name)))

  return line_of


def of_rounds(
  graph: tf.Graph, source_of: Callable[[tf.Operation], SourceLine | None]
) -> Callable[[tf.Operation], SourceLine | None]:
  """Returns what tells the user's line of an operation; in a loop, that of the loop at least.

  Args:
    graph: the graph with its loops.
    source_of: tells the line of an operation, also of one in a loop.
  """

  def line_of(op: tf.Operation) -> SourceLine | None:
    loop = rounds.outermost_loop(op.name)
    # Gradients of rounds have names within a loop that there is not.
    made = None if loop is None else operation(graph, loop)
    return source_of(op) or (None if made is None else source_of(made))

  return line_of


def _targets(built: BuiltGraph, gradients: Sequence[GraphGradient]) -> list[Target]:
  found = [Target(f'output {path}', (t,)) for path, t in built.outputs if isinstance(t, str)]
  losses: dict[str, str] = {}
  for number, (variables, tensor) in enumerate(built.regularization_losses):
    losses[regularization_target(variables, number, losses)] = tensor
  found += [Target(name, (tensor,)) for name, tensor in losses.items()]
  for gradient in gradients:
    if gradient.values is not None:
      tensors = (gradient.values, *((gradient.indices,) if gradient.indices else ()))
      found.append(Target(f'gradient {gradient.variable}', tensors))
  return found
