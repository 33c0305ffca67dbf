"""What a session reads and writes: the values of a graph's variables, and its gradients."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.gradient_clips import norm
from tf2verify.numerics.set_aside import set_aside
from tf2verify.records.observation import Slices, TensorRecord
from tf2verify.reference import nests
from tf2verify.reference.graph_ops import ops_behind, ops_run_by
from tf2verify.reference.perturbation import Perturber
from tf2verify.reference.variables import writes
from tf2verify.sides import side
from tf2verify.sides.graphs.variables.late_reads import is_reference
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.tf1.graphs.build import BuiltGraph, GraphGradient, GraphVariable

# Variables are fed in portions of about this size, to bound memory.
_PORTION_BYTES = 64 * 2**20


def fetch(
  session: Any, fetches: Sequence[str], feeds: Mapping[str, np.ndarray] | None = None
) -> list[Any]:
  """Runs ops and tensors by name; an error is the user's graph's, seen with their feeds."""
  if not fetches:
    return []
  with user_code(side.TF1, 'running the graph of build_tf1_graph'):
    return session.run(list(fetches), feeds)  # type: ignore[no-any-return]


def fetched(
  session: Any, names: Sequence[str], feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Returns tensors by name, copied: the next run of the session does not change them."""
  values = fetch(session, names, feeds)
  return {name: np.array(value) for name, value in zip(names, values, strict=True)}


def initializers(built: BuiltGraph) -> list[str]:
  """Returns the names of the ops that give every variable its own initial value."""
  return [variable.initializer for variable in built.variables]


def _portions(variables: Sequence[GraphVariable]) -> Iterator[list[GraphVariable]]:
  """Splits the variables into portions of about `_PORTION_BYTES`."""
  portion: list[GraphVariable] = []
  size = 0
  for variable in variables:
    shape, dtype = variable.record.shape, tf.as_dtype(variable.record.dtype)
    portion.append(variable)
    size += math.prod(dimension or 1 for dimension in shape) * max(dtype.size, 1)
    if size > _PORTION_BYTES:
      yield portion
      portion, size = [], 0
  if portion:
    yield portion


def read_all(session: Any, variables: Sequence[GraphVariable]) -> list[np.ndarray]:
  """Returns the variables' values, local ones too."""
  return [np.asarray(value) for value in fetch(session, [v.read for v in variables])]


def copy_all(session: Any, variables: Sequence[GraphVariable]) -> list[np.ndarray]:
  """Returns the variables' values, set aside, to be read once the session is closed."""
  found: list[np.ndarray] = []
  for portion in _portions(variables):
    found += set_aside([np.array(value) for value in read_all(session, portion)])
  return found


def read_variables(session: Any, variables: Sequence[GraphVariable]) -> tuple[TensorRecord, ...]:
  """Reads the variables' values, which share the session's memory until a variable changes."""
  owned = [variable for variable in variables if not variable.local]
  values = fetch(session, [variable.read for variable in owned])
  return tuple(
    TensorRecord(variable.record.name, np.asarray(value))
    for variable, value in zip(owned, values, strict=True)
  )


def read_again(
  session: Any, variables: Sequence[GraphVariable], before: Sequence[TensorRecord]
) -> tuple[TensorRecord, ...]:
  """Reads the variables that may have changed; the others keep the record before."""
  changed = [variable for variable in variables if variable.may_change]
  after = {record.name: record for record in read_variables(session, changed)}
  return tuple(after.get(record.name, record) for record in before)


def assign(session: Any, variables: Sequence[GraphVariable], run: side.RunSpec) -> None:
  """Gives every variable its value: filled, or initial where the fill has none."""
  unfilled: list[str] = []
  for portion in _portions(variables):
    values = [(variable, run.value_for(variable.record)) for variable in portion]
    unfilled += [variable.initializer for variable, value in values if value is None]
    write(session, [(variable, value) for variable, value in values if value is not None])
  fetch(session, unfilled)


