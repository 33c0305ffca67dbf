"""Reads and writes of a variable that a graph does not order, and orders of them."""

import bisect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tf2verify.records.observation import SourceLine
from tf2verify.records.races import Order, OrderKind, Race, RacingOp
from tf2verify.sides.graphs.variables.accesses import Access, Branch, SessionRun
from tf2verify.sides.graphs.variables.loops import Loops

# Of one variable so many accesses are looked at.
_MOST_ACCESSES = 2000
# Bits of one pass over the graph.
_MOST_BITS = 8192

_NOWHERE: frozenset[Branch] = frozenset()


class RaceSearch:
  """The races of one session.run.

  What goes round in a loop of TensorFlow 1 (`Enter` to `Exit`) counts as one operation.

  Attributes:
    run: what it runs.
    pairs: accesses to one variable without a path between them, the one made first first.
  """

  def __init__(self, graph_def: Any, fetches: Iterable[str], looked_at: Iterable[str] = ()) -> None:
    """Searches a graph.

    Args:
      graph_def: a GraphDef with its library.
      fetches: names of tensors and operations.
      looked_at: names of what is fetched in addition, only to be looked at. What runs for these
        alone decides no value that stays: it is no race, and reads before anything is written.
    """
    fetches, looked_at = list(fetches), list(looked_at)
    self.run = SessionRun(graph_def, [*fetches, *looked_at])
    # Of what runs, what the fetches need.
    self._needed = SessionRun(graph_def, fetches).data.keys() if looked_at else self.run.data.keys()
    self._loops = Loops(self.run)
    self._before: dict[str, tuple[str, ...]] = {}
    self._order: list[str] = []
    self.pairs: tuple[tuple[Access, Access], ...] = ()
    candidates = [
      found
      for accesses in self.run.accesses().values()
      if any(a.writes for a in accesses) and len({self._unit(a.op) for a in accesses}) > 1
      for found in [accesses[:_MOST_ACCESSES]]
    ]
    if candidates:
      self._before = self._edges()
      self._order = self._extension(self._before)
      self.pairs = tuple(self._races(candidates))

  def races(self, source_of: Callable[[str], SourceLine | None]) -> tuple[Race, ...]:
    """Returns the races; those of an operation with its conditional branches once.

    Args:
      source_of: gives the user's line of an operation.
    """
    found = dict.fromkeys(
      Race(one.variable, self._described(one, source_of), self._described(other, source_of))
      for one, other in self._needed_pairs()
    )
    return tuple(found)

  def is_needed(self, op: str) -> bool:
    """Returns whether an operation runs for more than to be looked at."""
    return op in self._needed

  def edges(self, order: Order, races: Sequence[Race]) -> tuple[tuple[str, str], ...]:
    """Returns pairs of operations: the second is to wait for the first.

    Races that no control edge can decide, since one side is in a branch that may not be
    taken, are left as they are.

    Args:
      order: how to decide.
      races: as `races` has given them.
    """
    place = {
      unit: number for number, unit in enumerate(self._extension(self._wanted(order, races)))
    }
    found: dict[tuple[str, str], None] = {}
    guards = self._guards()
    for pair in self.pairs:
      first, last = sorted(pair, key=lambda access: place[self._unit(access.op)])
      guard = guards.get(self._unit(first.op), _NOWHERE)
      if guard <= guards.get(self._unit(last.op), _NOWHERE):
        for edge in itertools.product(self._loops.ends(first.op), self._loops.starts(last.op)):
          before, after = (place.get(self._unit(op)) for op in edge)
          if before is not None and after is not None and before < after:
            found[edge] = None
    return tuple(found)

  def affected(self, further: frozenset[str] = frozenset()) -> frozenset[str]:
    """Returns the variables whose values may depend on the order, in this run or a later one.

    Args:
      further: variables of which that is known, by name.
    """
    accesses, pairs = self.run.accesses(), self._needed_pairs()
    reached = {self._unit(access.op) for pair in pairs for access in pair}
    variables = {access.variable for pair in pairs for access in pair} | further
    reached |= {self._unit(a.op) for name in further for a in accesses.get(name, ())}
    if further and not self._order:
      self._before = self._edges()
      self._order = self._extension(self._before)
    while True:
      for unit in self._order:
        if any(before in reached for before in self._before[unit]):
          reached.add(unit)
      found = {
        name
        for name, known in accesses.items()
        if any(a.writes and self._unit(a.op) in reached for a in known)
      }
      if found <= variables:
        return frozenset(variables)
      variables |= found
      reached |= {
        self._unit(a.op) for name in variables for a in accesses.get(name, ()) if not a.writes
      }

  def _needed_pairs(self) -> list[tuple[Access, Access]]:
    return [pair for pair in self.pairs if all(access.op in self._needed for access in pair)]

  def _described(self, access: Access, source_of: Callable[[str], SourceLine | None]) -> RacingOp:
    return RacingOp(self.run.nodes[access.op].op, access.op, access.writes, source_of(access.op))

  def _unit(self, op: str) -> str:
    return self._loops.unit(op)

  def _edges(self) -> dict[str, tuple[str, ...]]:
    """Returns the units that each unit waits for."""
    run = self.run
    if not self._loops:
      return {name: tuple(dict.fromkeys(run.before(name))) for name in run.data}
    found: dict[str, dict[str, None]] = {}
    for name in run.data:
      unit = self._unit(name)
      known = found.setdefault(unit, {})
      known.update((other, None) for b in run.before(name) if (other := self._unit(b)) != unit)
    return {unit: tuple(known) for unit, known in found.items()}

  def _extension(self, wanted: Iterable[str]) -> list[str]:
    """Returns units in an order of the graph, in which the wanted ones come as they are wanted.

    Each comes with what it waits for, as late as possible.
    """
    order: list[str] = []
    seen: set[str] = set()
    for start in wanted:
      pending = [(start, False)]
      while pending:
        unit, is_done = pending.pop()
        if is_done:
          order.append(unit)
        elif unit not in seen:
          seen.add(unit)
          pending.append((unit, True))
          pending += [(before, False) for before in self._before[unit] if before not in seen]
    return order

  def _races(self, candidates: Sequence[Sequence[Access]]) -> list[tuple[Access, Access]]:
    found: list[tuple[Access, Access]] = []
    guards = self._guards()
    portion: list[Sequence[Access]] = []
    for accesses in (*candidates, None):
      if accesses is None or sum(map(len, portion)) > _MOST_BITS:
        reached = self._reached(portion)
        for known in portion:
          found += [pair for pair in _with_a_write(known) if self._is_race(*pair, reached, guards)]
        portion = []
      if accesses is not None:
        portion.append(accesses)
    return found

  def _reached(self, portion: Sequence[Sequence[Access]]) -> Mapping[str, tuple[int, int]]:
    """Returns for every unit with an access its own bit, and those of the units before it."""
    units = dict.fromkeys(self._unit(a.op) for accesses in portion for a in accesses)
    own = {unit: 1 << number for number, unit in enumerate(units)}
    bits: dict[str, int] = {}
    found: dict[str, tuple[int, int]] = {}
    for unit in self._order:
      known = 0
      for before in self._before[unit]:
        known |= bits[before]
      if unit in own:
        found[unit] = own[unit], known
        known |= own[unit]
      bits[unit] = known
    return found

  def _is_race(
    self,
    one: Access,
    other: Access,
    reached: Mapping[str, tuple[int, int]],
    guards: Mapping[str, frozenset[Branch]],
  ) -> bool:
    first, last = self._unit(one.op), self._unit(other.op)
    if first == last or (one.adds and other.adds):
      return False
    (own, before), (other_own, other_before) = reached[first], reached[last]
    if own & other_before or other_own & before:
      return False
    ones = one.branches | guards.get(first, _NOWHERE)
    others = other.branches | guards.get(last, _NOWHERE)
    return not any(p == q and taken != left for p, taken in ones for q, left in others)

  def _guards(self) -> Mapping[str, frozenset[Branch]]:
    """Returns the branches in which units run, by the conditionals of TensorFlow 1."""
    run, found = self.run, dict[str, frozenset[Branch]]()
    switches = {
      name
      for name in run.data
      if run.nodes[name].op in ('Switch', 'RefSwitch') and not self._loops.is_within(name)
    }
    if not switches:
      return found
    for unit in self._order:
      if unit not in run.data:
        continue  # a loop
      given = []
      for op, number in run.data[unit]:
        guard = found.get(self._unit(op), _NOWHERE)
        if op in switches:
          guard |= {run.branch(run.data[op][1], number)}
        given.append(guard)
      merges = run.nodes[unit].op in ('Merge', 'RefMerge')
      guard = frozenset.intersection(*given) if merges and given else _NOWHERE.union(*given)
      for op in run.controls[unit]:
        guard |= found.get(self._unit(op), _NOWHERE)
      if guard:
        found[unit] = guard
    return found

  def _wanted(self, order: Order, races: Sequence[Race]) -> list[str]:
    """Returns the units with races in the order that is wanted of them."""
    index = self.run.index
    accesses = dict.fromkeys(access for pair in self.pairs for access in pair)
    ordered = sorted(accesses, key=lambda access: index[access.op])
    if order.kind is OrderKind.REVERSE:
      ordered.reverse()
    elif order.kind is OrderKind.READS:
      ordered.sort(key=lambda access: access.writes)
    elif order.kind is OrderKind.WRITES:
      ordered.sort(key=lambda access: not access.writes)
    elif order.kind is OrderKind.FLIPPED:
      flipped = [race for race in races if race.site == order.site]
      first = {(race.variable, race.first.name) for race in flipped}
      # What was to come first comes last, and nothing else changes its place.
      ordered.sort(key=lambda access: (access.variable, access.op) in first)
    elif order.kind is OrderKind.CALLS:
      call = _calls(ordered, order.calls)
      ordered.sort(key=lambda access: call[access])
    ordered.sort(key=lambda access: access.op in self._needed)
    wanted = ((access.op, *self._loops.ends(access.op)) for access in ordered)
    return list(dict.fromkeys(self._unit(op) for ops in wanted for op in ops))


def _calls(ordered: Sequence[Access], calls: Sequence[int]) -> dict[Access, int]:
  """Returns when accesses come, each up to the next write of its variable."""
  written: dict[str, int] = {}
  found: dict[Access, int] = {}
  for access in ordered:
    found[access] = written.setdefault(access.variable, 0)
    written[access.variable] += access.writes
  return {
    access: calls.index(number) if written[access.variable] == len(calls) > number else number
    for access, number in found.items()
  }


def _with_a_write(accesses: Sequence[Access]) -> Iterator[tuple[Access, Access]]:
  """Yields the pairs, in order, of which one writes: of the many reads of a counter few."""
  writes = [number for number, access in enumerate(accesses) if access.writes]
  for number, access in enumerate(accesses):
    if access.writes:
      later: Iterable[int] = range(number + 1, len(accesses))
    else:
      later = writes[bisect.bisect(writes, number) :]
    yield from ((access, accesses[other]) for other in later)
