"""An edit of a line of the port, made in all operations that the line makes.

A loop of the graph makes them in each of its rounds, a loop in Python each time it is run.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from tf2verify.diagnosis.divergence.written_rounds import Repeats
from tf2verify.numerics.relayout import Relayout
from tf2verify.records import rounds
from tf2verify.records.op_graph import NodeChange, OpGraph, OpRecord, TensorKey
from tf2verify.relation.op_pairs import Pairing
from tf2verify.sides.graphs.repairs import GivenValue, Transplant
from tf2verify.sides.graphs.wiring import CannotRepair

# Operations of tf1, the last one apart, and the port's operation that this replaces.
Moved = tuple[tuple[Sequence[int], int], int]
# The port's tensor for each of tf1 that enters, and how it holds them.
Given = Mapping[TensorKey, TensorKey]
Layouts = Mapping[TensorKey, Relayout]


def _changed(graph: OpGraph, op: OpRecord, change: NodeChange) -> tuple[object, ...]:
  """Returns what an operation has where a change changes it, as far as it is written there."""
  found: list[object] = [op.attribute(name) for name, _ in change.attributes]
  for slot, _ in change.inputs:
    read = graph.ops[op.inputs[slot][0]] if slot < len(op.inputs) else None
    constant = None if read is None else read.constant
    # A number that is computed is that of this operation alone.
    found.append(object() if constant is None else (constant.shape, constant.tobytes()))
  return tuple(found)


class AllRounds:
  """Finds an operation of one round of a loop in the others.

  The rounds of a loop stand in both graphs, see `sides.graphs.unrolled_loops`; one line of the
  port makes an operation of each.
  """

  def __init__(self, pairing: Pairing, in_one_round: bool = False) -> None:
    """Prepares.

    Args:
      pairing: of the two graphs.
      in_one_round: whether all is found in the round alone where it is.
    """
    self._pairing = pairing
    self._in_one_round = in_one_round
    self._rounds: dict[str, set[tuple[int, ...]]] = {}
    for op in pairing.tf2.ops:
      numbers = rounds.numbers_of(op.name)
      if numbers:
        self._rounds.setdefault(rounds.without(op.name), set()).add(numbers)
    self._repeats = Repeats(pairing.tf1), Repeats(pairing.tf2)
    self._tf1 = {op.name: position for position, op in enumerate(pairing.tf1.ops)}
    self._tf2 = {op.name: position for position, op in enumerate(pairing.tf2.ops)}

  def changes(self, known: Sequence[NodeChange]) -> tuple[NodeChange, ...]:
    """Returns changes of the port's operations, in all rounds, and wherever their line makes them.

    Of the same line are operations of one type that have the same attributes and constants there.
    """
    found: dict[tuple[object, ...], NodeChange] = {}
    for change in known:
      names = [rounds.elsewhere(change.op, change.op, n) for n in self._numbers(change.op)]
      for name in [*names, *self._of_its_line(change)]:
        one = dataclasses.replace(change, op=name)
        found.setdefault(one.what, one)
    return tuple(found.values())

  def _of_its_line(self, change: NodeChange) -> list[str]:
    """Returns the names of operations that the line makes of what a change changes."""
    position = self._tf2.get(change.op)
    if position is None or self._in_one_round:
      return []
    graph = self._pairing.tf2
    op = graph.ops[position]
    if op.source is None:
      return []
    before = _changed(graph, op, change)
    return [
      other.name
      for other in graph.ops
      if other.op_type == op.op_type
      and other.source == op.source
      and _changed(graph, other, change) == before
    ]

  def values(self, known: GivenValue, tf1: str, tf2: str) -> tuple[GivenValue, ...]:
    """Returns values that the port is given, in all rounds; itself where one side has none.

    Args:
      known: the value in one of them.
      tf1: name of tf1's operation that yields it.
      tf2: name of the port's.
    """
    if len(rounds.numbers_of(tf1)) != len(rounds.numbers_of(tf2)):
      return self._values_where_written(known, tf1, tf2)
    found = []
    for numbers in self._numbers(tf2):
      one, other = (rounds.elsewhere(name, name, numbers) for name in (tf1, tf2))
      if one in self._tf1:
        tensors = known.tf1.replace(tf1, one), known.tf2.replace(tf2, other)
        found.append(GivenValue(*tensors, known.as_tf2))
    return tuple(found) or (known,)

  def _values_where_written(self, known: GivenValue, tf1: str, tf2: str) -> tuple[GivenValue, ...]:
    ops, others = self._pairing.tf1.ops, self._pairing.tf2.ops
    found = [known]
    for by, count in self._written_rounds(self._tf1[tf1], self._tf2[tf2]):
      one, other = (
        repeats.later(position, by, count)
        for repeats, position in zip(self._repeats, (self._tf1[tf1], self._tf2[tf2]), strict=True)
      )
      if one is not None and other is not None:
        tensors = known.tf1.replace(tf1, ops[one].name), known.tf2.replace(tf2, others[other].name)
        found.append(GivenValue(*tensors, known.as_tf2))
    return tuple(found)

  def _written_rounds(self, tf1: int, tf2: int) -> list[tuple[int, int]]:
    """Returns the other rounds of a loop that one side alone writes out, and how many there are.

    Each is told by how many rounds it is later than that of a pair of operations.
    """
    names = self._pairing.tf1.ops[tf1].name, self._pairing.tf2.ops[tf2].name
    numbers = [rounds.numbers_of(name) for name in names]
    if self._in_one_round or sorted(map(len, numbers)) != [0, 1]:
      return []
    looped = 0 if numbers[0] else 1
    (number,) = numbers[looped]
    count = self._repeats[looped].count((tf1, tf2)[looped])
    return [(other - number, count) for other in range(count) if other != number]

  def transplants(
    self,
    moved: Moved,
    given: Given,
    layouts: Layouts,
    make: Callable[[Moved, Given, Layouts], Transplant],
  ) -> tuple[Transplant, ...]:
    """Returns operations of tf1 that are put into the port, in all rounds where that can be.

    Args:
      moved: the operations in one round.
      given: of that round.
      layouts: likewise.
      make: makes the edit of a round.

    Raises:
      CannotRepair: that one cannot be made.
    """
    first = make(moved, given, layouts)
    (_, end), partner = moved
    names = self._pairing.tf1.ops[end].name, self._pairing.tf2.ops[partner].name
    found = [first]
    for by, count in self._written_rounds(end, partner):
      try:
        one = self._later(moved, given, layouts, by, count)
        if one is not None:
          found.append(make(*one))
      except CannotRepair:
        continue
    for numbers in self._numbers(names[1]):
      if numbers == rounds.numbers_of(names[1]):
        continue
      try:
        one = self._elsewhere(moved, given, layouts, names, numbers)
        if one is not None:
          found.append(make(*one))
      except CannotRepair:
        continue
    return tuple(found)

  def _numbers(self, name: str) -> list[tuple[int, ...]]:
    """Returns the rounds in which the port has an operation like one of its own."""
    numbers = rounds.numbers_of(name)
    if not numbers or self._in_one_round:
      return [numbers]
    found = self._rounds.get(rounds.without(name), set())
    return sorted(one for one in found if len(one) == len(numbers))

  def _elsewhere(
    self,
    moved: Moved,
    given: Given,
    layouts: Layouts,
    names: tuple[str, str],
    numbers: Sequence[int],
  ) -> tuple[Moved, Given, Layouts] | None:
    """Returns the same operations in other rounds; None where they are not there."""
    (inner, end), partner = moved
    if len(rounds.numbers_of(names[0])) != len(numbers):
      return None
    graph = self._pairing.tf1
    there = {n: self._there(graph, self._tf1, n, names[0], numbers) for n in (*inner, end)}
    other = self._there(self._pairing.tf2, self._tf2, partner, names[1], numbers)
    if other is None or None in there.values():
      return None
    entering: dict[TensorKey, TensorKey] = {}
    held = {key: layout for key, layout in layouts.items() if key[0] not in there}
    for before, after in there.items():
      assert after is not None
      for key, now in zip(graph.ops[before].inputs, graph.ops[after].inputs, strict=True):
        if key in given:
          reader = self._entering(key, now, given[key], names, numbers)
          # In the last round the port need not have it: what only the next round would read is
          # not in its graph.
          if reader is not None:
            entering[now] = reader
        if key in layouts:
          held[now] = layouts[key]
      held |= {(after, key[1]): layout for key, layout in layouts.items() if key[0] == before}
    where = [n for n in (there[one] for one in inner) if n is not None]
    last = there[end]
    assert last is not None
    return ((where, last), other), entering, held

  def _later(
    self, moved: Moved, given: Given, layouts: Layouts, by: int, count: int
  ) -> tuple[Moved, Given, Layouts] | None:
    """Returns the same operations in another round of a loop that one side writes out."""
    (inner, end), partner = moved
    ops = self._pairing.tf1.ops
    there = {n: self._repeats[0].later(n, by, count) for n in (*inner, end)}
    other = self._repeats[1].later(partner, by, count)
    if other is None or None in there.values():
      return None
    entering: dict[TensorKey, TensorKey] = {}
    held = {key: layout for key, layout in layouts.items() if key[0] not in there}
    for before, after in there.items():
      assert after is not None
      for key, now in zip(ops[before].inputs, ops[after].inputs, strict=True):
        partner_now = given.get(key) if now == key else None
        if key in given and partner_now is None:
          known = self._pairing.tf2_of[now[0]]
          partner_now = None if known is None else (known, given[key][1])
        if partner_now is not None:
          entering[now] = partner_now
        if key in layouts:
          held[now] = layouts[key]
      held |= {(after, key[1]): layout for key, layout in layouts.items() if key[0] == before}
    where = [n for n in (there[one] for one in inner) if n is not None]
    last = there[end]
    assert last is not None
    return ((where, last), other), entering, held

  def _entering(
    self,
    key: TensorKey,
    now: TensorKey,
    partner: TensorKey,
    names: tuple[str, str],
    numbers: Sequence[int],
  ) -> TensorKey | None:
    """Returns the port's tensor for one of tf1 that enters in other rounds."""
    if now == key:
      return partner
    if self._there(self._pairing.tf1, self._tf1, key[0], names[0], numbers) == now[0]:
      other = self._there(self._pairing.tf2, self._tf2, partner[0], names[1], numbers)
      return None if other is None else (other, partner[1])
    known = self._pairing.tf2_of[now[0]]  # what the round before yields, or enters the loop
    return None if known is None else (known, now[1])

  def _there(
    self,
    graph: OpGraph,
    positions: Mapping[str, int],
    position: int,
    inside: str,
    numbers: Sequence[int],
  ) -> int | None:
    return positions.get(rounds.elsewhere(graph.ops[position].name, inside, numbers))
