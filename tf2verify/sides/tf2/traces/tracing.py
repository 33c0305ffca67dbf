"""The port's forward pass as a graph, whose tensors can be asked for by name."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.observation import SourceLine, TensorRecord
from tf2verify.records.op_graph import VARIABLE, OpGraph
from tf2verify.sides.graphs.graph_defs.inlining import operation
from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.numbers_read import ReadNumber
from tf2verify.sides.graphs.reading import GraphReader, Target
from tf2verify.sides.graphs.rewriting.unrolled_loops import is_apart, take_apart
from tf2verify.sides.graphs.rewriting.whole_writes import with_whole_writes, written_by
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.variables.given_variables import assignment, make_handle, preparation
from tf2verify.sides.side import TF2, RunSpec
from tf2verify.sides.tf2.traces import python_gradients
from tf2verify.sides.tf2.traces.derived_gradients import Derived, derived_targets

v1 = tf.compat.v1


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
    derived: gradients that are formed once the graph is made, of what it computes then.
    numbers_read: what Python has read, so that the graph is that of this run.
  """

  graph: Any
  feeds: Mapping[str, np.ndarray]
  inputs: Mapping[str, str]
  targets: tuple[Target, ...]
  writes: tuple[str, ...]
  derived: Derived | None = None
  numbers_read: tuple[ReadNumber, ...] = ()


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
    again: returns the same for another run of this training mode and of inputs of these shapes;
      None where nobody asks for it.
    joins_variables: whether several of its variables make up one of tf1's, or the reverse.
    layouts: how it holds state that lies otherwise in tf1, by tf1 name.
    of_rounds: its GraphDef with the rounds of its loops, see `unrolled`; None for the one traced.
    shown_gradients: returns the gradients of a run that forms them once its graph is made, by
      the variables that are trained, as tf1 has them; None for a port of which none are formed.
  """

  traced: Traced
  names: Mapping[int, str]
  values: Callable[[str], np.ndarray]
  variables: Mapping[str, Any]
  prefix: str
  again: Callable[[RunSpec], 'TracedPort'] | None = None
  joins_variables: bool = False
  layouts: Mapping[str, Relayout] = dataclasses.field(default_factory=dict)
  of_rounds: Any = None
  shown_gradients: (
    Callable[[Mapping[str, Sequence[np.ndarray]]], tuple[TensorRecord, ...]] | None
  ) = None

  def unrolled(self, in_parts: bool = False) -> 'TracedPort':
    """Returns the same with the rounds of its loops, as a run of the port goes through them.

    Args:
      in_parts: whether parts of tensors have operations there, see `RunSpec`.

    Raises:
      NotTraceable: it uses a resource that is not a variable of the port.
    """
    if is_apart(self.traced.graph) and not in_parts:
      return self
    handles, constants = _captured(self.traced, self.names)
    graph_def = self._with_handles(handles)

    def evaluate(tensors: Sequence[str]) -> Sequence[np.ndarray]:
      known = v1.GraphDef()
      known.CopyFrom(graph_def)
      prepare = preparation(self._assignments(known, handles), self.values)
      with open_session(imported(known)) as session:
        prepare(session)
        return session.run(list(tensors), self.feeds(constants))  # type: ignore[no-any-return]

    take_apart(graph_def, evaluate, in_parts)
    return dataclasses.replace(self, of_rounds=graph_def)

  def run(self, change: Change | None = None) -> GraphRun:
    """Returns a run of the graph as it was traced, or changed; raises as `begin`."""
    return self.begin(change).run

  def begin(self, change: Change | None = None, targets_only: bool = False) -> 'PortRun':
    """Returns such a run, which can go on from other values.

    Args:
      change: changes the graph before it is run.
      targets_only: whether the run is asked for nothing but its targets.

    Raises:
      NotTraceable: it uses a resource that is not a variable of the port.
    """
    traced = self.traced
    handles, constants = _captured(traced, self.names)
    graph_def = self._with_handles(handles)
    with_whole_writes(graph_def)
    if change is not None:
      change(graph_def, constants)
    derived: tuple[Target, ...] = ()
    if traced.derived is not None and python_gradients.has_some(graph_def):
      known = python_gradients.Captured(traced.graph, self.names, handles, constants)
      form = functools.partial(derived_targets, derived=traced.derived)
      graph_def, derived = python_gradients.formed(graph_def, known, form)
    assigned = self._assignments(graph_def, handles)
    graph = imported(graph_def)
    if traced.derived is not None and not derived:
      derived = derived_targets(graph, traced.derived)
    reader = GraphReader(graph, handles, traced.inputs, constants, self._source_of)
    read_graph = reader.read_targets if targets_only else reader.read
    op_graph = read_graph((*traced.targets, *derived), traced.writes, TF2)
    read = {op.name: op.tensors[0] for op in op_graph.ops if op.op_type == VARIABLE}
    reads = {op_name: read[name] for op_name, name in handles.items() if name in read}
    prepare = preparation(assigned, self.values)
    run = GraphRun(op_graph, graph, self.feeds(constants), prepare, reads, self.layouts)
    return PortRun(self, run, assigned, constants)

  def on_graph_of(self, other: 'TracedPort') -> 'TracedPort':
    """Returns the same with the rounds of another one's loops, where these are the same."""
    is_same = self.of_rounds is not None and self.of_rounds == other.of_rounds
    return dataclasses.replace(self, of_rounds=other.of_rounds) if is_same else self

  def op_graph(self) -> OpGraph:
    """Returns its operations alone, without a graph that a session could run: in half the time.

    Raises:
      NotTraceable: it uses a resource that is not a variable of the port.
    """
    handles, constants = _captured(self.traced, self.names)
    reader = GraphReader(self.traced.graph, handles, self.traced.inputs, constants)
    return reader.read(self.traced.targets, self.traced.writes, TF2)

  def _with_handles(self, handles: Mapping[str, str]) -> Any:
    """Returns a GraphDef of its own, whose captured variables are variables there."""
    if self.of_rounds is not None:
      graph_def = v1.GraphDef()
      graph_def.CopyFrom(self.of_rounds)
      return graph_def
    graph_def = self.traced.graph.as_graph_def()
    for node in graph_def.node:
      if node.name in handles:
        make_handle(node, self.variables[handles[node.name]])
    return graph_def

  def _assignments(self, graph_def: Any, handles: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {
      name: assignment(graph_def, op_name, self.variables[name])
      for op_name, name in handles.items()
    }

  def feeds(self, constants: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns what a run is fed, given the values of captured constants."""
    return {**self.traced.feeds, **{f'{name}:0': value for name, value in constants.items()}}

  def _source_of(self, op: tf.Operation) -> SourceLine | None:
    made = operation(self.traced.graph, written_by(op.name))
    return None if made is None else user_source(made)


@dataclasses.dataclass(frozen=True, eq=False)
class PortRun:
  """A run of a traced port, which can go on as another run of the same graph.

  Attributes:
    port: what was traced.
    run: the run.
    assigned: by the names of variables: the assignment, and what that is fed with.
    constants: values of what the graph captures, by the names of placeholders.
  """

  port: TracedPort
  run: GraphRun
  assigned: Mapping[str, tuple[str, str]]
  constants: Mapping[str, np.ndarray]

  def restart(self, port: TracedPort) -> bool:
    """Goes as another run of the port from now on; returns False where that has another graph."""
    one, other = self.port.traced, port.traced
    if one.graph is not other.graph or self.port.of_rounds is not port.of_rounds:
      return False
    if (one.targets, one.derived, self.port.names) != (other.targets, other.derived, port.names):
      return False
    self.run.restart(preparation(self.assigned, port.values), port.feeds(self.constants))
    return True


def _captured(
  traced: Traced, names: Mapping[int, str]
) -> tuple[dict[str, str], dict[str, np.ndarray]]:
  """Returns the variables and the constants that a computation captures, by its placeholders."""
  handles: dict[str, str] = {}
  constants: dict[str, np.ndarray] = {}
  for outer, inner in traced.graph.captures:
    if id(outer) in names:
      handles[inner.op.name] = names[id(outer)]
    elif outer.dtype in (tf.resource, tf.variant):
      raise NotTraceable(
        'the port uses a lookup table, an iterator or a variable that layer.variables does not '
        'contain'
      )
    else:
      constants[inner.op.name] = np.asarray(outer)
  return handles, constants
