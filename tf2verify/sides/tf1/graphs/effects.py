"""The reference's graphs as programs whose effects can be asked for."""

from collections.abc import Callable, Iterable
from typing import Any

from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.records.observation import SourceLine
from tf2verify.reference.graph_ops import op_name_of, ops_run_by
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.variables.effects import Program, output_name
from tf2verify.sides.side import training_name
from tf2verify.sides.tf1.graphs.build import BuiltGraph


def program_of(
  built: BuiltGraph, losses: Iterable[tuple[str, str]] = (), runs: Iterable[str] = ()
) -> Program:
  """Returns a graph that was built here.

  Args:
    built: the graph.
    losses: tensors that are compared besides its outputs, and what they are.
    runs: operations that are run besides its update ops.
  """
  graph = built.graph

  def handle(initializer: str) -> str:
    return str(graph.get_operation_by_name(initializer).inputs[0].op.name)

  def source_of(name: str) -> SourceLine | None:
    return user_source(graph.get_operation_by_name(name))

  handles = {
    variable.record.name: handle(variable.initializer)
    for variable in built.variables
    if not variable.local
  }
  sinks = _sinks(built, losses)
  return Program(
    f'{training_name(built.training)} graph',
    graph.as_graph_def(),
    handles,
    sinks,
    (*built.update_ops, *runs),
    source_of,
  )


def operations_run(built: BuiltGraph) -> int:
  """Returns how many operations outputs, regularization losses and updates need."""
  graph = built.graph
  tensors = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  tensors += [tensor for _, tensor in built.regularization_losses]
  ops = [graph.get_tensor_by_name(name).op for name in tensors]
  return len(ops_run_by([*ops, *map(graph.get_operation_by_name, built.update_ops)]))


def recorded_program(
  entry: GraphEntry,
  graph_def: Any,
  source_of: Callable[[str], SourceLine | None],
  losses: Iterable[tuple[str, str]] = (),
  runs: Iterable[str] = (),
) -> Program:
  """Returns a recorded graph, by its nodes alone; the arguments as of `program_of`."""
  inputs = {node.name: node.input for node in graph_def.node}
  handles = {
    variable.name: op_name_of(inputs[variable.initializer][0])
    for variable in entry.variables
    if not variable.local and inputs.get(variable.initializer)
  }
  return Program(
    f'{training_name(entry.training)} graph',
    graph_def,
    handles,
    _sinks(entry, losses),
    (*entry.update_ops, *runs),
    source_of,
  )


def _sinks(
  graph: BuiltGraph | GraphEntry, losses: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
  outputs = [(leaf, output_name(path)) for path, leaf in graph.outputs if isinstance(leaf, str)]
  regularization = [(name, 'a regularization loss') for _, name in graph.regularization_losses]
  named = [*outputs, *losses, *regularization]
  return tuple((op_name_of(tensor), what) for tensor, what in named)
