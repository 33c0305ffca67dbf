"""Accesses to a variable that a graph does not order, and orders in which it can be run."""

import dataclasses
import enum
import itertools
from collections.abc import Iterator, Sequence

from tf2verify.records.observation import SourceLine
from tf2verify.records.wording import listed

_SHOWN_NAMES = 3
_SHOWN_SITES = 4


@dataclasses.dataclass(frozen=True)
class RacingOp:
  """An operation that reads or writes a variable."""

  op_type: str  # TensorFlow's
  name: str  # in the graph
  writes: bool  # whether it writes
  source: SourceLine | None = None  # the user's line; None where no line of theirs made it

  def __str__(self) -> str:
    place = f' at {self.source}' if self.source is not None else ''
    return f'the {"write" if self.writes else "read"} ({self.op_type} {self.name}{place})'


@dataclasses.dataclass(frozen=True)
class RaceSite:
  """Where races are: those between the same two lines are one site."""

  # Line of the operation that was made first, or its type where no line is known.
  first: SourceLine | str
  second: SourceLine | str  # likewise of the other


@dataclasses.dataclass(frozen=True)
class Race:
  """Two accesses to a variable, at least one of them a write, without a path between them."""

  variable: str  # by name
  first: RacingOp  # the operation that was made first, as a program that runs eagerly would run it
  second: RacingOp  # the other

  @property
  def site(self) -> RaceSite:
    """Where it is."""
    one, other = self.first, self.second
    return RaceSite(one.source or one.op_type, other.source or other.op_type)


class OrderKind(enum.Enum):
  """How races are decided."""

  RECORDED = 'as they happened to run when the reference was recorded'
  PROGRAM = 'in the order of the code'
  REVERSE = 'in the reverse order of the code'
  READS = 'every read before every write'
  WRITES = 'every write before every read'
  FLIPPED = 'in the order of the code, but for one pair'
  CALLS = 'in the order of the code, but for the calls that write'


@dataclasses.dataclass(frozen=True)
class Order:
  """An order of what a graph does not order."""

  kind: OrderKind  # how
  site: RaceSite | None = None  # the races that are decided the other way round; for `FLIPPED` only
  # The order of what ends with a write, by its number in the code; for `CALLS` only.
  calls: tuple[int, ...] = ()

  def __str__(self) -> str:
    if self.calls:
      return f'{self.kind.value}: {", ".join(str(call + 1) for call in self.calls)}'
    if self.site is None:
      return self.kind.value
    return f'{self.kind.value}: {self.site.second} before {self.site.first}'


RECORDED = Order(OrderKind.RECORDED)
PROGRAM = Order(OrderKind.PROGRAM)
# At most so many orders are tried.
MOST_ORDERS = 12
# Of so many calls of a layer all orders are tried; of more, neighbors are exchanged.
_MOST_PERMUTED = 3


def orders_of(races: Sequence[Race]) -> tuple[Order, ...]:
  """Returns the orders that are tried: for all races together, then each site alone."""
  kinds = (OrderKind.PROGRAM, OrderKind.REVERSE, OrderKind.READS, OrderKind.WRITES)
  sites = tuple(dict.fromkeys(race.site for race in races))
  flipped = [Order(OrderKind.FLIPPED, site) for site in sites] if len(sites) > 1 else []
  return (*map(Order, kinds), *flipped, *_orders_of_calls(races))


def _orders_of_calls(races: Sequence[Race]) -> Iterator[Order]:
  """Yields orders of calls that each read a variable and write it: a batch norm that is shared."""
  writes: dict[str, set[str]] = {}
  for race in races:
    for op in (race.first, race.second):
      if op.writes:
        writes.setdefault(race.variable, set()).add(op.name)
  count = max(map(len, writes.values()), default=0)
  in_code = tuple(range(count))
  if count <= _MOST_PERMUTED:
    orders = list(itertools.permutations(in_code))
  else:
    orders = [(*in_code[:n], n + 1, n, *in_code[n + 2 :]) for n in range(count - 1)]
  for calls in orders:
    if calls != in_code:
      yield Order(OrderKind.CALLS, calls=calls)


def unordered(races: Sequence[Race]) -> str:
  """Returns what to say of races: what nothing orders."""
  return (
    f'nothing in the graph of the reference orders these accesses to a variable, {described(races)}'
  )


def described(races: Sequence[Race]) -> str:
  """Returns the races as text, those of one site once, by one of their variables."""
  sites: dict[RaceSite, list[Race]] = {}
  for race in races:
    sites.setdefault(race.site, []).append(race)
  texts = []
  for found in list(sites.values())[:_SHOWN_SITES]:
    names = list(dict.fromkeys(race.variable for race in found))
    shown = listed(names, _SHOWN_NAMES)
    shown_race = max(found, key=lambda race: race.first.writes != race.second.writes)
    texts.append(f'of {shown}: {shown_race.first} and {shown_race.second}')
  left = len(sites) - _SHOWN_SITES
  if left > 0:
    texts.append(f'{left} more pair{"s" * (left > 1)} of lines')
  return '; '.join(texts)
