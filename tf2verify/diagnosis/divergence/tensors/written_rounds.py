"""Operations paired as they are paired in another round, where a side writes its rounds out.

A loop of Python makes the operations of its body once a round, without a name that says which.
They come from the same line of the user's code, in the same order in every round. From the round
in which a state goes wrong nothing yields the same on both sides, so values pair only the rounds
before.
"""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from tf2verify.records import rounds
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import Pairing, family

# Of loops that both sides write out.
_FEWEST_ROUNDS = 3


@dataclasses.dataclass(frozen=True)
class _Place:
  """Where an operation stands among those that repeat it."""

  kind: Hashable  # the same for all of them
  number: int  # of the round, where names tell it; else among all of the kind


class Repeats:
  """The operations of a graph that repeat each other: in the rounds of a loop, or of one line.

  Attributes:
    of: where an operation stands, by position; without those that nothing repeats.
    all: positions of all of a kind, in order.
    named: kinds whose names tell the round.
    runs: of each kind that names do not tell, in which runs of its line it is; other lines are run
      between two of them.
  """

  def __init__(self, graph: OpGraph) -> None:
    self.of: dict[int, _Place] = {}
    self.all: dict[Hashable, list[int]] = defaultdict(list)
    self.named: set[Hashable] = set()
    self.runs: dict[Hashable, set[int]] = defaultdict(set)
    run, line = 0, None
    for position, op in enumerate(graph.ops):
      kind = _kind(op)
      if op.source is not None and not op.is_leaf and op.source.at != line:
        run, line = run + 1, op.source.at
      self.runs[kind].add(run)
      if kind is None:
        continue
      numbers = rounds.numbers_of(op.name)
      self.of[position] = _Place(kind, numbers[0] if numbers else len(self.all[kind]))
      self.all[kind].append(position)
      if numbers:
        self.named.add(kind)

  def count(self, position: int) -> int:
    """Returns how many operations are of the kind of one; 0 where a round has none of it."""
    place = self.of.get(position)
    return len(self.all[place.kind]) if place is not None and self.is_whole(place.kind) else 0

  def is_whole(self, kind: Hashable) -> bool:
    """Returns whether every round has one of a kind, the first one included."""
    known = self.all[kind]
    return kind not in self.named or [self.of[n].number for n in known] == [*range(len(known))]

  def later(self, position: int, by: int, count: int) -> int | None:
    """Returns what an operation is in another round; None where that is not known.

    Args:
      position: of the operation.
      by: how many rounds later, less than 0 for earlier.
      count: of all rounds.
    """
    place = self.of.get(position)
    if place is None or len(self.all[place.kind]) % count or not self.is_whole(place.kind):
      return None
    number = place.number + by * (len(self.all[place.kind]) // count)
    return self.all[place.kind][number] if 0 <= number < len(self.all[place.kind]) else None


def common_counts(ones: Repeats, others: Repeats, kinds: tuple[Hashable, Hashable]) -> list[int]:
  """Returns how many rounds two lines may have that both sides write out, the most first.

  Each makes as many operations of its kind in every round. Of two that a line is run it is not
  known that they are rounds: a norm before and behind a gate.
  """
  sides = list(zip((ones, others), kinds, strict=True))
  counts = [len(known) for side, kind in sides for known in (side.runs[kind], side.all[kind])]
  return [n for n in range(math.gcd(*counts), _FEWEST_ROUNDS - 1, -1) if math.gcd(n, *counts) == n]


def _kind(op: OpRecord) -> Hashable:
  numbers = rounds.numbers_of(op.name)
  if op.is_leaf or not op.tensors or len(numbers) > 1:
    return None
  if numbers:
    return rounds.without(op.name)
  if op.source is None:
    return None
  made = tuple(place.at for place in op.source.made)
  return op.source.path, op.source.line, made, family(op.op_type)


def pair_in_written_rounds(pairing: Pairing, known: Iterable[tuple[int, int]]) -> None:
  """Pairs what has no partner as it is paired in another round.

  Args:
    pairing: changed.
    known: pairs that yield the same.
  """
  ones, others = Repeats(pairing.tf1), Repeats(pairing.tf2)
  by_kind: dict[tuple[Hashable, Hashable], list[tuple[_Place, _Place]]] = defaultdict(list)
  for tf1, tf2 in known:
    one, other = ones.of.get(tf1), others.of.get(tf2)
    if one is not None and other is not None:
      by_kind[one.kind, other.kind].append((one, other))
  for (kind, other_kind), places in by_kind.items():
    if not ones.is_whole(kind) or not others.is_whole(other_kind):
      continue
    both = ones.all[kind], others.all[other_kind]
    is_named = kind in ones.named, other_kind in others.named
    if any(is_named):
      found = _predicted(both, is_named, places)
    else:
      found = _predicted_of_two_lists(both, places, common_counts(ones, others, (kind, other_kind)))
    for tf1, tf2 in found:
      if pairing.tf2_of[tf1] is None and pairing.tf1_of[tf2] is None:
        pairing.add(tf1, tf2)


def _predicted(
  both: tuple[Sequence[int], Sequence[int]],
  is_named: tuple[bool, bool],
  places: Sequence[tuple[_Place, _Place]],
) -> list[tuple[int, int]]:
  """Returns which operation of a kind belongs to which of another kind; none where pairs differ."""
  if is_named[0] == is_named[1] or min(map(len, both)) < 2:
    return []
  looped, written = both if is_named[0] else both[::-1]
  if len(written) % len(looped):
    return []
  times = len(written) // len(looped)
  found: dict[int, int] = {}
  for one, other in places:
    in_loop, in_list = (one, other) if is_named[0] else (other, one)
    round_number, column = divmod(in_list.number, times)
    if round_number != in_loop.number:
      return []
    found[column] = found.get(column, 0) + 1
  # The same operation of the loop, in two columns of the line: no telling which.
  if len(found) != 1:
    return []
  (column,) = found
  pairs = [(looped[n], written[n * times + column]) for n in range(len(looped))]
  return pairs if is_named[0] else [(m, n) for n, m in pairs]


def _predicted_of_two_lists(
  both: tuple[Sequence[int], Sequence[int]],
  places: Sequence[tuple[_Place, _Place]],
  counts: Sequence[int],
) -> list[tuple[int, int]]:
  """Returns the same where both sides write their rounds out, with as many of them as can be.

  A line makes as many operations of a kind in each round. Where both sides have the same number of
  rounds, each operation of a round of the one is at its own place in a round of the other.
  """
  sizes = len(both[0]), len(both[1])
  for count in counts:
    widths = sizes[0] // count, sizes[1] // count
    columns: dict[int, int] = {}
    for one, other in places:
      (round_number, column), (other_round, other_column) = (
        divmod(place.number, width) for place, width in zip((one, other), widths, strict=True)
      )
      if round_number != other_round or columns.setdefault(column, other_column) != other_column:
        break
    else:
      if len(set(columns.values())) == len(columns):
        return [
          (both[0][n * widths[0] + column], both[1][n * widths[1] + other])
          for n in range(count)
          for column, other in columns.items()
        ]
  return []
