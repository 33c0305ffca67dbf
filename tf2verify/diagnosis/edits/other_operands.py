"""Another tensor that an operation of a line could read, of those that the port has there.

The queries for the keys, the new state for the old one: a name is mistaken for another one. Where
tf1 writes the rest in another way, no operation tells that the tensor is the wrong one. So each
that is there, and is like what is read, is tried in its place. A line of a loop in Python, or of a
layer that is called several times, reads another tensor each time that it runs: what other lines
that run as often read or make at the same place.
"""

import itertools
from collections.abc import Collection, Iterator, Sequence

from tf2verify.diagnosis.divergence.tensors.outputs import is_opaque
from tf2verify.diagnosis.edits.operand_exchanges import MOST_ROUNDS, read_by, runs_of
from tf2verify.diagnosis.patterns.operations.reads import text_with_line
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal
from tf2verify.records.op_graph import CONSTANT, INPUT, TARGET, NodeChange, OpGraph, TensorKey
from tf2verify.relation.operations.op_pairs import is_backward

# One for each time that a line runs.
_Tensors = tuple[TensorKey, ...]
_Reader = tuple[int, int]
_MOST_OTHERS = 24
_MOST_INPUTS = 2
# Of these, two on one line may have each other's operands.
_ARITHMETIC = ('Mul', 'RealDiv', 'MatMul', 'BatchMatMulV2', 'Maximum', 'Minimum', 'Pow')


