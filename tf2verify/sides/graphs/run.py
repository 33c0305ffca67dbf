"""A side's graph, of which any tensor can be asked for, and any part run alone."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf2verify.numerics.relayout import Relayout
from tf2verify.records.op_graph import VARIABLE, NodeChange, OpGraph
from tf2verify.reference.random_draws import draws_in_functions
from tf2verify.reference.random_ops import is_random_op
from tf2verify.sides.graphs.graph_defs.extraction import called
from tf2verify.sides.graphs.graph_defs.inlining import with_output
from tf2verify.sides.graphs.graph_defs.parts import Part
from tf2verify.sides.graphs.graph_defs.sessions import imported, open_session
from tf2verify.sides.graphs.kept_values import KeptValues, key_of
from tf2verify.sides.graphs.ranks import keeps_ranks, refuse_unknown_ranks
from tf2verify.sides.graphs.rewriting.double_precision import widen, with_64_bits
from tf2verify.sides.graphs.variables.late_reads import is_reference, late_reads, may_write, run_for

v1 = tf.compat.v1
_Trial = tuple[Sequence[str], Mapping[str, np.ndarray], Sequence[NodeChange]]


class GraphRun:
  """One run of one side: a graph, what it is fed, and the values of its variables."""

  def __init__(
    self,
    op_graph: OpGraph,
    graph: tf.Graph,
    feeds: Mapping[str, np.ndarray],
    prepare: Callable[[Any], None],
    reads: Mapping[str, str],
    layouts: Mapping[str, Relayout] | None = None,
  ) -> None:
    """Prepares the run; nothing is computed yet.

    Args:
      op_graph: the graph's operations.
      graph: the graph.
      feeds: by tensor name.
      prepare: gives the variables of a fresh session their values, by name.
      reads: from the name of a variable's handle to the tensor that reads it, as
        `op_graph` names it.
      layouts: how variables are held that lie on the tf1 side in another shape or order, by
        their tf1 names.
    """
    self.op_graph = op_graph
    self.layouts = layouts or {}
    self.graph = graph
    self._feeds = feeds
    self._prepare = prepare
    self._reads = reads
    self._session: Any = None
    self._is_prepared = False
    self._graph_def: Any = None
    self._nodes: dict[str, Any] = {}
    # A second run in one session would draw other numbers: they are fed what the first one drew,
    # and where functions draw, it needs a fresh session. Or it would see variables that the first
    # one has changed: they are given their values again, for which those that are no resources
    # write into what may have been fetched before.
    run = list(run_for(graph, op_graph))
    self._draws = [op.outputs[0].name for op in run if is_random_op(op.type)]
    self._drawn: dict[str, np.ndarray] = {}
    self._values: dict[str, np.ndarray] = {}
    self._after: dict[str, np.ndarray] = {}  # of variables, once they are written
    self._fetched, self._computed = KeptValues(), KeptValues()  # by tensor; by what is given, too
    written = {tensor.dtype for op in run if may_write(op) for tensor in op.inputs}
    self._writes = tf.resource in written
    self._fresh_each_time = draws_in_functions(graph, run) or any(map(is_reference, written))

  def refetched(
    self, tensors: Sequence[str], given: Mapping[str, np.ndarray]
  ) -> list[np.ndarray] | None:
    """Returns tensors by name where the graph is given values of others.

    Args:
      tensors: TensorFlow's names.
      given: values by name, in place of what the graph computes.

    Returns:
      None where it cannot be run so.
    """
    if not keeps_ranks(self.graph, given, self._values_at):
      return None
    try:
      return self._run(tensors, {**self._feeds, **given})
    except (tf.errors.OpError, ValueError, TypeError, KeyError):  # of a handle: its dtype
      return None

  def fetch(self, tensors: Sequence[str], seconds: int = 0) -> list[np.ndarray]:
    """Returns tensors by name, all as in one and the same run.

    Args:
      tensors: TensorFlow's names.
      seconds: after which the run is given up with `tf.errors.DeadlineExceededError`;
        0 for never.
    """
    if self._fresh_each_time:
      return self._run(tensors, self._feeds, seconds)
    found = self._fetched.answers(
      tensors,
      lambda numbers: [[v] for v in self._run([tensors[n] for n in numbers], self._feeds, seconds)],
    )
    return [value for answer in found if answer for value in answer]

  def _run(
    self, tensors: Sequence[str], feeds: Mapping[str, np.ndarray], seconds: int = 0
  ) -> list[np.ndarray]:
    """Runs the graph for tensors by name."""
    if not tensors:
      return []
    is_new = self._session is None or self._fresh_each_time
    if is_new:
      self.close()
      self._session = open_session(self.graph)
    if not self._is_prepared or self._writes:
      self._prepare(self._session)
      self._is_prepared = True
    options = v1.RunOptions(timeout_in_ms=1000 * seconds)
    undrawn = self._draws if not self._drawn else []
    fed = {**feeds, **({} if self._fresh_each_time else self._drawn)}
    values = self._session.run([*tensors, *undrawn], fed, options=options)
    self._drawn.update(zip(undrawn, values[len(tensors) :], strict=True))
    return [np.asarray(value) for value in values[: len(tensors)]]

  def recompute(
    self, requests: Sequence[tuple[Sequence[str], Mapping[str, np.ndarray]]]
  ) -> list[list[np.ndarray] | None]:
    """Computes parts of the graph alone; see `recompute_trials`."""
    return self.recompute_trials([(wanted, given, ()) for wanted, given in requests])

  def recompute_trials(self, trials: Sequence[_Trial]) -> list[list[np.ndarray] | None]:
    """Computes parts of the graph alone, each with operations changed, in one run if possible.

    Args:
      trials: the tensors wanted, the values of the tensors by name from which to compute them, and
        the changes.

    Returns:
      One list of arrays per trial; None where the part cannot be run from these values: they have
      another shape or dtype, or something else is needed.
    """
    return self._computed.answers(
      [None if changes else key_of(wanted, given) for wanted, given, changes in trials],
      lambda numbers: self._trials_run([trials[n] for n in numbers]),
    )

  def _trials_run(self, trials: Sequence[_Trial]) -> list[list[np.ndarray] | None]:
    if not trials:
      return []
    parts = [self._part(number, *trial) for number, trial in enumerate(trials)]
    found = self._run_parts(parts)
    if found is not None:
      return found
    alone = [self._run_parts([part]) for part in parts]
    return [None if one is None else one[0] for one in alone]

  def recompute_changed(
    self,
    wanted: Sequence[str],
    given: Mapping[str, np.ndarray],
    trials: Sequence[Sequence[NodeChange]],
  ) -> list[list[np.ndarray] | None]:
    """Computes a part of the graph alone, with operations changed.

    Args:
      wanted: tensors by name.
      given: values of the tensors from which to compute them.
      trials: the changes of each trial.

    Returns:
      The wanted tensors of each trial; None where it cannot be run.
    """
    found: list[list[np.ndarray] | None] = []
    for changes in trials:  # each alone: one that cannot be run stops no other
      part = self._part(0, wanted, given, changes)
      answers = None if part is None else self._run_parts([part])
      found.append(None if answers is None else answers[0])
    return found

  def in_double(self, tensors: Sequence[str]) -> list[np.ndarray] | None:
    """Returns tensors by name, computed with 64 bits from the values of 32 that the run reads.

    Those are its inputs, its variables and what it draws.

    Args:
      tensors: TensorFlow's names.

    Returns:
      None where that is not possible: an operation has no such kernel, or variables change.
    """
    if self._fresh_each_time or self._writes:
      return None
    values = self._values_at([*self._feeds, *self._reads.values(), *self._draws])
    if values is None:
      return None
    part = self._part(0, tensors, {n: with_64_bits(v) for n, v in values.items()})
    if part is None or part.reads_state:
      return None
    found = self._run_parts([part], widen)
    return None if found is None else found[0]

  def from_other_values(
    self, tensors: Sequence[str], given: Mapping[str, np.ndarray]
  ) -> list[np.ndarray] | None:
    """Returns tensors by name as they are for variables of other values.

    All that reads one of these reads that value, also where the graph reads it again.

    Args:
      tensors: TensorFlow's names.
      given: values, by the tensors that read the variables, as `op_graph` names them.

    Returns:
      None where it cannot be run so.
    """
    values = self._values_at([*self._feeds, *self._draws])
    known = {} if values is None else {**values, **given}
    found = self._run_parts([self._part(0, tensors, known) if known else None])
    return None if found is None else found[0]

  def _values_at(self, tensors: Sequence[str]) -> dict[str, np.ndarray] | None:
    try:
      return dict(zip(names := [*dict.fromkeys(tensors)], self.fetch(names), strict=True))
    except (tf.errors.OpError, ValueError, TypeError):
      return None

  def gradients(self, of: Sequence[str], held: Sequence[str]) -> list[dict[str, np.ndarray]] | None:
    """Forms gradients by the variables.

    Args:
      of: tensors by name; the gradient is that of the sum of their elements.
      held: tensors by name at which it is stopped: what is behind these alone has none.

    Returns:
      For each tensor, by the names of variables as `op_graph` has them, the gradients in the shapes
      of this side; without those that there are none of. None where they cannot be formed.
    """
    names = {op.tensors[0]: op.name for op in self.op_graph.ops if op.op_type == VARIABLE}
    by = {names[read]: with_output(handle) for handle, read in self._reads.items()}
    self.fetch(held[:1])  # draws the random numbers that are fed
    graph = imported(self.graph.as_graph_def())
    feeds = {**self._feeds, **({} if self._fresh_each_time else self._drawn)}
    try:
      with graph.as_default():
        formed = [
          tf.gradients(
            graph.get_tensor_by_name(name),
            [graph.get_tensor_by_name(handle) for handle in by.values()],
            stop_gradients=[graph.get_tensor_by_name(one) for one in held],
          )
          for name in of
        ]
        fetched = [
          {name: tf.convert_to_tensor(g) for name, g in zip(by, one, strict=True) if g is not None}
          for one in formed
        ]
      with open_session(graph) as session:
        self._prepare(session)
        values = session.run(fetched, feeds)
    except (tf.errors.OpError, LookupError, TypeError, ValueError, AttributeError):
      return None  # an operation has no gradient, say
    return [{name: np.asarray(value) for name, value in one.items()} for one in values]

  def give(self, values: Mapping[str, np.ndarray]) -> None:
    """Gives the graph values, by tensor name, in place of what it computes, from now on."""
    self._feeds = {**self._feeds, **values}
    self._forget()

  def restart(self, prepare: Callable[[Any], None], feeds: Mapping[str, np.ndarray]) -> None:
    """Goes from other values from now on, as another run of the same graph would.

    Args:
      prepare: gives the variables their values.
      feeds: by tensor name.
    """
    self._prepare, self._feeds = prepare, feeds
    self._drawn, self._values = {}, {}
    self._forget()
    if self._session is not None and not self._fresh_each_time and not self._draws:
      prepare(self._session)  # the session knows how to run the graph already
    else:
      self.close()

  def nodes(self) -> Mapping[str, Any]:
    """Returns the NodeDefs of the graph by name."""
    if self._graph_def is None:
      self._graph_def = self.graph.as_graph_def()
      self._nodes = {node.name: node for node in self._graph_def.node}
    return self._nodes

  @functools.cached_property
  def _late(self) -> Mapping[str, str]:
    return late_reads(self.graph, self.op_graph) if self._writes else {}

  def _late_values(self, tensors: Iterable[str]) -> dict[str, np.ndarray]:
    """Returns what the run reads of variables after it has written them.

    Raises:
      KeyError: it does not run.
    """
    found = self._values_at([name for name in sorted(tensors) if name not in self._after])
    if found is None:
      raise KeyError('a read after a write')
    self._after.update(found)
    return {name: self._after[name] for name in tensors}

  def prepare_again(self) -> None:
    """Lets the next `fetch` give variables their values again, which are others now."""
    self._is_prepared = False
    self._values = {}
    self._forget()

  def _forget(self) -> None:
    """Forgets what was computed from other values."""
    self._after = {}
    self._fetched.clear()
    self._computed.clear()

  def close(self) -> None:
    """Lets go of the session; a later `fetch` opens another."""
    self._is_prepared = False
    self._fetched.clear()
    if self._session is not None:
      self._session.close()
      self._session = None

  def _part(
    self,
    number: int,
    wanted: Sequence[str],
    given: Mapping[str, np.ndarray],
    changes: Sequence[NodeChange] = (),
  ) -> Part | None:
    try:
      make = functools.partial(
        Part, f'part_{number}/', self.nodes(), self._reads, wanted, late=self._late
      )
      part = make(given, changes)
      if part.unknown:
        given = {**self._late_values(part.unknown), **given}
        part = make(given, changes)
      values = self._values_of(part.read)
      return make({**values, **given}, changes) if values else part
    except (KeyError, TypeError):  # something is not there, or no value: a handle, a list
      return None

  def _values_of(self, handles: Iterable[str]) -> dict[str, np.ndarray]:
    """Returns the values that variables have before a run, by the tensors that read them.

    Without those that are read by their handles alone, as in a loop; none where that fails.
    """
    read = (self._reads[handle] for handle in handles if handle in self._reads)
    names = [n for n in read if self.graph.get_tensor_by_name(n).dtype != tf.resource]
    wanted = [name for name in names if name not in self._values]
    feeds = {name: value for name, value in self._feeds.items() if name not in wanted}
    try:
      self._values.update(zip(wanted, self._run(wanted, feeds), strict=True))
    except (tf.errors.OpError, ValueError, TypeError):
      return {}
    return {name: self._values[name] for name in names}

  def _run_parts(
    self, parts: Sequence[Part | None], change: Callable[[Any], None] | None = None
  ) -> list[list[np.ndarray] | None] | None:
    """Runs parts in one session, with their GraphDef changed; None where that raises."""
    if all(part is None for part in parts):
      return [None for _ in parts]
    graph_def = v1.GraphDef()
    reads_state = any(part is not None and part.reads_state for part in parts)
    if reads_state:
      graph_def.CopyFrom(self._graph_def)
    graph_def.versions.CopyFrom(self._graph_def.versions)
    fetches: list[list[str]] = []
    feeds: dict[str, np.ndarray] = {}
    for part in parts:
      fetches.append([] if part is None else part.fetches)
      if part is not None:
        graph_def.node.extend(part.nodes)
        feeds |= part.feeds
    graph_def.library.CopyFrom(called(graph_def.node, self._graph_def.library))
    if not graph_def.node:  # nothing is wanted; a session refuses an empty graph
      return [None if part is None else [] for part in parts]
    try:
      if change is not None:
        change(graph_def)
      with open_session(refuse_unknown_ranks(imported(graph_def))) as session:
        if reads_state:
          self._prepare(session)
        values = session.run(fetches, feeds)
    except (tf.errors.OpError, ValueError, TypeError):
      return None
    return [
      None if part is None else [np.asarray(array) for array in arrays]
      for part, arrays in zip(parts, values, strict=True)
    ]
