"""Lines of the port's code, with what each of them could compute instead."""

import dataclasses
from collections.abc import Collection, Sequence

from tf2verify.records import rounds
from tf2verify.records.op_graph import TARGET, VARIABLE, NodeChange, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import is_backward
from tf2verify.sides.graphs.edits.repairs import Transplant

# More than so many are not tried one by one.
_FEW = 4
# In the names of what writes of variables are taken apart into.
_WRITTEN = '/formula/'


@dataclasses.dataclass(frozen=True, eq=False)
class Proposal:
  """Something else that a line could compute.

  Attributes:
    changes: of all operations of the line that it concerns, in the order of execution.
    tf1: what these would have, as text.
    tf2: what they have.
    text: what is different, as a sentence about the port.
    like: position of the operation of tf1 that has it so; None where tf1 need not have it.
    what: the name of the attribute or input; '' for the operation itself.
    instead: what is to be preferred where it brings both sides as near; None for nothing.
    transplants: what the run is to yield in place of what it yields.
    is_setting: whether it is so likely that the stage judges it whatever one run shows: slots that
      no number shows to be pairs have other values there.
    only_scales: whether it is a factor that says no more than by how much something is to count.
  """

  changes: tuple[NodeChange, ...]
  tf1: str
  tf2: str
  text: str
  like: int | None = None
  what: str = ''
  instead: 'Proposal | None' = None
  is_setting: bool = False
  transplants: tuple[Transplant, ...] = ()
  only_scales: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Line:
  """The operations that one line of the user's code makes, by position, in order."""

  graph: OpGraph
  positions: tuple[int, ...]

  @property
  def place(self) -> tuple[str, int]:
    """Path and number of the line."""
    source = self.graph.ops[self.positions[0]].source
    assert source is not None, 'these are the operations of a line'
    return source.at

  @property
  def ops(self) -> list[OpRecord]:
    """These operations."""
    return [self.graph.ops[n] for n in self.positions]


def lines_of_code(graph: OpGraph, among: Collection[int]) -> list[Line]:
  """Returns the lines that make some operations, in the order of the first ones of these.

  Each has all operations that the line makes: an edit of the code is one of all of them.
  """
  found: dict[tuple[str, int], list[int]] = {}
  for position, op in enumerate(graph.ops):
    if op.source is not None and not op.is_leaf and op.op_type != TARGET:
      found.setdefault(op.source.at, []).append(position)
  wanted = set(among)
  firsts = ((min(wanted.intersection(places), default=None), places) for places in found.values())
  known = sorted((first, places) for first, places in firsts if first is not None)
  return [Line(graph, tuple(places)) for _, places in known]


def name_at(line: Line, position: int) -> str:
  """Returns how a reader is told of an operation of a line."""
  op = line.graph.ops[position]
  return f'{op.name} ({op.op_type})'


def runs_of_a_line(line: Line, consumers: Sequence[Sequence[tuple[int, int]]]) -> list[list[int]]:
  """Returns the operations that one expression of a line makes, each time that the line runs.

  In a loop, or in a layer that is called again. An expression is told by what the line does before
  and behind it; where that is not alike in all runs, those of a type are taken together as well.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
  """
  graph = line.graph
  run_of = _runs(line)
  contexts: dict[object, list[int]] = {}
  types: dict[object, list[int]] = {}
  for n, run in run_of.items():
    op = graph.ops[n]
    before = tuple(graph.ops[k].op_type if run_of.get(k) == run else '' for k, _ in op.inputs)
    readers = ((graph.ops[k].op_type, slot) for k, slot in consumers[n] if run_of.get(k) == run)
    contexts.setdefault((op.op_type, before, frozenset(readers)), []).append(n)
    types.setdefault((op.op_type, len(op.inputs)), []).append(n)
  found = [*contexts.values(), *types.values()]
  if len(set(run_of.values())) <= _FEW:
    found += [[n] for n in run_of]
  return [list(places) for places in dict.fromkeys(map(tuple, found))]


def _runs(line: Line) -> dict[int, object]:
  """Returns in which run of a line each of its operations is: another line is between two runs."""
  graph = line.graph
  inside = {n for n in line.positions if not is_backward(graph.ops[n])}
  found: dict[int, object] = {}
  block = 0
  for n in range(min(inside, default=0), max(inside, default=-1) + 1):
    numbers = rounds.numbers_of(graph.ops[n].name)
    if n in inside:
      found[n] = (rounds.outermost_loop(graph.ops[n].name), numbers) if numbers else block
    elif not (graph.ops[n].is_leaf or numbers):
      block += 1
  return found


def each_time(alike: Sequence[int]) -> str:
  """Returns how often a line runs, as an addition to a text."""
  return f', each of the {len(alike)} times that it runs' if len(alike) > 1 else ''


def slots_of_readers(
  graph: OpGraph, consumers: Sequence[Sequence[tuple[int, int]]], position: int
) -> dict[int, list[int]]:
  """Returns by which inputs others read an operation; empty where a result of the graph does.

  Args:
    graph: of the port.
    consumers: for every operation, who reads it.
    position: of the operation. What its gradient reads is left out: it is formed anew.
  """
  slots: dict[int, list[int]] = {}
  for reader, slot in consumers[position]:
    if graph.ops[reader].op_type == TARGET:
      return {}
    if not is_backward(graph.ops[reader]):
      slots.setdefault(reader, []).append(slot)
  return slots


def gathers(graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether an operation is a write that adds to what a variable holds.

  In steps of one batch, a part of a sum over several steps looks like what divides it: to leave it
  out is no correction.
  """
  is_sum = op.op_type in ('AddV2', 'Add') and _WRITTEN in op.name
  return is_sum and any(graph.ops[n].op_type == VARIABLE for n, _ in op.inputs)