class OtherOperands:
  """What lines could read in place of what they read."""

  def __init__(self, graph: OpGraph, lines: Sequence[Line], behind: Collection[int]) -> None:
    """Prepares.

    Args:
      graph: the port's graph.
      lines: its lines.
      behind: positions of the operations behind what fails.
    """
    self._graph = graph
    self._behind = behind
    self._consumers = graph.consumers()
    self._by_count: dict[int, dict[_Tensors, None]] = {}
    for line in lines:
      for runs in self._runs(line):
        known = self._by_count.setdefault(len(runs), {})
        known.update(dict.fromkeys(self._tensors(runs)))

  def of(self, line: Line) -> Iterator[Proposal]:
    """Yields other tensors for each that a line reads, the nearest first."""
    for runs in self._runs(line):
      yield from self._in_runs(runs)

  def like(self, own: Sequence[TensorKey], readers: Sequence[int]) -> list[_Tensors]:
    """Returns tensors that are like some, and there before some operations, the nearest first.

    Args:
      own: the tensors, one for each time that a line runs.
      readers: positions of the operations, one for each.
    """
    return self._others(tuple(own), [[n] for n in readers])

  def exchanged(self, line: Line) -> Iterator[Proposal]:
    """Yields two operations of a line that each read what the other one reads: `1 - f` for `f`."""
    for runs in self._runs(line):
      first = [self._graph.ops[n] for n in runs[0]]
      reads = [
        (number, slot)
        for number, op in enumerate(first)
        for slot in range(len(op.inputs))
        if op.op_type in _ARITHMETIC
      ]
      for one, other in itertools.combinations(reads, 2):
        if one[0] != other[0] and first[one[0]].op_type == first[other[0]].op_type:
          changes = [self._exchange(run, one, other) for run in runs]
          if all(changes):
            yield self._told(runs, one, other, [change for both in changes for change in both])

  def _exchange(self, run: Sequence[int], one: _Reader, other: _Reader) -> list[NodeChange]:
    """Returns what exchanges two inputs in one run of a line; nothing where they cannot be."""
    ops = self._graph.ops
    both = [(run[number], slot) for number, slot in (one, other)]
    keys = [ops[n].inputs[slot] for n, slot in both]
    kinds = [ops[n].outputs[k] for n, k in keys]
    if keys[0] == keys[1] or kinds[0] != kinds[1] or not kinds[0][1]:
      return []
    # Neither may be computed from what is to read it.
    if any(
      n in self._graph.ancestors([key[0]]) for (n, _), key in zip(both, keys[::-1], strict=True)
    ):
      return []
    return [
      NodeChange(ops[n].name, other=((slot, self._graph.tensor(key)),))
      for (n, slot), key in zip(both, keys[::-1], strict=True)
    ]

  def _told(
    self,
    runs: Sequence[Sequence[int]],
    one: _Reader,
    other: _Reader,
    changes: Sequence[NodeChange],
  ) -> Proposal:
    ops = self._graph.ops
    both = [ops[runs[0][number]] for number, _ in (one, other)]
    slots = one[1], other[1]
    read = [
      text_with_line(self._graph, op.inputs[slot]) for op, slot in zip(both, slots, strict=True)
    ]
    more = f', each of the {len(runs)} times that the line runs' if len(runs) > 1 else ''
    text = (
      f'{both[0].name} ({both[0].op_type}) reads {read[0]} and {both[1].name} reads {read[1]} in '
      f'the port; with the two exchanged it yields what tf1 does{more}'
    )
    return Proposal(tuple(changes), ', '.join(read[::-1]), ', '.join(read), text, what='operands')

  def _in_runs(self, runs: Sequence[Sequence[int]]) -> Iterator[Proposal]:
    read = [read_by(self._graph, run) for run in runs]
    for readers in list(read[0].values()):
      own = self._same_everywhere(read, readers)
      if own is None:
        continue
      for some in [readers, *([one] for one in readers if len(readers) > 1)]:
        for others in self._others(own, [[run[n] for n, _ in some] for run in runs]):
          yield self._proposal(runs, some, own, others)

  def _runs(self, line: Line) -> Iterator[list[Sequence[int]]]:
    """Yields a line's operations by each time that it runs, and by several times together.

    Three layers that one line calls look as if it ran three times as often.
    """
    ops = line.graph.ops
    positions = [n for n in line.positions if n in self._behind and not is_backward(ops[n])]
    runs = runs_of(line.graph, positions)
    for count in range(min(len(runs), MOST_ROUNDS), 0, -1):
      if len(runs) % count == 0:
        size = len(positions) // count
        yield [positions[start : start + size] for start in range(0, len(positions), size)]

  def _tensors(self, runs: Sequence[Sequence[int]]) -> Iterator[_Tensors]:
    """Yields what a line reads, and what it makes, by the times that it runs."""
    read = [read_by(self._graph, run) for run in runs]
    for readers in read[0].values():
      own = self._same_everywhere(read, readers)
      if own is not None:
        yield own
    for number, first in enumerate(runs[0]):
      for k, (dtype, _) in enumerate(self._graph.ops[first].outputs):
        if not is_opaque(dtype):
          yield tuple((run[number], k) for run in runs)

  def _same_everywhere(
    self, read: Sequence[dict[TensorKey, list[_Reader]]], readers: list[_Reader]
  ) -> _Tensors | None:
    keys = [key for known in read for key, by in known.items() if by == readers]
    return tuple(keys) if len(keys) == len(read) else None

  def _others(self, own: _Tensors, readers: Sequence[Sequence[int]]) -> list[_Tensors]:
    """Returns tensors that are there before those that read, and are like what they read."""
    known = [
      others
      for others in self._by_count.get(len(own), ())
      if all(
        one != other and self._is_before(other[0], by) and self._is_like(one, other)
        for one, other, by in zip(own, others, readers, strict=True)
      )
    ]
    known.sort(key=lambda others: -others[0][0])
    return known[:_MOST_OTHERS]

  def _is_before(self, position: int, readers: Sequence[int]) -> bool:
    """Returns whether an operation is there before some; what is read may be listed later."""
    return self._graph.ops[position].is_leaf or position < min(readers)

  def _is_like(self, one: TensorKey, other: TensorKey) -> bool:
    ops = self._graph.ops
    if other[0] not in self._behind or ops[other[0]].op_type == CONSTANT:
      return False
    dtype, shape = ops[one[0]].outputs[one[1]]
    return (
      bool(shape) and self._has_name(other[0]) and ops[other[0]].outputs[other[1]] == (dtype, shape)
    )

  def _has_name(self, position: int) -> bool:
    """Returns whether a tensor may have a name in the code: another line than its own reads it."""
    ops = self._graph.ops
    readers = (ops[n].source for n, _ in self._consumers[position])
    return ops[position].is_leaf or any(one != ops[position].source for one in readers)

  def _proposal(
    self,
    runs: Sequence[Sequence[int]],
    readers: Sequence[_Reader],
    own: _Tensors,
    others: _Tensors,
  ) -> Proposal:
    ops = self._graph.ops
    changes = tuple(
      NodeChange(ops[run[number]].name, other=((slot, ops[n].tensors[k]),))
      for run, (n, k) in zip(runs, others, strict=True)
      for number, slot in readers
    )
    number, slot = readers[0]
    op = ops[runs[0][number]]
    name = op.input_name(slot)
    one, other = (text_with_line(self._graph, key[0]) for key in (others, own))
    more = f', each of the {len(runs)} times that it runs' if len(runs) > 1 else ''
    text = (
      f'{op.name} ({op.op_type}) reads {other} as {name} in the port; with {one} it yields what '
      f'tf1 does{more}'
    )
    skipped = ops[own[0][0]]
    if all(there in ops[n].inputs for (n, _), there in zip(own, others, strict=True)):
      code = skipped.source.code if skipped.source is not None else ''
      line = f' (`{code}`)' if code else ''
      text = (
        f'the port has {skipped.name} ({skipped.op_type}){line} in front of {op.name} '
        f'({op.op_type}), which tf1 does not have there: it takes {one} as it is{more}'
      )
    return Proposal(changes, one, other, text, what=name)


def without_inputs(graph: OpGraph, changes: Sequence[NodeChange]) -> str:
  """Returns which inputs what is read is computed without, as an addition to the text of an edit.

  Args:
    graph: of the port.
    changes: the edit; only what reads another tensor counts.
  """
  positions = {op.name: n for n, op in enumerate(graph.ops)}
  # A target has the tensors of what it names.
  forward = [(n, op) for n, op in enumerate(graph.ops) if op.op_type != TARGET]
  makers = {tensor: n for n, op in forward for tensor in op.tensors}
  for change in changes:
    for slot, tensor in change.other:
      read, other = graph.ops[positions[change.op]].inputs[slot], makers[tensor]
      own, wanted = (_inputs_behind(graph, n) for n in (read[0], other))
      missing = sorted(wanted - own)
      if own and own < wanted and len(missing) <= _MOST_INPUTS:
        names = ' and '.join(f'the input {name}' for name in missing)
        return f'; the former is computed without {names}, the latter with'
  return ''


def _inputs_behind(graph: OpGraph, position: int) -> set[str]:
  ops = (graph.ops[n] for n in graph.ancestors([position]))
  return {op.name for op in ops if op.op_type == INPUT}
