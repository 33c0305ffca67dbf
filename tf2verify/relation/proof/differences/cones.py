"""Short computations of both graphs from the same values, found for an operation of each."""

import dataclasses
from collections.abc import Collection, Hashable, Iterator

from tf2verify.relation.proof.differences.pairs import COMPARED
from tf2verify.relation.proof.normal_forms.folding import ELEMENTWISE
from tf2verify.relation.proof.proving import Proof, Side

_LONGEST = 9
# With what both sides have, up to where all that is chosen by one tensor is computed from it.
_LONGEST_FROM_AFAR = 16
_OF_BOOLS = frozenset((*COMPARED, 'LogicalAnd', 'LogicalOr', 'LogicalNot'))


@dataclasses.dataclass(frozen=True)
class Cone:
  """An operation, with what it is computed by from values that both sides have.

  Attributes:
    side: whose it is.
    last: its position.
    positions: of all of it, in order.
    given: the terms that it is computed from, constants aside.
    nearest: those of the shortest cone of this operation.
  """

  side: Side
  last: int
  positions: tuple[int, ...]
  given: frozenset[int]
  nearest: frozenset[int]


def alike(proof: Proof, from_afar: bool = False) -> Iterator[tuple[Cone, Cone]]:
  """Yields computations of both sides with a result of one shape from the same values.

  Args:
    proof: what is proven of the graphs.
    from_afar: whether they go on through what both sides have, as far as numbers can be computed,
      so that what they are computed from is in step.
  """
  search = _Search(proof)
  others: dict[Hashable, list[Cone]] = {}
  for cone in search.all_of(proof.tf2, from_afar):
    others.setdefault((cone.side.graph.ops[cone.last].outputs, cone.given), []).append(cone)
  for cone in search.all_of(proof.tf1, from_afar):
    for other in others.get((cone.side.graph.ops[cone.last].outputs, cone.given), ()):
      # A single value may be any: what is found of it holds, though few are reached from afar.
      is_known = cone.nearest == other.nearest and len(cone.nearest) == 1
      if not is_known or cone.given == cone.nearest:
        yield cone, other


class _Search:
  """Looks for cones in both graphs."""

  def __init__(self, proof: Proof) -> None:
    self._proof = proof
    self._shared = frozenset(proof.tf1.values.values()) & frozenset(proof.tf2.values.values())

  def all_of(self, side: Side, from_afar: bool) -> Iterator[Cone]:
    """Yields the cones of all operations of a side that are not proven."""
    for position in sorted(side.tested):
      if from_afar:
        yield from self.growing(side, position)
      else:
        yield from self._nearest(side, position)

  def growing(self, side: Side, position: int) -> Iterator[Cone]:
    """Yields the cones of an operation, each from further back than the one before."""
    through: set[int] = set()
    ends: set[int] = set()
    found = self._found(side, position, through, _LONGEST_FROM_AFAR)
    nearest = frozenset() if found is None else found[0].given
    while found is not None:
      cone, given = found
      if cone.given:
        yield dataclasses.replace(cone, nearest=nearest)
      # The latest first: terms have numbers in the order in which they are computed, the same on
      # both sides.
      open_ones = [n for n in sorted(given, reverse=True) if n not in ends]
      found = None
      for number in open_ones:
        if side.graph.ops[given[number]].op_type in ELEMENTWISE:
          found = self._found(side, position, {*through, number}, _LONGEST_FROM_AFAR)
        if found is not None:
          through.add(number)
          break
        ends.add(number)

  def _nearest(self, side: Side, position: int) -> Iterator[Cone]:
    """Yields the shortest cone; conditions on one tensor are computed from it.

    Each for itself, they could be given values that do not occur together.
    """
    found = self._found(side, position, (), _LONGEST)
    through: set[int] = set()
    while found is not None:
      cone, given = found
      dependent = self._dependent(side, given)
      if not dependent:
        if cone.given:
          yield cone
        return
      through |= dependent
      found = self._found(side, position, through, _LONGEST_FROM_AFAR)

  def _dependent(self, side: Side, given: dict[int, int]) -> set[int]:
    """Returns the conditions among some values, if they depend on others of these."""
    bools = {n for n in given if self._is_condition(side, given[n])}
    read: dict[int, list[int]] = {}
    for number in bools:
      for one in set(self._read(side, given[number])):
        read.setdefault(one, []).append(number)
    return {n for one, by in read.items() if len(by) > 1 or one in given for n in by}

  def _is_condition(self, side: Side, position: int) -> bool:
    op = side.graph.ops[position]
    return op.op_type in _OF_BOOLS and op.outputs[0][0] == 'bool'

  def _read(self, side: Side, position: int) -> list[int]:
    numbers = [side.values[key] for key in side.graph.ops[position].inputs]
    return [number for number in numbers if self._proof.terms.value(number) is None]

  def _found(
    self, side: Side, position: int, through: Collection[int], longest: int
  ) -> tuple[Cone, dict[int, int]] | None:
    """Returns the cone of an operation, and what yields the values that it is given.

    Args:
      side: whose operation it is.
      position: of the operation.
      through: terms that both sides have, and that are computed all the same.
      longest: how many operations it may have.
    """
    seen: set[int] = set()
    given: dict[int, int] = {}
    pending = [position]
    while pending:
      here = pending.pop()
      if here in seen:
        continue
      seen.add(here)
      op = side.graph.ops[here]
      is_end = op.is_leaf or op.functions or len(op.outputs) != 1 or not op.pure
      if len(seen) > longest or is_end:
        return None
      for key in op.inputs:
        number = side.values[key]
        if self._proof.terms.value(number) is not None:
          continue
        if number in self._shared and number not in through:
          given[number] = key[0]
        else:
          pending.append(key[0])
    terms = frozenset(given)
    return Cone(side, position, tuple(sorted(seen)), terms, terms), given
