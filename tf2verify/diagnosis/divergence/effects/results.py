"""What is compared in the end, computed by the port with some of its tensors given."""

import functools
import time
from collections.abc import Mapping

import numpy as np

from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.divergence.tensors.sources import InspectableRun
from tf2verify.numerics.relayout import alike_as_held
from tf2verify.records import rounds
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import is_backward

# Of both graphs, which are run again as a whole.
_MOST_OPERATIONS = 3000
_MOST_RUNS = 320
_MOST_ROUNDS = 32
_SECONDS = 4.0
# Targets that follow from others by differentiation.
_GRADIENTS = ('gradient ', 'loss gradient ')


class Results:
  """The results that fail, gradients aside, which follow from the others."""

  def __init__(self, divergence: Divergence, tf1: InspectableRun, tf2: InspectableRun) -> None:
    """Takes both sides.

    Args:
      divergence: the search.
      tf1: the tf1 side's run.
      tf2: the port's.
    """
    ones, others = tf1.op_graph.ops, tf2.op_graph.ops
    ends = [(n, m) for n, m in divergence.ends if not ones[n].name.startswith(_GRADIENTS)]
    is_large = len(ones) + len(others) > _MOST_OPERATIONS
    self._tf1, self._tf2 = tf1, tf2
    self._names = [] if is_large else [others[m].tensors[0] for _, m in ends]
    self._wanted = [] if is_large else tf1.fetch([ones[n].tensors[0] for n, _ in ends])
    self._runs_left = _MOST_RUNS
    self._until = time.perf_counter() + _SECONDS

  @functools.cached_property
  def _rounds(self) -> tuple['_Rounds', '_Rounds']:
    return _Rounds(self._tf1.op_graph), _Rounds(self._tf2.op_graph)

  @property
  def may_be_run(self) -> bool:
    """Whether there are any, and it would not take too long."""
    return bool(self._names and self._runs_left) and time.perf_counter() < self._until

  def agree_with(self, given: Mapping[str, np.ndarray]) -> bool:
    """Returns whether the port computes those of tf1 with values in place of its own.

    Args:
      given: by the port's tensors.
    """
    self._runs_left -= 1
    found = self._tf2.refetched(self._names, given)
    return found is not None and all(map(alike_as_held, self._wanted, found))

  def agree_in_rounds(self, one: int, place: int) -> bool:
    """Returns the same with a quantity of tf1 in all rounds of the port's line, in turn.

    A head of a detector is called for every level, and its mistake is made as often.

    Args:
      one: position of the quantity in tf1.
      place: position of the port's in its place.
    """
    ones, others = self._rounds[0].of(one), self._rounds[1].of(place)
    if len(ones) != len(others) or not 1 < len(ones) <= _MOST_ROUNDS:
      return False
    tf1 = self._tf1.fetch([self._tf1.op_graph.ops[n].tensors[0] for n in ones])
    names = [self._tf2.op_graph.ops[n].tensors[0] for n in others]
    pairs = list(zip(tf1, self._tf2.fetch(names), strict=True))
    if any(mine.size != value.size or mine.dtype != value.dtype for value, mine in pairs):
      return False
    given = [value.reshape(mine.shape) for value, mine in pairs]
    return self.agree_with(dict(zip(names, given, strict=True)))


class _Rounds:
  """The operations of one type that a line of a graph makes each time that it runs."""

  def __init__(self, graph: OpGraph) -> None:
    """Takes a graph."""
    self._places = [_place(op) for op in graph.ops]
    self._by_place: dict[tuple[object, ...], list[int]] = {}
    for n, (op, place) in enumerate(zip(graph.ops, self._places, strict=True)):
      if place is not None and not is_backward(op):
        self._by_place.setdefault(place, []).append(n)

  def of(self, position: int) -> list[int]:
    """Returns those of the line of an operation."""
    place = self._places[position]
    return [position] if place is None else self._by_place.get(place, [])


def _place(op: OpRecord) -> tuple[object, ...] | None:
  """Returns type and line of an operation; of one in a loop, also what a round calls it."""
  if op.source is None:
    return None
  name = op.name.rpartition('/')[2] if rounds.numbers_of(op.name) else ''
  return op.op_type, op.source.path, op.source.line, name
