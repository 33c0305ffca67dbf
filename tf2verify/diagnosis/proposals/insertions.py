"""Operations put into the port's graph, between others."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number, is_computed_float
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.records.op_graph import TARGET, Inserted, NodeChange, OpGraph
from tf2verify.relation.operations.op_pairs import is_backward

_COMMUTATIVE = ('Mul', 'AddV2')
_SUMS = ('AddV2', 'Sub', 'AddN')
# How many operations behind a factor the sum is looked for in which it is one of a term.
_FARTHEST = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Insertion:
  """An operation that some others of the port's graph are to read through.

  Attributes:
    changes: of the operations that read it.
    place: where it is, as text: `after dense/BiasAdd (BiasAdd)`.
  """

  changes: tuple[NodeChange, ...]
  place: str


def groups_of_a_type(graph: OpGraph, positions: Iterable[int]) -> Iterator[Sequence[int]]:
  """Yields the operations of each type together, then each one of several alone."""
  types: dict[str, list[int]] = {}
  for n in positions:
    types.setdefault(graph.ops[n].op_type, []).append(n)
  yield from types.values()
  yield from ([n] for alike in types.values() if len(alike) > 1 for n in alike)


def insertions(
  graph: OpGraph,
  consumers: Sequence[Sequence[tuple[int, int]]],
  alike: Sequence[int],
  kind: str,
  number: float | None,
) -> Iterator[Insertion]:
  """Yields an operation put in after some others, before each of their inputs, and before all.

  Args:
    graph: the port's.
    consumers: for every operation, who reads it.
    alike: positions of operations of one type.
    kind: the type of what is put in, an operation of 32 bits.
    number: its second operand; None where it has but one.
  """
  op = graph.ops[alike[0]]
  # Gradients are formed anew.
  readers = [one for n in alike for one in consumers[n] if not is_backward(graph.ops[one[0]])]
  is_float = all(is_computed_float(graph, (n, 0)) for n in alike)
  if readers and is_float and all(graph.ops[n].op_type != TARGET for n, _ in readers):
    slots_of: dict[int, list[int]] = {}
    for reader, slot in readers:
      slots_of.setdefault(reader, []).append(slot)
    after = (_change(graph, n, slots, kind, number) for n, slots in slots_of.items())
    yield Insertion(tuple(after), f'after {op.name} ({op.op_type})')
  floats = [slot for slot, key in enumerate(op.inputs) if is_computed_float(graph, key)]
  for slots in [[slot] for slot in floats] + ([floats] if len(floats) > 1 else []):
    before = (_change(graph, n, slots, kind, number) for n in alike)
    names = ', '.join(op.input_names[slot] for slot in slots) if op.input_names else ''
    which = f' at its {names}' if names and len(op.inputs) > 1 else ''
    yield Insertion(tuple(before), f'before {op.name} ({op.op_type}){which}')


@dataclasses.dataclass(frozen=True, eq=False)
class Move:
  """Operations of the port's graph computed at another place.

  Attributes:
    changes: of all operations that are concerned.
    said: what is moved, as text.
    before: where the port has it, as text.
    after: where it is moved to.
    number: its second operand; None where it has but one.
  """

  changes: tuple[NodeChange, ...]
  said: str
  before: str
  after: str
  number: float | None = None


def moves(
  graph: OpGraph, consumers: Sequence[Sequence[tuple[int, int]]], alike: Sequence[int]
) -> Iterator[Move]:
  """Yields some operations moved before what they read, or after what reads them.

  Args:
    graph: the port's.
    consumers: for every operation, who reads it.
    alike: positions of operations of one type, of one operand or of one and a number.
  """
  first = graph.ops[alike[0]]
  taken = _taken_out(graph, alike)
  if taken is None:
    return
  out, said, slot, number = taken
  producers = [graph.ops[n].inputs[slot][0] for n in alike]
  forward = [[r for r, _ in consumers[n] if not is_backward(graph.ops[r])] for n in alike]
  readers = [found[0] for found in forward if len(found) == 1]
  groups = [(producers, 'after', 'before')]
  groups += [(readers, 'before', 'after')] if len(readers) == len(alike) else []
  for neighbors, here, there in groups:
    one = graph.ops[neighbors[0]]
    if one.is_leaf or one.op_type == TARGET or len({graph.ops[n].op_type for n in neighbors}) > 1:
      continue
    for put in insertions(graph, consumers, neighbors, first.op_type, number):
      changes = _joined(out, put.changes) if put.place.startswith(there) else None
      if changes is not None:
        yield Move(changes, f'{said} ({first.name})', f'{here} {one.name}', put.place, number)


def to_other_terms(
  graph: OpGraph,
  consumers: Sequence[Sequence[tuple[int, int]]],
  line: Sequence[int],
  position: int,
) -> Iterator[Move]:
  """Yields an operation moved behind others of its line, and to the other terms of a sum.

  Args:
    graph: the port's.
    consumers: for every operation, who reads it.
    line: positions of the operations of its line.
    position: of an operation of one operand, or of one and a number.
  """
  taken = _taken_out(graph, [position])
  if taken is None:
    return
  out, said, slot, number = taken
  here = graph.ops[graph.ops[position].inputs[slot][0]].name
  own = graph.ops[position]
  for n in dict.fromkeys([*_other_terms(graph, consumers, position), *line]):
    if n == position or graph.ops[n].is_leaf or graph.ops[n].outputs[:1] == ():
      continue
    put = next(insertions(graph, consumers, [n], own.op_type, number), None)
    changes = (
      _joined(out, put.changes) if put is not None and put.place.startswith('after') else None
    )
    if put is not None and changes is not None:
      yield Move(changes, f'{said} ({own.name})', f'after {here}', put.place, number)


def _other_terms(
  graph: OpGraph, consumers: Sequence[Sequence[tuple[int, int]]], position: int
) -> Iterator[int]:
  """Yields what is added to what is computed of an operation, in the first sum behind it."""
  for _ in range(_FARTHEST):
    readers = [n for n, _ in consumers[position] if not is_backward(graph.ops[n])]
    if len(readers) != 1:
      return
    (reader,) = readers
    if graph.ops[reader].op_type in _SUMS:
      yield from (n for n, _ in graph.ops[reader].inputs if n != position)
      return
    position = reader


def _taken_out(
  graph: OpGraph, alike: Sequence[int]
) -> tuple[tuple[NodeChange, ...], str, int, float | None] | None:
  """Returns operations left out, what they are as text, which input they change, and their number.

  None where they are not all alike, or no operations of one operand, or of one and a number.
  """
  first = graph.ops[alike[0]]
  slot, number = operand_of(graph, alike[0])
  is_alike = all(operand_of(graph, n) == (slot, number) for n in alike)
  is_of_two = number is None and len(first.inputs) > 1
  # A number that comes first is another function, of a division say.
  is_turned = number is not None and slot and first.op_type not in _COMMUTATIVE
  if not is_alike or is_of_two or is_turned:
    return None
  out = tuple(NodeChange(graph.ops[n].name, op_type='Identity', reads=(slot,)) for n in alike)
  said = first.op_type if number is None else f'{first.op_type}({value_text(number)})'
  return out, said, slot, number


def _joined(
  out: Sequence[NodeChange], put_in: Sequence[NodeChange]
) -> tuple[NodeChange, ...] | None:
  """Returns both; None where one operation is to be left out and to read something else."""
  if {change.op for change in out} & {change.op for change in put_in}:
    return None
  return (*out, *put_in)


def operand_of(graph: OpGraph, position: int) -> tuple[int, float | None]:
  """Returns which input an operation changes, and the number that is its other one, if any."""
  op = graph.ops[position]
  for slot, (producer, _) in enumerate(op.inputs[:2]):
    value = constant_or_number(graph, producer)
    if value is not None and value.size == 1 and value.dtype.kind == 'f':
      return 1 - slot, value.item()
  return 0, None


def _change(
  graph: OpGraph, position: int, slots: Iterable[int], kind: str, number: float | None
) -> NodeChange:
  inserted = tuple(Inserted(slot, kind, number) for slot in slots)
  return NodeChange(graph.ops[position].name, inserted=inserted)