def initialize_after(
  session: Any, added: Sequence[GraphVariable], variables: Sequence[GraphVariable]
) -> None:
  """Initializes variables beside others, which have their values.

  One that is initialized with the initial value of another (`v.initial_value`, to average
  it by hand) starts with the value that it has.
  """
  behind = ops_behind([session.graph.get_tensor_by_name(known.value) for known in added])
  own = [
    variable
    for variable in variables
    # Not a constant that both happen to be initialized with.
    if variable.value.startswith(f'{variable.record.name}/')
    and variable.value.partition(':')[0] in behind
  ]
  feeds = {v.value: value for v, value in zip(own, read_all(session, own), strict=True)}
  fetch(session, [variable.initializer for variable in added], feeds)


def move(session: Any, variables: Sequence[GraphVariable], perturber: Perturber) -> None:
  """Moves the value that every floating variable has."""
  owned = [variable for variable in variables if not variable.local]
  for portion in _portions(owned):
    values = map(np.asarray, fetch(session, [variable.read for variable in portion]))
    pairs = list(zip(portion, values, strict=True))
    moved = [perturber.variable(variable.record.name, value) for variable, value in pairs]
    write(
      session,
      [(pair[0], value) for pair, value in zip(pairs, moved, strict=True) if value is not pair[1]],
    )


def write(session: Any, values: Sequence[tuple[GraphVariable, np.ndarray]]) -> None:
  """Initializes variables with values of their own, in one run as far as that is possible."""
  together = [(variable, value) for variable, value in values if not variable.shares_value]
  feeds = {variable.value: value for variable, value in together}
  fetch(session, [variable.initializer for variable, _ in together], feeds)
  for variable, value in values:
    if variable.shares_value:
      fetch(session, [variable.initializer], {variable.value: value})


@contextlib.contextmanager
def values_kept(
  session: Any, variables: Sequence[GraphVariable], tensors: Sequence[str]
) -> Iterator[None]:
  """Gives variables back, at the end, the values that fetching tensors changes.

  Gradients that are formed under a control dependency on update ops run these, and so does a
  learning rate that is a constant made there.

  Args:
    session: holds the variables.
    variables: of its graph.
    tensors: what is fetched in the meantime, by name.
  """
  graph = session.graph
  run = ops_run_by([graph.get_tensor_by_name(name).op for name in tensors]).values()
  written = {
    tensor.op.name
    for op in run
    for tensor in op.inputs
    if (tensor.dtype == tf.resource or is_reference(tensor.dtype)) and writes(op, tensor)
  }
  kept = [
    variable
    for variable in variables
    if written & ops_behind([graph.get_tensor_by_name(variable.read)]).keys()
  ]
  values = copy_all(session, kept)
  try:
    yield
  finally:
    write(session, list(zip(kept, values, strict=True)))


def fetch_alone(
  session: Any,
  variables: Sequence[GraphVariable],
  tensors: Sequence[str],
  feeds: Mapping[str, np.ndarray],
) -> list[Any]:
  """Fetches tensors, see `fetch`, and leaves variables as they were, see `values_kept`."""
  with values_kept(session, variables, tensors):
    return [np.array(value) for value in fetch(session, tensors, feeds)]


def feeds(built: BuiltGraph, inputs: Any) -> dict[str, np.ndarray]:
  """Returns the arrays of a nest by the names of the placeholders that take them."""
  leaves = nests.leaves_by_path(inputs)
  return {name: leaves[path] for path, name in built.placeholders}


def gradient_record(gradient: GraphGradient, values: Mapping[str, Any]) -> TensorRecord:
  """Returns a gradient out of what was fetched, rows of `IndexedSlices` in their places."""
  if gradient.values is None:
    return TensorRecord(gradient.variable, None)
  value = np.asarray(values[gradient.values])
  if gradient.indices is None:
    return TensorRecord(gradient.variable, value)
  dense = side.dense_gradient(value, np.asarray(values[gradient.indices]), gradient.shape)
  return TensorRecord(gradient.variable, dense, Slices(len(value), norm(value)))
