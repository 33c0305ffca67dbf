"""The port's forward pass as a graph, whose tensors can be asked for by name."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import VARIABLE
from tf2verify.reference import nests
from tf2verify.reference.variables import static_shape
from tf2verify.sides.graphs.reading import GraphReader, Target, user_source
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.side import TF2
from tf2verify.tensorflow_internals import autograph, graphs

v1 = tf.compat.v1


# Variables are given their values in portions of about this size, to bound memory.
_PORTION_BYTES = 64 * 2**20


class NotTraceable(Exception):
  """The port cannot be run as one graph; the message says why."""


@dataclasses.dataclass(frozen=True, eq=False)
class Traced:
  """A traced computation.

  Attributes:
    graph: the function graph.
    feeds: input tensor name, and value.
    inputs: input op name, and path.
    targets: what it yields.
    writes: names of the operations that change state.
  """

  graph: Any
  feeds: Mapping[str, np.ndarray]
  inputs: Mapping[str, str]
  targets: tuple[Target, ...]
  writes: tuple[str, ...]


@contextmanager
def _functions_inlined() -> Iterator[None]:
  """Makes a `tf.function` inside of the port run as plain Python."""
  before = tf.config.functions_run_eagerly()
  tf.config.run_functions_eagerly(True)
  try:
    yield
  finally:
    tf.config.run_functions_eagerly(before)


def trace(compute: Callable[[Any], Mapping[str, Any]], inputs: Any) -> Traced:
  """Traces a computation on placeholders.

  Args:
    compute: takes placeholders in the structure of `inputs` and returns tensors, or
      `IndexedSlices`, by what they are; runs the user's code.
    inputs: a nest of arrays.

  Raises:
    NotTraceable: the user's code does not run on symbolic tensors.
  """
  try:
    with _functions_inlined():
      return _trace(compute, inputs)
  except Exception as error:  # noqa: BLE001 - the user's code may raise anything
    first = error
  try:
    # Python's `if` and `for` over tensors, which autograph rewrites.
    with autograph.switched():
      return _trace(compute, inputs)
  except Exception:  # noqa: BLE001 - the first error is the one to report
    summary = ' '.join(str(first).split())[:200]
    raise NotTraceable(f'{type(first).__name__}: {summary}') from first


def _trace(compute: Callable[[Any], Mapping[str, Any]], inputs: Any) -> Traced:
  graph = graphs.FuncGraph('port')
  feeds: dict[str, np.ndarray] = {}
  paths: dict[str, str] = {}

  def placeholder(path: str, leaf: np.ndarray) -> tf.Tensor:
    dtype = tf.string if leaf.dtype.kind in 'SU' else tf.as_dtype(leaf.dtype)
    tensor = v1.placeholder(dtype, leaf.shape, name=f'tf2verify_input/{len(feeds)}')
    feeds[tensor.name] = leaf
    paths[tensor.op.name] = path
    return tensor

  # As eagerly, a read of a variable sees the writes before it.
  with graph.as_default(), graphs.AutomaticControlDependencies():
    fed = nests.map_leaves(placeholder, inputs)
    results = compute(fed)
    targets = tuple(_target(graph, name, result) for name, result in results.items())
  writes = tuple(op.name for op in graph.get_operations() if op.type.startswith('Assign'))
  return Traced(graph, feeds, paths, targets, writes)


def _target(graph: Any, name: str, result: Any) -> Target:
  parts = (result.values, result.indices) if isinstance(result, tf.IndexedSlices) else (result,)
  return Target(name, tuple(graph.capture(tf.convert_to_tensor(part)).name for part in parts))


# Changes a graph before it is run: its GraphDef, and the values of captured constants.
Change = Callable[[Any, dict[str, np.ndarray]], None]


@dataclasses.dataclass(frozen=True, eq=False)
class TracedPort:
  """A traced port, of which runs can be made.

  Attributes:
    traced: the computation.
    names: tf1 name of every variable, by the identity of its handle.
    values: the value of a variable, by tf1 name.
    variables: the variables, by tf1 name.
    prefix: what the names of its operations start with.
  """

  traced: Traced
  names: Mapping[int, str]
  values: Callable[[str], np.ndarray]
  variables: Mapping[str, Any]
  prefix: str

  def run(self, change: Change | None = None) -> GraphRun:
    """Returns a run of the graph as it was traced, or changed.

    Raises:
      NotTraceable: it uses a resource that is no variable of the port.
    """
    return graph_run(self.traced, self.names, self.values, self.variables, change)


def graph_run(
  traced: Traced,
  names: Mapping[int, str],
  values: Callable[[str], np.ndarray],
  variables: Mapping[str, Any],
  change: Change | None = None,
) -> GraphRun:
  """Makes a traced computation a graph that a session can run.

  Args:
    traced: the computation.
    names: tf1 name of every variable, by the identity of its handle.
    values: the value of a variable, by tf1 name.
    variables: the variables, by tf1 name.
    change: changes the graph before it is run.

  Raises:
    NotTraceable: it uses a resource that is no variable of the port.
  """
  graph_def = traced.graph.as_graph_def()
  handles: dict[str, str] = {}
  constants: dict[str, np.ndarray] = {}
  for outer, inner in traced.graph.captures:
    if id(outer) in names:
      handles[inner.op.name] = names[id(outer)]
    elif outer.dtype in (tf.resource, tf.variant):
      raise NotTraceable(
        'the port uses a lookup table, an iterator or a variable that layer.variables does not hold'
      )
    else:
      constants[inner.op.name] = np.asarray(outer)
  for node in graph_def.node:
    if node.name in handles:
      _make_handle(node, variables[handles[node.name]])
  if change is not None:
    change(graph_def, constants)
  graph = tf.Graph()
  with graph.as_default():
    tf.import_graph_def(graph_def, name='')
    assigned = {
      name: _assignment(graph, op_name, variables[name]) for op_name, name in handles.items()
    }
  sources = {op.name: op for op in traced.graph.get_operations()}
  reader = GraphReader(
    graph,
    handles,
    traced.inputs,
    constants,
    lambda op: user_source(sources[op.name]) if op.name in sources else None,
  )
  op_graph = reader.read(traced.targets, traced.writes, TF2)

  feeds = {**traced.feeds, **{f'{name}:0': value for name, value in constants.items()}}
  read = {op.name: op.tensors[0] for op in op_graph.ops if op.op_type == VARIABLE}
  reads = {op_name: read[name] for op_name, name in handles.items() if name in read}
  return GraphRun(op_graph, graph, feeds, _preparation(assigned, values), reads)


def _preparation(
  assigned: Mapping[str, tuple[str, str]], values: Callable[[str], np.ndarray]
) -> Callable[[Any], None]:
  """Returns what gives the variables of a session their values.

  Args:
    assigned: the assignment of every variable, and what that is fed with.
    values: the value of a variable, by name.
  """

  def prepare(session: Any) -> None:
    operations: list[str] = []
    fed: dict[str, np.ndarray] = {}
    for name, (operation, placeholder) in assigned.items():
      operations.append(operation)
      fed[placeholder] = values(name)
      if sum(value.nbytes for value in fed.values()) > _PORTION_BYTES:
        session.run(operations, fed)
        operations, fed = [], {}
    if operations:
      session.run(operations, fed)

  return prepare


def _make_handle(node: Any, variable: Any) -> None:
  """Turns the placeholder of a captured handle into a handle of its own."""
  node.op = 'VarHandleOp'
  node.attr.clear()
  node.attr['dtype'].type = variable.dtype.base_dtype.as_datatype_enum
  node.attr['shape'].shape.CopyFrom(tf.TensorShape(static_shape(variable.shape)).as_proto())
  node.attr['shared_name'].s = node.name.encode()


def _assignment(graph: tf.Graph, op_name: str, variable: Any) -> tuple[str, str]:
  """Adds an assignment; returns the names of its operation and of what it is fed with."""
  placeholder = v1.placeholder(variable.dtype.base_dtype, name=f'tf2verify_value/{op_name}')
  handle = graph.get_tensor_by_name(f'{op_name}:0')
  operation = tf.raw_ops.AssignVariableOp(
    resource=handle, value=placeholder, name=f'{op_name}/Assign'
  )
  return operation.name, placeholder.name
