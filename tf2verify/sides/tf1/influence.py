"""What of a TF1 graph no number that it yields depends on."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.sides.tf1.build import BuiltGraph


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
  reached = _reached(built.graph.get_operation_by_name(name) for name in _numbers(built))
  return tuple(path for path, name in built.placeholders if _op_name(name) in reached)


def recorded_inputs_read(entry: GraphEntry, graph_def: Any) -> tuple[str, ...]:
  """Returns the same of a recorded graph, by its nodes alone."""
  reach = recorded_reach(dataclasses.replace(entry, update_ops=()), graph_def)
  return tuple(path for path, counts in reach.inputs if counts)


def _reach(built: BuiltGraph, outputs_only: bool) -> Reach:
  reached = _ops_behind(built, outputs_only)

  def handle(initializer: str) -> str:
    return str(built.graph.get_operation_by_name(initializer).inputs[0].op.name)

  return Reach(
    tuple(
      (variable.record.name, handle(variable.initializer) in reached)
      for variable in built.variables
      if not variable.local and not variable.global_step
    ),
    tuple((path, _op_name(name) in reached) for path, name in built.placeholders),
  )


def recorded_reach(entry: GraphEntry, graph_def: Any, outputs_only: bool = False) -> Reach:
  """Returns what the numbers of a recorded graph depend on, by its nodes alone."""
  inputs = {node.name: node.input for node in graph_def.node}
  names = [_op_name(tensor) for _, tensor in entry.outputs if tensor is not None]
  if not outputs_only:
    names += [_op_name(tensor) for _, tensor in entry.regularization_losses]
    names += entry.update_ops
  reached: set[str] = set()
  pending = names
  while pending:
    name = pending.pop()
    if name not in reached:
      reached.add(name)
      pending += [_op_name(before) for before in inputs.get(name, ())]

  def handle(initializer: str) -> str:
    return next((_op_name(before) for before in inputs.get(initializer, ())), '')

  return Reach(
    tuple(
      (variable.name, handle(variable.initializer) in reached)
      for variable in entry.variables
      if not variable.local and not variable.global_step
    ),
    tuple((path, _op_name(name) in reached) for path, name in entry.placeholders),
  )


def _op_name(tensor: str) -> str:
  """Returns the operation of a tensor, or of an input of a node: `x`, `x:1`, `^x`."""
  return tensor.lstrip('^').partition(':')[0]


def _ops_behind(built: BuiltGraph, outputs_only: bool) -> set[str]:
  names = _outputs(built) if outputs_only else [*_numbers(built), *built.update_ops]
  return _reached(built.graph.get_operation_by_name(name) for name in names)


def _outputs(built: BuiltGraph) -> list[str]:
  """Returns the operations of the outputs."""
  tensors = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  return [name.rpartition(':')[0] for name in tensors]


def _numbers(built: BuiltGraph) -> list[str]:
  """Returns the operations of the outputs and regularization losses."""
  losses = [tensor.rpartition(':')[0] for _, tensor in built.regularization_losses]
  return _outputs(built) + losses


def _reached(ops: Iterable[tf.Operation]) -> set[str]:
  pending = list(ops)
  seen = {op.name for op in pending}
  while pending:
    op = pending.pop()
    for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
      if before.name not in seen:
        seen.add(before.name)
        pending.append(before)
  return seen
