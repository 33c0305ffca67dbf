"""What of a TF1 graph no number that it yields depends on."""

import dataclasses
from collections.abc import Iterable, Sequence

import tensorflow as tf

from tf2verify.sides.tf1_build import BuiltGraph


@dataclasses.dataclass(frozen=True)
class WithoutInfluence:
  """What no output, regularization loss or update op depends on, in any training mode.

  Attributes:
    variables: names, in the order of creation.
    inputs: paths in the nest of inputs; `(the input)` where that is no nest.
  """

  variables: tuple[str, ...]
  inputs: tuple[str, ...]


def without_influence(graphs: Sequence[BuiltGraph]) -> WithoutInfluence:
  """Returns what the numbers of these graphs do not depend on.

  A path in the graph counts as an influence, whatever its operations do. The global
  step and local variables are not part of the model.
  """
  variables: dict[str, bool] = {}
  inputs: dict[str, bool] = {}
  for built in graphs:
    reached = _ops_behind(built)
    for variable in built.variables:
      if not variable.local and not variable.global_step:
        handle = built.graph.get_operation_by_name(variable.initializer).inputs[0].op.name
        name = variable.record.name
        variables[name] = variables.get(name, False) or handle in reached
    for path, placeholder in built.placeholders:
      op_name = placeholder.rpartition(':')[0]
      inputs[path] = inputs.get(path, False) or op_name in reached
  return WithoutInfluence(
    tuple(name for name, counts in variables.items() if not counts),
    tuple(path or '(the input)' for path, counts in inputs.items() if not counts),
  )


def _ops_behind(built: BuiltGraph) -> set[str]:
  tensors = [leaf for _, leaf in built.outputs if isinstance(leaf, str)]
  tensors += [tensor for _, tensor in built.regularization_losses]
  names = [name.rpartition(':')[0] for name in tensors] + list(built.update_ops)
  return _reached(built.graph.get_operation_by_name(name) for name in names)


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
