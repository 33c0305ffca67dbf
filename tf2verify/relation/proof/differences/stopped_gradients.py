"""Where one graph stops a gradient that flows in the other one.

A proof says that values are the same whatever is given. To an operation that stops a gradient, it
is a value handed on: what is proven of values holds for gradients only where both graphs stop the
same ones.
"""

import dataclasses
from collections.abc import Collection

from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import VARIABLE, OpGraph, TensorKey
from tf2verify.relation.proof.proving import Proof, Side

_FLOATING = ('float16', 'bfloat16', 'float32', 'float64', 'complex64', 'complex128')
# Of these no gradient flows back.
FLAT = frozenset(('Floor', 'Ceil', 'Round', 'Rint', 'Sign', 'ZerosLike', 'OnesLike', 'FloorDiv'))


@dataclasses.dataclass(frozen=True)
class Stopped:
  """A gradient that one side stops.

  Attributes:
    side: which one: 'tf1' or 'tf2'.
    reader: position of the operation of that side that reads the value behind the stop.
    flowing: position of the operation of the other side that yields this value.
    reading: position of the one of the other side that reads it, where it is this reader alone to
      which the gradient is stopped; None where it is stopped to all of them.
  """

  side: str
  reader: int
  flowing: int
  reading: int | None = None


@dataclasses.dataclass(frozen=True)
class _Flow:
  """Where gradients flow in a graph: tensors, and each with the operations that read it."""

  flowing: dict[TensorKey, list[int]]
  stopped: dict[TensorKey, list[int]]


def stopped_on_one_side(proof: Proof) -> tuple[Stopped, ...]:
  """Returns the values of both graphs whose gradient is stopped in one of them only.

  It may be stopped to one reader of a value alone, in one of two terms of a loss, say.
  """
  sides = proof.tf1, proof.tf2
  flows = [_flow(side.graph, proof.targets) for side in sides]
  found = []
  for one, other in ((0, 1), (1, 0)):
    free, terms = _terms(sides[one], flows[one]), _terms(sides[other], flows[other])
    ways, seen = _ways(sides[other], flows[other].flowing), set()
    # The other side may stop it there as well, and compute it once more elsewhere.
    alike = _ways(sides[other], flows[other].stopped)
    for key, stopped_to in flows[one].stopped.items():
      term = sides[one].values[key]
      readers = [n for n in stopped_to if (term, sides[one].values.get((n, 0), -1)) not in alike]
      if term not in terms or term in seen or not readers:
        continue
      if term not in free:
        seen.add(term)
        found.append(Stopped(sides[one].graph.side, readers[0], terms[term]))
        continue
      for reader in readers:
        reading = ways.get((term, sides[one].values.get((reader, 0), -1)))
        if reading is not None and not _reaches(sides[one], flows[one], term, reader):
          seen.add(term)
          found.append(Stopped(sides[one].graph.side, reader, terms[term], reading))
          break
  return tuple(found)


def _ways(side: Side, read: dict[TensorKey, list[int]]) -> dict[tuple[int, int], int]:
  """Returns the operations by which a term is read to make another one."""
  return {
    (side.values[key], side.values[reader, 0]): reader
    for key, readers in read.items()
    for reader in readers
    if (reader, 0) in side.values
  }


def _reaches(side: Side, flow: _Flow, term: int, reader: int) -> bool:
  """Returns whether a gradient flows to a term from what an operation yields, whoever yields it."""
  read: dict[int, list[TensorKey]] = {}
  for key, readers in flow.flowing.items():
    for one in readers:
      read.setdefault(one, []).append(key)
  made = side.values[reader, 0]
  pending = [one for one in read if side.values.get((one, 0)) == made]
  seen = set(pending)
  while pending:
    for key in read.get(pending.pop(), ()):
      if side.values[key] == term:
        return True
      if key[0] not in seen:
        seen.add(key[0])
        pending.append(key[0])
  return False


def stopped_before(proof: Proof) -> tuple[Stopped, ...]:
  """Returns stops further back, by which a gradient flows through a value of both on one side only.

  What is stopped may reach the targets in other ways as well, as a penalty of a hidden layer does.
  """
  sides = proof.tf1, proof.tf2
  flows = [_flow(side.graph, proof.targets) for side in sides]
  found: dict[tuple[str, int], Stopped] = {}
  for one, other in ((0, 1), (1, 0)):
    graph, values = sides[one].graph, sides[one].values
    free, passing = _terms(sides[one], flows[one]), _terms(sides[other], flows[other])
    live, varies = _live(graph), _live(graph, stops=False)
    ends = graph.targets()
    for position in sorted(graph.ancestors([ends[n] for n in proof.targets if n in ends])):
      if position in live or position not in varies:
        continue
      term = values.get((position, 0))
      if term is None or term not in passing or term in free:
        continue
      reader = _last_stop(graph, position, live)
      if reader is not None:
        known = Stopped(graph.side, reader, passing[term])
        found.setdefault((graph.side, reader), known)
  return tuple(found.values())


def _last_stop(graph: OpGraph, position: int, live: Collection[int]) -> int | None:
  """Returns the last operation up to a position that reads what a gradient is stopped at."""
  stops = [
    n
    for n in {position, *graph.ancestors([position])}
    for slot, key in enumerate(graph.ops[n].inputs)
    if key[0] in live and graph.ops[n].is_stopped(slot)
  ]
  return max(stops, default=None)


def lines_of_stops(graph: OpGraph, target: str) -> tuple[SourceLine, ...]:
  """Returns the lines that read what a gradient of a target is stopped at, each once."""
  stopped = _flow(graph, (target,)).stopped.values()
  lines = (graph.ops[readers[0]].source for readers in stopped)
  return tuple(dict.fromkeys(line for line in lines if line is not None))


def _terms(side: Side, flow: _Flow) -> dict[int, int]:
  """Returns the terms of what gradients flow through, with the operation that yields it."""
  return {side.values[key]: key[0] for key in flow.flowing}


def _flow(graph: OpGraph, targets: Collection[str]) -> _Flow:
  """Returns where a gradient of targets by the variables flows, and where it is stopped.

  What is computed from stopped values alone has none, but would have one without the stops.
  """
  live, varies = _live(graph), _live(graph, stops=False)
  flow = _Flow({}, {})
  ends = graph.targets()
  pending = [ends[name] for name in targets if name in ends]
  seen = set(pending)
  while pending:
    position = pending.pop()
    op = graph.ops[position]
    for slot, key in enumerate(() if op.op_type in FLAT else op.inputs):
      if key[0] not in varies or not _is_floating(graph, key):
        continue
      if op.is_stopped(slot):
        if key[0] in live:
          flow.stopped.setdefault(key, []).append(position)
        continue
      if key[0] in live:
        flow.flowing.setdefault(key, []).append(position)
      if key[0] not in seen:
        seen.add(key[0])
        pending.append(key[0])
  return flow


def _live(graph: OpGraph, stops: bool = True) -> set[int]:
  """Returns the operations from which a gradient flows back to variables.

  Args:
    graph: the graph.
    stops: whether it is stopped where the graph stops it.
  """
  live: set[int] = set()
  for position, op in enumerate(graph.ops):
    if op.op_type == VARIABLE or any(
      key[0] in live and _is_floating(graph, key) and not (stops and op.is_stopped(slot))
      for slot, key in enumerate(op.inputs)
      if op.op_type not in FLAT
    ):
      live.add(position)
  return live


def _is_floating(graph: OpGraph, key: TensorKey) -> bool:
  outputs = graph.ops[key[0]].outputs
  return key[1] < len(outputs) and outputs[key[1]][0] in _FLOATING
