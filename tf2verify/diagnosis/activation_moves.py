"""Activations that stand elsewhere: in front of a normalization for behind it, or the reverse."""

from collections.abc import Collection, Iterator, Sequence

from tf2verify.diagnosis.code_lines import (
  Line,
  Proposal,
  each_time,
  runs_of_a_line,
  slots_of_readers,
)
from tf2verify.diagnosis.patterns.reads import text_with_line
from tf2verify.records.op_graph import TARGET, Inserted, NodeChange, OpGraph
from tf2verify.relation.op_pairs import is_backward

# Of one operand, and without attributes.
_ACTIVATIONS = frozenset(
  ('Relu', 'Relu6', 'Elu', 'Selu', 'Tanh', 'Sigmoid', 'Softplus', 'Softsign', 'Abs', 'Square')
)
_FLOAT = 'float32'
# A normalization that is written out has a dozen operations.
_MOST_STEPS = 24
_MOST = 16
_Readers = Sequence[Sequence[tuple[int, int]]]


def activation_moves(line: Line, consumers: _Readers, kinds: Collection[str]) -> Iterator[Proposal]:
  """Yields activations of a line at tensors of their shape behind them, then before them.

  Args:
    line: of the port.
    consumers: for every operation, who reads it.
    kinds: types of operations that tf1 has.
  """
  graph = line.graph
  for alike in runs_of_a_line(line, consumers):
    op = graph.ops[alike[0]]
    if op.op_type not in _ACTIVATIONS or op.op_type not in kinds or not _is_plain(graph, alike[0]):
      continue
    for places_of in (_behind, _ahead):
      places = [list(places_of(graph, consumers, n)) for n in alike]
      for row in list(zip(*places, strict=False))[:_MOST]:
        if len({graph.ops[n].op_type for n in row}) > 1:
          continue  # another way of another run
        readers = [_moved(graph, consumers, n, place) for n, place in zip(alike, row, strict=True)]
        if all(readers):
          read, to = (text_with_line(graph, key) for key in (op.inputs[0], (row[0], 0)))
          text = (
            f'{op.name} ({op.op_type}) is done to {read} in the port; done to {to} instead it '
            f'yields what tf1 does{each_time(alike)}'
          )
          changes = tuple(change for one in readers for change in one)
          yield Proposal(changes, to, read, text, what='place')


def _is_plain(graph: OpGraph, position: int) -> bool:
  op = graph.ops[position]
  return len(op.inputs) == 1 and bool(op.outputs) and op.outputs[0][0] == _FLOAT


def _behind(graph: OpGraph, consumers: _Readers, position: int) -> Iterator[int]:
  """Yields operations that yield the shape of one, and are computed from it, nearest first."""
  seen, pending = {position}, [position]
  while pending and len(seen) < _MOST_STEPS:
    for n, _ in consumers[pending.pop(0)]:
      if n not in seen and graph.ops[n].op_type != TARGET and not is_backward(graph.ops[n]):
        seen.add(n)
        pending.append(n)
  yield from (n for n in sorted(seen - {position}) if _fits(graph, n, position))


def _ahead(graph: OpGraph, consumers: _Readers, position: int) -> Iterator[int]:
  """Yields operations that yield the shape of one, and that it is computed from, nearest first."""
  del consumers
  seen, pending = {position}, [position]
  while pending and len(seen) < _MOST_STEPS:
    for n, _ in graph.ops[pending.pop(0)].inputs:
      if n not in seen and not graph.ops[n].is_leaf:
        seen.add(n)
        pending.append(n)
  # What it reads itself is no other place.
  own = graph.ops[position].inputs[0][0]
  places = sorted(seen - {position, own}, reverse=True)
  yield from (n for n in places if _fits(graph, n, position))


def _fits(graph: OpGraph, n: int, position: int) -> bool:
  op = graph.ops[n]
  return len(op.outputs) == 1 and op.outputs == graph.ops[position].outputs


def _moved(graph: OpGraph, consumers: _Readers, position: int, place: int) -> list[NodeChange]:
  """Returns what leaves an activation out and puts it where what another yields is read."""
  op = graph.ops[position]
  slots = slots_of_readers(graph, consumers, place)
  if not slots or position in slots:
    return []
  put = [
    NodeChange(graph.ops[n].name, inserted=tuple(Inserted(k, op.op_type) for k in known))
    for n, known in slots.items()
  ]
  return [NodeChange(op.name, op_type='Identity', reads=(0,)), *put]
