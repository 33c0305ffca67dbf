"""Operations of two tensors computed before or after their neighbor, or left out.

A gate that multiplies a product (`r * (h @ kernel)`) in place of what is multiplied
(`(r * h) @ kernel`), or a mean in place of a sum: every operation is one that tf1 has as well.
"""

from collections.abc import Iterator, Sequence

from tf2verify.diagnosis.patterns.numbers.known_values import is_number
from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.proposals.code_lines import (
  Line,
  Proposal,
  each_time,
  gathers,
  runs_of_a_line,
)
from tf2verify.records.op_graph import (
  TARGET,
  Inserted,
  NodeChange,
  OpGraph,
  TensorKey,
)
from tf2verify.relation.operations.op_pairs import is_backward

# What an operation does with two operands, as text.
_SAID = {
  'Mul': 'multiplies {0} by {1}',
  'RealDiv': 'divides {0} by {1}',
  'AddV2': 'adds {1} to {0}',
  'Sub': 'subtracts {1} from {0}',
}
_COMMUTATIVE = ('Mul', 'AddV2')
_FLOAT = 'float32'
# Operations between the two places of one that is moved back, and places that are looked at.
_FARTHEST, _MOST_WAYS = 5, 24
_Readers = Sequence[Sequence[tuple[int, int]]]


def operand_moves(line: Line, consumers: _Readers) -> Iterator[Proposal]:
  """Yields operations of two tensors before what they read, or after what reads them.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
  """
  graph = line.graph
  for alike in runs_of_a_line(line, consumers):
    # The first round of a loop reads what the loop is given.
    shown = alike[min(1, len(alike) - 1)]
    for kept in _kept(graph, alike):
      for way in _ways(graph, consumers, shown, kept):
        moved = [_before(graph, consumers, n, kept, way) for n in alike]
        if all(moved):
          before = _neighbor(graph, shown, (kept, *way[:-1]))
          key = graph.ops[before].inputs[way[-1]]
          to = f'to {text_with_line(graph, key)} before {text_with_line(graph, (before, 0))}'
          yield _told(graph, alike, shown, kept, [c for one in moved for c in one], to)
      moved = [_after(graph, consumers, n, kept) for n in alike]
      if all(moved):
        behind = _forward(graph, consumers, shown)[0][0]
        to = f'after {text_with_line(graph, (behind, 0))}'
        yield _told(graph, alike, shown, kept, [c for one in moved for c in one], to)


def without_operands(line: Line, consumers: _Readers) -> Iterator[Proposal]:
  """Yields operations of two tensors left out, that have the shape of one of them.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
  """
  graph = line.graph
  for alike in runs_of_a_line(line, consumers):
    first = graph.ops[alike[0]]
    if gathers(graph, first):
      continue
    for kept in _kept(graph, alike):
      changes = tuple(
        NodeChange(graph.ops[n].name, op_type='Identity', reads=(kept,)) for n in alike
      )
      text = (
        f'{_doing(graph, alike[0], kept)} in the port; without that it yields what tf1 does'
        f'{each_time(alike)}'
      )
      operand = text_with_line(graph, first.inputs[1 - kept])
      yield Proposal(changes, '', f'{first.op_type}({operand})', text)


def _kept(graph: OpGraph, alike: Sequence[int]) -> Iterator[int]:
  """Yields the number of an input that operations have the shape of, beside another tensor."""
  op_type = graph.ops[alike[0]].op_type
  if op_type in _SAID:
    for kept in (0, 1) if op_type in _COMMUTATIVE else (0,):
      if all(_has_shape_of(graph, n, kept) for n in alike):
        yield kept


def _has_shape_of(graph: OpGraph, position: int, kept: int) -> bool:
  op = graph.ops[position]
  key, other = op.inputs[kept], op.inputs[1 - kept]
  if is_number(graph, key) or is_number(graph, other):
    return False
  return op.outputs[0][0] == _FLOAT and graph.ops[key[0]].outputs[key[1]] == op.outputs[0]


def _ways(
  graph: OpGraph, consumers: _Readers, position: int, kept: int
) -> Iterator[tuple[int, ...]]:
  """Yields ways back to what is read, by the number of an input at each operation, nearest first.

  Past several operations, as from behind an activation to one of the tensors that are joined.
  """
  pending: list[tuple[int, ...]] = [(kept,)]
  found = 0
  while pending:
    way = pending.pop(0)
    near = _neighbor(graph, position, way)
    if not _passes_alone(graph, consumers, near):
      continue
    for slot in range(len(graph.ops[near].inputs)):
      if found == _MOST_WAYS:
        return
      found += 1
      yield (*way[1:], slot)
      if len(way) < _FARTHEST:
        pending.append((*way, slot))


