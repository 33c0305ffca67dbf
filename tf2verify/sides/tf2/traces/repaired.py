"""Runs of a traced port with edits of its graph."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import tensorflow as tf

from tf2verify.records.op_graph import TARGET, OpGraph
from tf2verify.sides.graphs.edits import repairs as editing
from tf2verify.sides.graphs.edits.other_traces import named_as, renaming
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.edits.wiring import CannotRepair
from tf2verify.sides.graphs.ranks import of_unknown_rank, refuse_unknown_ranks
from tf2verify.sides.graphs.rewriting.without_state import WrittenOtherwise
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.tf2.traces.tracing import Change

_Port = TypeVar('_Port', contravariant=True)
_REFUSALS = (tf.errors.OpError, ValueError, TypeError, LookupError)


class Begun(Protocol[_Port]):
  """A run of a port, which can go on as another run of the same graph."""

  @property
  def run(self) -> GraphRun:
    """The run."""

  def restart(self, port: _Port) -> bool:
    """Goes as another run from now on; returns False where that has another graph."""


class Editable(Protocol):
  """What of a port was traced."""

  def begin(self: _Port, change: Change | None, targets_only: bool) -> Begun[_Port]:
    """Returns a run of its graph as it was traced, or changed; see `TracedPort.run`."""


def repaired_run(
  port: Editable,
  repairs: Sequence[Repair],
  given: Mapping[str, np.ndarray],
  other_run: Mapping[str, Any] | None = None,
  targets_only: bool = False,
) -> GraphRun:
  """Returns a run of the port with edits.

  Args:
    port: the port, traced; it stays as it is.
    repairs: the edits, in their order.
    given: by the port's tensors, values that it gets in place of what it computes.
    other_run: where the edits were made for another run, see `repairs.apply`.
    targets_only: whether the run is asked for nothing but its targets.

  Raises:
    CannotRepair: TensorFlow refuses the graph.
  """
  run = _begun(port, repairs, other_run, targets_only).run
  _give(run, given, other_run is not None)
  return run


class RepairedRuns:
  """Runs of the port with the same edits, asked for their targets; one graph is edited once."""

  def __init__(self, repairs: Sequence[Repair]) -> None:
    """Takes the edits, in their order."""
    self._repairs = repairs
    self._begun: list[Begun[Any]] = []

  def targets(
    self,
    port: Editable,
    given: Mapping[str, np.ndarray],
    other_run: Mapping[str, Any] | None = None,
    seconds: int = 0,
  ) -> tuple[dict[str, tuple[np.ndarray, ...]], OpGraph]:
    """Returns what a run yields, see `target_tensors`, and its targets.

    Args:
      port: as in `repaired_run`.
      given: likewise.
      other_run: likewise.
      seconds: after which it is given up.

    Raises:
      CannotRepair: TensorFlow refuses the graph, or it does not run.
    """
    begun = next((one for one in self._begun if one.restart(port)), None)
    if begun is None:
      begun = _begun(port, self._repairs, other_run, targets_only=True)
      self._begun.append(begun)
    _give(begun.run, given, other_run is not None)
    return target_tensors(begun.run, seconds), begun.run.op_graph

  def __enter__(self) -> 'RepairedRuns':
    return self

  def __exit__(self, *_: object) -> None:
    for begun in self._begun:
      begun.run.close()


def _begun(
  port: Editable,
  repairs: Sequence[Repair],
  other_run: Mapping[str, Any] | None,
  targets_only: bool,
) -> Begun[Any]:
  def edit(graph_def: Any, _: object) -> None:
    names = {node.name for node in graph_def.node}
    here = repairs if other_run is None else [named_as(repair, names) for repair in repairs]
    editing.apply(here, graph_def, other_run)

  try:
    begun = port.begin(edit, targets_only)
    if of_unknown_rank(begun.run.graph):
      before = of_unknown_rank(port.begin(None, targets_only).run.graph)
      refuse_unknown_ranks(begun.run.graph, before)
    return begun
  except _REFUSALS as error:
    raise CannotRepair(f'{type(error).__name__}: {error}') from error
  except WrittenOtherwise as error:
    raise CannotRepair(str(error)) from error


def _give(run: GraphRun, given: Mapping[str, np.ndarray], is_other: bool) -> None:
  """Gives a run values by tensors, whose names may be those of another run."""
  if not given:
    return
  known = run.nodes()
  if is_other:
    rename = renaming(known)
    given = {rename(one): value for one, value in given.items()}
  run.give({one: value for one, value in given.items() if one.rpartition(':')[0] in known})


def given_values(tf1: GraphRun, repairs: Sequence[Repair]) -> dict[str, np.ndarray]:
  """Returns the values of tf1 that repairs give to a port, as it holds them, by its tensors."""
  known = tf1.nodes()
  given = [value for repair in repairs for value in repair.given]
  given = [value for value in given if value.tf1.rpartition(':')[0] in known]
  fetched = tf1.fetch([value.tf1 for value in given])
  return {value.tf2: value.as_tf2(array) for value, array in zip(given, fetched, strict=True)}


def target_values(run: GraphRun, seconds: int = 0) -> dict[str, np.ndarray]:
  """Returns what a run yields, by target: the first tensor of each, see `target_tensors`."""
  return {name: values[0] for name, values in target_tensors(run, seconds).items()}


def target_tensors(run: GraphRun, seconds: int = 0) -> dict[str, tuple[np.ndarray, ...]]:
  """Returns what a run yields, by target: one tensor, or values and indices.

  Args:
    run: the run.
    seconds: after which it is given up, since an edit may let a loop run for ever; 0 for never.

  Raises:
    CannotRepair: it does not run, or takes longer.
  """
  ops = [op for op in run.op_graph.ops if op.op_type == TARGET]
  try:
    values = iter(run.fetch([name for op in ops for name in op.tensors], seconds))
  except _REFUSALS as error:
    raise CannotRepair(f'{type(error).__name__}: {error}') from error
  return {op.name: tuple(next(values) for _ in op.tensors) for op in ops}
