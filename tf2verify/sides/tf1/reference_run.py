"""A run of the reference's graph of which every tensor can be asked for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import VARIABLE
from tf2verify.sides import side
from tf2verify.sides.graphs.reading import GraphReader, Target, target_name
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf1 import session_values
from tf2verify.sides.tf1.build import BuiltGraph, GraphGradient


def graph_run_of(
  run: side.FilledRun,
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
    gradients: those that are targets, beside outputs, losses and updates.
    source_of: tells the user's line of an operation.
    given: values of further placeholders, by tensor name.
    labels: by tensor name of a placeholder, what both sides call it, and its value.
    targets: further ones.
  """
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

  def prepare(session: Any) -> None:
    session_values.fetch(session, built.table_initializers)
    session_values.assign(session, built.variables, run)

  fed = {name: value for name, (_, value) in (labels or {}).items()}
  feeds = {**session_values.feeds(built, run.inputs), **(given or {}), **fed}
  return GraphRun(op_graph, built.graph, feeds, prepare, reads)


def _targets(built: BuiltGraph, gradients: Sequence[GraphGradient]) -> list[Target]:
  found = [Target(f'output {path}', (t,)) for path, t in built.outputs if isinstance(t, str)]
  losses: dict[str, str] = {}
  for number, (variables, tensor) in enumerate(built.regularization_losses):
    losses[target_name('regularization loss', variables, number, losses)] = tensor
  found += [Target(name, (tensor,)) for name, tensor in losses.items()]
  for gradient in gradients:
    if gradient.values is not None:
      tensors = (gradient.values, *((gradient.indices,) if gradient.indices else ()))
      found.append(Target(f'gradient {gradient.variable}', tensors))
  return found
