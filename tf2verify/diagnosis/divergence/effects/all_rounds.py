"""An edit of a line of the port, made in all operations that the line makes.

A loop of the graph makes them in each of its rounds, a loop in Python each time it is run.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from tf2verify.diagnosis.divergence.tensors.written_rounds import Repeats, common_counts
from tf2verify.numerics.relayout import Relayout
from tf2verify.records import rounds
from tf2verify.records.op_graph import NodeChange, OpGraph, OpRecord, TensorKey
from tf2verify.relation.operations.op_pairs import Pairing
from tf2verify.sides.graphs.edits.repairs import GivenValue, Transplant
from tf2verify.sides.graphs.edits.wiring import CannotRepair

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


@dataclasses.dataclass(frozen=True)
class _Round:
  """Finds what operations, by their positions, are in another round; None where they are not."""

  of_tf1: Callable[[int], int | None]
  of_tf2: Callable[[int], int | None]
  count: int = 0  # of all rounds, where a side writes them out


class AllRounds:
  """Finds an operation of one round of a loop in the others.

  The rounds of a loop stand in both graphs, see `sides.graphs.rewriting.unrolled_loops`; one line
  of the port makes an operation of each.
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
    """Returns the other rounds of a loop that a side writes out, and how many there are.

    Each is told by how many rounds it is later than that of a pair of operations.
    """
    names = self._pairing.tf1.ops[tf1].name, self._pairing.tf2.ops[tf2].name
    numbers = [rounds.numbers_of(name) for name in names]
    if self._in_one_round:
      return []
    if not any(numbers):
      return self._rounds_of_both(tf1, tf2)
    if sorted(map(len, numbers)) != [0, 1]:
      return []
    looped = 0 if numbers[0] else 1
    (number,) = numbers[looped]
    count = self._repeats[looped].count((tf1, tf2)[looped])
    return [(other - number, count) for other in range(count) if other != number]

  def _rounds_of_both(self, tf1: int, tf2: int) -> list[tuple[int, int]]:
    """Returns the same where both sides write out as many, one after the other."""
    both = [known.of.get(n) for known, n in zip(self._repeats, (tf1, tf2), strict=True)]
    one, other = both
    if one is None or other is None:
      return []
    sizes = [known.count(n) for known, n in zip(self._repeats, (tf1, tf2), strict=True)]
    for count in common_counts(*self._repeats, (one.kind, other.kind)):
      places = zip((one, other), sizes, strict=True)
      found = {place.number // (size // count) for place, size in places}
      if len(found) == 1:
        (number,) = found
        return [(other - number, count) for other in range(count) if other != number]
    return []

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
    found = [first]
    for here in self._other_rounds(moved):
      try:
        one = self._there(moved, given, layouts, here)
        if one is not None:
          found.append(make(*one))
      except CannotRepair:
        continue
    return tuple(found)

  def _other_rounds(self, moved: Moved) -> Iterator[_Round]:
    """Yields the other rounds of the loops in which an operation and its partner are."""
    (_, end), partner = moved
    of_tf1, of_tf2 = self._repeats
    for by, count in self._written_rounds(end, partner):
      yield _Round(
        functools.partial(of_tf1.later, by=by, count=count),
        functools.partial(of_tf2.later, by=by, count=count),
        count,
      )
    names = self._pairing.tf1.ops[end].name, self._pairing.tf2.ops[partner].name
    own = rounds.numbers_of(names[1])
    if len(rounds.numbers_of(names[0])) != len(own):
      return
    for numbers in self._numbers(names[1]):
      if numbers != own:
        yield _Round(
          functools.partial(_renumbered, self._pairing.tf1, self._tf1, names[0], numbers),
          functools.partial(_renumbered, self._pairing.tf2, self._tf2, names[1], numbers),
        )

  def _numbers(self, name: str) -> list[tuple[int, ...]]:
    """Returns the rounds in which the port has an operation like one of its own."""
    numbers = rounds.numbers_of(name)
    if not numbers or self._in_one_round:
      return [numbers]
    found = self._rounds.get(rounds.without(name), set())
    return sorted(one for one in found if len(one) == len(numbers))

  def _there(
    self, moved: Moved, given: Given, layouts: Layouts, here: _Round
  ) -> tuple[Moved, Given, Layouts] | None:
    """Returns the same operations in another round; None where they are not there."""
    (inner, end), partner = moved
    ops = self._pairing.tf1.ops
    there = {n: here.of_tf1(n) for n in (*inner, end)}
    other = here.of_tf2(partner)
    if other is None or None in there.values():
      return None
    entering: dict[TensorKey, TensorKey] = {}
    held = {key: layout for key, layout in layouts.items() if key[0] not in there}
    for before, after in there.items():
      assert after is not None
      for key, now in zip(ops[before].inputs, ops[after].inputs, strict=True):
        if key in given:
          reader = self._entering(key, now, given[key], here)
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

  def _entering(
    self, key: TensorKey, now: TensorKey, partner: TensorKey, here: _Round
  ) -> TensorKey | None:
    """Returns the port's tensor for one of tf1 that enters in another round."""
    if now == key:
      return partner
    if here.of_tf1(key[0]) == now[0]:
      other = here.of_tf2(partner[0])
      if other is not None:
        return other, partner[1]
    known = self._pairing.tf2_of[now[0]]  # what the round before yields, or enters the loop
    if known is None and here.count:
      known = self._as_in_other_rounds(now[0], here.count)
    return None if known is None else (known, now[1])

  def _as_in_other_rounds(self, tf1: int, count: int) -> int | None:
    """Returns the partner of an operation as it is paired in another of some written rounds."""
    ones, others = self._repeats
    for number in range(1 - count, count):
      there = ones.later(tf1, number, count)
      partner = None if there is None else self._pairing.tf2_of[there]
      found = None if partner is None else others.later(partner, -number, count)
      if found is not None:
        return found
    return None


def _renumbered(
  graph: OpGraph,
  positions: Mapping[str, int],
  inside: str,
  numbers: Sequence[int],
  position: int,
) -> int | None:
  """Returns what an operation of a loop is in another round, by its name."""
  return positions.get(rounds.elsewhere(graph.ops[position].name, inside, numbers))