def _neighbor(graph: OpGraph, position: int, way: Sequence[int]) -> int:
  for slot in way:
    position = graph.ops[position].inputs[slot][0]
  return position


def _passes_alone(graph: OpGraph, consumers: _Readers, position: int) -> bool:
  """Returns whether an operation yields one tensor, which one operation reads."""
  op = graph.ops[position]
  one = len({n for n, _ in _forward(graph, consumers, position)}) == 1
  return one and not op.is_leaf and len(op.outputs) == 1


def _before(
  graph: OpGraph, consumers: _Readers, position: int, kept: int, way: Sequence[int]
) -> list[NodeChange]:
  """Returns what has an operation done to what it reads, or that is from; nothing if it cannot."""
  op = graph.ops[position]
  other, near = op.inputs[1 - kept], position
  for step in (kept, *way[:-1]):
    if step >= len(graph.ops[near].inputs):
      return []
    near = graph.ops[near].inputs[step][0]
    if not _passes_alone(graph, consumers, near):
      return []
  neighbor, slot = graph.ops[near], way[-1]
  if slot >= len(neighbor.inputs) or is_number(graph, neighbor.inputs[slot]):
    return []
  key = neighbor.inputs[slot]
  if not _fits(graph, key, other) or _is_behind(graph, other, near):
    return []
  if len(way) > 1 and graph.ops[key[0]].outputs[key[1]] != op.outputs[0]:
    return []  # too many would fit
  put = Inserted(slot, op.op_type, tensor=graph.tensor(other))
  return [
    NodeChange(op.name, op_type='Identity', reads=(kept,)),
    NodeChange(neighbor.name, inserted=(put,)),
  ]


def _after(graph: OpGraph, consumers: _Readers, position: int, kept: int) -> list[NodeChange]:
  """Returns what has an operation done to what reads it; nothing where it cannot be."""
  op = graph.ops[position]
  other = op.inputs[1 - kept]
  readers = _forward(graph, consumers, position)
  if len(readers) != 1 or graph.ops[readers[0][0]].op_type == TARGET:
    return []
  behind = readers[0][0]
  ends = _forward(graph, consumers, behind)
  if not _fits(graph, (behind, 0), other) or len(graph.ops[behind].outputs) != 1 or not ends:
    return []
  if any(graph.ops[n].op_type == TARGET or _is_behind(graph, other, n) for n, _ in ends):
    return []
  slots: dict[int, list[int]] = {}
  for n, slot in ends:
    slots.setdefault(n, []).append(slot)
  name = graph.tensor(other)
  return [
    NodeChange(op.name, op_type='Identity', reads=(kept,)),
    *(
      NodeChange(
        graph.ops[n].name, inserted=tuple(Inserted(k, op.op_type, tensor=name) for k in known)
      )
      for n, known in slots.items()
    ),
  ]


def _forward(graph: OpGraph, consumers: _Readers, position: int) -> list[tuple[int, int]]:
  """Returns who reads an operation; gradients are formed anew."""
  return [one for one in consumers[position] if not is_backward(graph.ops[one[0]])]


def _is_behind(graph: OpGraph, key: TensorKey, position: int) -> bool:
  """Returns whether a tensor is computed from an operation; what is made before it is not."""
  return key[0] >= position and position in graph.ancestors([key[0]])


def _fits(graph: OpGraph, key: TensorKey, operand: TensorKey) -> bool:
  """Returns whether a tensor keeps its shape with an operand, both of 32 bits."""
  (dtype, shape), (other, own) = (graph.ops[n].outputs[k] for n, k in (key, operand))
  if dtype != _FLOAT or other != _FLOAT or shape is None or own is None or len(own) > len(shape):
    return False
  return all(one in (1, two) for one, two in zip(own[::-1], shape[::-1], strict=False))


def _told(
  graph: OpGraph,
  alike: Sequence[int],
  shown: int,
  kept: int,
  changes: Sequence[NodeChange],
  to: str,
) -> Proposal:
  """Returns a move as a proposal.

  Args:
    graph: of the port.
    alike: positions of what is moved, in all runs of a line.
    shown: the one of these that is told.
    kept: number of the input that these have the shape of.
    changes: the edit.
    to: where it is moved, as text.
  """
  text = (
    f'{_doing(graph, shown, kept)} in the port; done {to} it yields what tf1 does{each_time(alike)}'
  )
  return Proposal(tuple(changes), to, 'as it is', text, what='place')


def _doing(graph: OpGraph, position: int, kept: int) -> str:
  """Returns what an operation does with its two operands, as text."""
  op = graph.ops[position]
  both = (text_with_line(graph, op.inputs[k]) for k in (kept, 1 - kept))
  return f'{op.name} ({op.op_type}) {_SAID[op.op_type].format(*both)}'
