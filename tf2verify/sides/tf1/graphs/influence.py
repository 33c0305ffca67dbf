"""What of a TF1 graph no number that it yields depends on."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.reference.graph_ops import op_name_of, ops_run_by, reached
from tf2verify.sides.tf1.graphs.build import BuiltGraph


@dataclasses.dataclass(frozen=True)
class WithoutInfluence:
  """What no output, regularization loss or update op depends on, in any training mode.

  Attributes:
    variables: names, in the order of creation.
    inputs: paths in the nest of inputs; `(the input)` where that is not a nest.
  """

  variables: tuple[str, ...]
  inputs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Reach:
  """What the numbers of one graph depend on.

  Attributes:
    variables: name, and whether some number depends on it.
    inputs: path, likewise.
  """

  variables: tuple[tuple[str, bool], ...]
  inputs: tuple[tuple[str, bool], ...]


def without_influence(graphs: Sequence[BuiltGraph], outputs_only: bool = False) -> WithoutInfluence:
  """Returns what the numbers of these graphs do not depend on.

  A path in the graph counts as an influence, whatever its operations do. The global
  step and local variables are not part of the model.

  Args:
    graphs: one of each training mode.
    outputs_only: whether regularization losses and update ops count for nothing.
  """
  return combined([_reach(built, outputs_only) for built in graphs])


def combined(reaches: Sequence[Reach]) -> WithoutInfluence:
  """Returns what no number depends on in any of several graphs."""
  variables: dict[str, bool] = {}
  inputs: dict[str, bool] = {}
  for reach in reaches:
    for name, counts in reach.variables:
      variables[name] = variables.get(name, False) or counts
    for path, counts in reach.inputs:
      inputs[path] = inputs.get(path, False) or counts
  return WithoutInfluence(
    tuple(name for name, counts in variables.items() if not counts),
    tuple(path or '(the input)' for path, counts in inputs.items() if not counts),
  )


def inputs_read(built: BuiltGraph) -> tuple[str, ...]:
  """Returns the paths of the inputs on which an output or a regularization loss depends."""
  found = ops_run_by(built.graph.get_operation_by_name(name) for name in _numbers(built))
  return tuple(path for path, name in built.placeholders if op_name_of(name) in found)


def recorded_inputs_read(entry: GraphEntry, graph_def: Any) -> tuple[str, ...]:
  """Returns the same of a recorded graph, by its nodes alone."""
  reach = recorded_reach(dataclasses.replace(entry, update_ops=()), graph_def)
  return tuple(path for path, counts in reach.inputs if counts)


def _reach(built: BuiltGraph, outputs_only: bool) -> Reach:
  found = _ops_behind(built, outputs_only)

  def handle(initializer: str) -> str:
    return str(built.graph.get_operation_by_name(initializer).inputs[0].op.name)

  return Reach(
    tuple(
      (variable.record.name, handle(variable.initializer) in found)
      for variable in built.variables
      if not variable.local and not variable.global_step
    ),
    tuple((path, op_name_of(name) in found) for path, name in built.placeholders),
  )


def recorded_reach(entry: GraphEntry, graph_def: Any, outputs_only: bool = False) -> Reach:
  """Returns what the numbers of a recorded graph depend on, by its nodes alone."""
  inputs = {node.name: node.input for node in graph_def.node}
  names = [op_name_of(tensor) for _, tensor in entry.outputs if tensor is not None]
  if not outputs_only:
    names += [op_name_of(tensor) for _, tensor in entry.regularization_losses]
    names += entry.update_ops

  def before(name: str) -> list[str]:
    return [op_name_of(tensor) for tensor in inputs.get(name, ())]

  def handle(initializer: str) -> str:
    return next(iter(before(initializer)), '')

  found = set(reached(names, before))

  return Reach(
    tuple(
      (variable.name, handle(variable.initializer) in found)
      for variable in entry.variables
      if not variable.local and not variable.global_step
    ),
    tuple((path, op_name_of(name) in found) for path, name in entry.placeholders),
  )


def _ops_behind(built: BuiltGraph, outputs_only: bool) -> set[str]:
  names = _outputs(built) if outputs_only else [*_numbers(built), *built.update_ops]
  return set(ops_run_by(built.graph.get_operation_by_name(name) for name in names))


def _outputs(built: BuiltGraph) -> list[str]:
  """Returns the operations of the outputs."""
  tensors = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  return [name.rpartition(':')[0] for name in tensors]


def _numbers(built: BuiltGraph) -> list[str]:
  """Returns the operations of the outputs and regularization losses."""
  losses = [tensor.rpartition(':')[0] for _, tensor in built.regularization_losses]
  return _outputs(built) + losses
