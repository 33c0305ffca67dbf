"""Where forward passes stop gradients, or replace them, and the variables that are behind."""

import dataclasses
import functools
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from tf2verify.diagnosis.divergence.tensors.regions import Region
from tf2verify.diagnosis.patterns.operations.gradient_paths import marks_of
from tf2verify.records.op_graph import STOPS, TARGET, VARIABLE, OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import family
from tf2verify.sides.graphs.edits.gradient_repairs import marks_before, marks_of_tensor
from tf2verify.sides.graphs.edits.repairs import GRADIENT_ATTRIBUTE
from tf2verify.sides.graphs.run import GraphRun

# Operands may come in any order, and have the same gradient.
_COMMUTATIVE = ('Add', 'AddV2', 'AddN', 'Mul', 'Maximum', 'Minimum', 'SquaredDifference')
# Functions of Python are registered under numbers of their own.
_NUMBER = re.compile(r'[-_]?\d+$')


@dataclasses.dataclass(frozen=True)
class Edge:
  """Where an operation reads a tensor whose gradient is stopped or replaced."""

  key: object  # the same on both sides for the same
  marks: tuple[str, ...]  # what stops or replaces the gradient
  nodes: tuple[str, ...]  # the names of the operations that do
  named: tuple[str, str, str]  # the operation's name, its type, and the name of the input
  producer: int  # the position of what it reads
  reader: int  # the position of the operation
  # The port's tensor that it reads, or whose counterpart; None for an inner one.
  entering: TensorKey | None = None
  slot: int = 0  # the number of the input


def marked(
  run: GraphRun, region: Region, end: str, known_as: Callable[[TensorKey], TensorKey | None]
) -> list[Edge]:
  """Returns where the gradient is stopped or replaced in a region.

  Args:
    run: of the side.
    region: of its graph.
    end: what the last operation is called on both sides.
    known_as: returns what both sides know a tensor by that enters; None for others.
  """
  graph, found = run.op_graph, []
  for position in (*region.inner, region.end):
    op = graph.ops[position]
    name = end if position == region.end else op.name
    for slot, (read, through) in enumerate(zip(op.inputs, op.through, strict=True)):
      marks = _effective(marks_of(through))
      if marks:
        entering = known_as(read) if read[0] not in region.inner else None
        place = -1 if op.op_type in _COMMUTATIVE else slot
        what = op.input_name(slot)
        key = family(op.op_type), place, entering, marks
        nodes = _mark_nodes(run, op, slot)
        named = name, op.op_type, what
        found.append(Edge(key, marks, nodes, named, read[0], position, entering, slot))
    override = op.attribute(GRADIENT_ATTRIBUTE)
    if override:
      marks = (f'gradient of {override}',)
      same = family(op.op_type), _NUMBER.sub('', str(override))
      found.append(
        Edge(same, marks, (op.name,), (name, op.op_type, 'gradient'), position, position)
      )
  return found


def _effective(marks: tuple[str, ...]) -> tuple[str, ...]:
  """Returns what becomes of a gradient: one that is stopped is stopped, however often."""
  return ('StopGradient',) if STOPS & set(marks) else marks


def _mark_nodes(run: GraphRun, op: OpRecord, slot: int) -> tuple[str, ...]:
  if op.op_type == TARGET:
    return marks_of_tensor(run.nodes(), op.tensors[slot])
  return marks_before(run.nodes(), op.name, slot)


def without(edges: Sequence[Edge], keys: Counter[object]) -> Iterator[Edge]:
  left = keys.copy()
  for edge in edges:
    if left[edge.key] > 0:
      left[edge.key] -= 1
    else:
      yield edge


class Variables:
  """The variables that operations are computed from, as bits of a number."""

  def __init__(self, graphs: Sequence[OpGraph]) -> None:
    names = {op.name for graph in graphs for op in graph.ops if op.op_type == VARIABLE}
    self._bits = {name: 1 << n for n, name in enumerate(sorted(names))}
    self.behind = [self._of(graph) for graph in graphs]

  def bits(self, names: Iterable[str]) -> int:
    """Returns some variables; unknown ones are left out."""
    return functools.reduce(operator.or_, (self._bits.get(name, 0) for name in names), 0)

  def _of(self, graph: OpGraph) -> list[int]:
    found: list[int] = []
    for op in graph.ops:
      own = self._bits[op.name] if op.op_type == VARIABLE else 0
      found.append(functools.reduce(operator.or_, (found[n] for n, _ in op.inputs), own))
    return found
