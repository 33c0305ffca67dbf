"""Operations put into the port's graph, between others."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from tf2verify.records.op_graph import CONSTANT, TARGET, Inserted, NodeChange, OpGraph, TensorKey


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
  readers = [one for n in alike for one in consumers[n]]
  is_float = all(_is_float(graph, (n, 0)) for n in alike)
  if readers and is_float and all(graph.ops[n].op_type != TARGET for n, _ in readers):
    slots_of: dict[int, list[int]] = {}
    for reader, slot in readers:
      slots_of.setdefault(reader, []).append(slot)
    after = (_change(graph, n, slots, kind, number) for n, slots in slots_of.items())
    yield Insertion(tuple(after), f'after {op.name} ({op.op_type})')
  floats = [slot for slot, key in enumerate(op.inputs) if _is_float(graph, key)]
  for slots in [[slot] for slot in floats] + ([floats] if len(floats) > 1 else []):
    before = (_change(graph, n, slots, kind, number) for n in alike)
    names = ', '.join(op.input_names[slot] for slot in slots) if op.input_names else ''
    which = f' at its {names}' if names and len(op.inputs) > 1 else ''
    yield Insertion(tuple(before), f'before {op.name} ({op.op_type}){which}')


def _change(
  graph: OpGraph, position: int, slots: Iterable[int], kind: str, number: float | None
) -> NodeChange:
  inserted = tuple(Inserted(slot, kind, number) for slot in slots)
  return NodeChange(graph.ops[position].name, inserted=inserted)


def _is_float(graph: OpGraph, key: TensorKey) -> bool:
  op = graph.ops[key[0]]
  return op.op_type != CONSTANT and op.outputs[key[1]][0] == 'float32'
