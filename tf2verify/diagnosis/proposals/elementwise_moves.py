"""Elementwise operations of one tensor that stand elsewhere: an activation, a bound, a factor.

In front of a normalization, say, for behind it; or a clipped sum for a clipped term of it. What one
expression does to a tensor, as the two bounds of `clip_by_value`, is moved together.
"""

import dataclasses
from collections.abc import Collection, Iterator, Sequence

from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.proposals.code_lines import (
  Line,
  Proposal,
  each_time,
  runs_of_a_line,
  slots_of_readers,
)
from tf2verify.diagnosis.proposals.insertions import operand_of
from tf2verify.records.op_graph import INPUT, TARGET, Inserted, NodeChange, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward

_OF_ONE = frozenset(
  ('Abs', 'Elu', 'Exp', 'Log', 'Log1p', 'Neg', 'Relu', 'Relu6', 'Rsqrt', 'Selu')
).union(('Sigmoid', 'Softplus', 'Softsign', 'Sqrt', 'Square', 'Tanh'))
_WITH_A_NUMBER = frozenset(('Maximum', 'Minimum', 'Mul', 'AddV2', 'Sub', 'RealDiv', 'Pow'))
_COMMUTATIVE = frozenset(('Maximum', 'Minimum', 'Mul', 'AddV2'))
_FLOAT = 'float32'
# A normalization that is written out has a dozen operations.
_MOST_STEPS = 24
_MOST = 16
_Readers = Sequence[Sequence[tuple[int, int]]]


@dataclasses.dataclass(frozen=True)
class _Chain:
  """Operations of one expression, each of which alone reads the one before it."""

  positions: tuple[int, ...]
  slot: int  # the input by which the first one reads its tensor


def elementwise_moves(
  line: Line, consumers: _Readers, kinds: Collection[str]
) -> Iterator[Proposal]:
  """Yields elementwise operations of a line at tensors of their shape behind them, then before.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
    kinds: types of operations that tf1 has.
  """
  graph = line.graph
  for alike in runs_of_a_line(line, consumers):
    known = [_chain(line, consumers, n) for n in alike]
    chains = [one for one in known if one is not None]
    positions = [n for one in chains for n in one.positions]
    if len(chains) < len(known) or not all(graph.ops[n].op_type in kinds for n in positions):
      continue
    first = chains[0]
    for places_of in (_behind, _ahead):
      places = [list(places_of(graph, consumers, one)) for one in chains]
      for row in list(zip(*places, strict=False))[:_MOST]:
        if len({graph.ops[n].op_type for n in row}) > 1:
          continue  # another way of another run
        moved = [_moved(graph, consumers, *both) for both in zip(chains, row, strict=True)]
        if all(moved):
          read, to = (text_with_line(graph, key) for key in (_read(graph, first), (row[0], 0)))
          text = (
            f'{_said(graph, first)} is done to {read} in the port; done to {to} instead it '
            f'yields what tf1 does{each_time(alike)}'
          )
          changes = tuple(change for one in moved for change in one)
          yield Proposal(changes, to, read, text, what='place')


def _read(graph: OpGraph, chain: _Chain) -> TensorKey:
  """Returns the tensor that a chain reads."""
  return graph.ops[chain.positions[0]].inputs[chain.slot]


def _said(graph: OpGraph, chain: _Chain) -> str:
  ops = [graph.ops[n] for n in chain.positions]
  return f'{ops[-1].name} ({" → ".join(op.op_type for op in ops)})'


def _chain(line: Line, consumers: _Readers, start: int) -> _Chain | None:
  """Returns what an expression does from an operation on; None where it begins before that."""
  graph, own = line.graph, set(line.positions)
  slot = _slot(graph, start)
  if slot is None:
    return None
  before = graph.ops[start].inputs[slot][0]
  if before in own and _slot(graph, before) is not None and len(consumers[before]) == 1:
    return None
  positions, n = [start], start
  while True:
    readers = [one for one in consumers[n] if not is_backward(graph.ops[one[0]])]
    if len(readers) != 1 or readers[0][0] not in own or _slot(graph, readers[0][0]) is None:
      return _Chain(tuple(positions), slot)
    n = readers[0][0]
    positions.append(n)


def _slot(graph: OpGraph, position: int) -> int | None:
  """Returns by which input an operation reads its tensor; None where it is not elementwise."""
  op = graph.ops[position]
  if is_backward(op) or [dtype for dtype, _ in op.outputs] != [_FLOAT]:
    return None
  if op.op_type in _OF_ONE and len(op.inputs) == 1:
    return 0
  slot, number = operand_of(graph, position)
  # A number that comes first is another function, of a division say.
  is_first = slot == 1 and op.op_type not in _COMMUTATIVE
  return slot if op.op_type in _WITH_A_NUMBER and number is not None and not is_first else None


def _behind(graph: OpGraph, consumers: _Readers, chain: _Chain) -> Iterator[int]:
  """Yields operations that yield the shape of a chain, and are computed from it, nearest first."""
  end = chain.positions[-1]
  seen, pending = {end}, [end]
  while pending and len(seen) < _MOST_STEPS:
    for n, _ in consumers[pending.pop(0)]:
      if n not in seen and graph.ops[n].op_type != TARGET and not is_backward(graph.ops[n]):
        seen.add(n)
        pending.append(n)
  yield from (n for n in sorted(seen - {end}) if _fits(graph, n, end))


def _ahead(graph: OpGraph, consumers: _Readers, chain: _Chain) -> Iterator[int]:
  """Yields what a chain is computed from, and has its shape, nearest first."""
  del consumers
  # What it reads itself is no other place.
  own = _read(graph, chain)[0]
  seen, pending = {own}, [own]
  while pending and len(seen) < _MOST_STEPS:
    for n, _ in graph.ops[pending.pop(0)].inputs:
      if n not in seen and (graph.ops[n].op_type == INPUT or not graph.ops[n].is_leaf):
        seen.add(n)
        pending.append(n)
  places = sorted(seen - {own}, reverse=True)
  yield from (n for n in places if _fits(graph, n, chain.positions[-1]))


def _fits(graph: OpGraph, n: int, position: int) -> bool:
  op = graph.ops[n]
  return len(op.outputs) == 1 and op.outputs == graph.ops[position].outputs


def _moved(graph: OpGraph, consumers: _Readers, chain: _Chain, place: int) -> list[NodeChange]:
  """Returns what leaves a chain out and puts it where what another operation yields is read."""
  readers = slots_of_readers(graph, consumers, place)
  if not readers or not readers.keys().isdisjoint(chain.positions):
    return []
  known = [(graph.ops[n].op_type, *operand_of(graph, n)) for n in chain.positions]
  out = [
    NodeChange(graph.ops[n].name, op_type='Identity', reads=(slot,))
    for n, (_, slot, _) in zip(chain.positions, known, strict=True)
  ]
  put = [
    NodeChange(
      graph.ops[n].name,
      inserted=tuple(Inserted(slot, kind, number) for slot in slots for kind, _, number in known),
    )
    for n, slots in readers.items()
  ]
  return [*out, *put]
