"""Numbers that a line of the port could read instead of its own."""

import collections
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.diagnosis.patterns.operations.op_text import value_text
from tf2verify.diagnosis.proposals.code_lines import Line, Proposal, name_at
from tf2verify.records.op_graph import NodeChange, OpGraph, OpRecord
from tf2verify.relation.operations.op_pairs import is_backward

SQUARE = 'Square'
_EXPONENT = 2.0
_OF_TERMS = ('Mul', 'AddV2', 'Sub')
# An operation, the number of its input, and its dtype.
_NumberPlace = tuple[int, int, np.dtype[Any]]
# The places of each share of 1, the greater part, and of what it leaves.
_Shares = Mapping[float, tuple[Sequence[_NumberPlace], Sequence[_NumberPlace]]]
_DIGITS = 6
_MOST_CALLERS = 4
# Of two numbers that are 1 together, one is a share; what is left of 1 without 1e-6 is 1.
_LEAST_SHARE = 1e-3
_CLOSE = 1e-5


class NumberProposals:
  """Other numbers for lines of the port, by those that tf1 has somewhere.

  Attributes:
    all_of_tf1: those of tf1, with an operation that reads each.
    further: those of them that the port does not have.
  """

  def __init__(self, tf1: OpGraph, tf2: OpGraph) -> None:
    """Prepares.

    Args:
      tf1: the reference's operations.
      tf2: the port's.
    """
    self.all_of_tf1 = _all_numbers(tf1)
    self.further = _further_numbers(tf1, tf2)
    self._own = _numbers_of(Line(tf2, tuple(range(len(tf2.ops)))))
    # What each line of a caller leads to: two optimizers of one class have numbers of their own.
    self._called: dict[tuple[str, int], set[int]] = {}
    for n, op in enumerate(tf2.ops):
      for caller in () if op.source is None else op.source.callers:
        self._called.setdefault(caller.at, set()).add(n)

  def other_numbers(self, line: Line) -> Iterator[Proposal]:
    """Yields numbers of tf1 that the port does not have, in place of one of the line.

    Of either sign: what tf1 subtracts, a port may write as a negative number.
    """
    known = self.all_of_tf1.keys() | self._own.keys()
    negative = {-one: like for one, like in self.further.items() if -one not in known}
    for others in (self.further, negative):
      for number, places in _numbers_of(line).items():
        yield from self._instead_of(line, number, places, others)

  def shared_numbers(self, line: Line) -> Iterator[Proposal]:
    """Yields numbers that both sides have, in place of one of the line that tf1 has nowhere."""
    shared = {one: like for one, like in self.all_of_tf1.items() if one not in self.further}
    for number, places in _numbers_of(line).items():
      if number not in self.all_of_tf1:
        yield from self._instead_of(line, number, places, shared)

  def _instead_of(
    self, line: Line, number: float, places: Sequence[_NumberPlace], others: Mapping[float, int]
  ) -> Iterator[Proposal]:
    without = _without_term(line, number, places)
    for other, like in others.items():
      if other != number:
        one, two = value_text(other), value_text(number)
        text = f'{name_at(line, places[0][0])} has {two} in the port, {one} in tf1'
        text += '' if other in self.all_of_tf1 else f', which subtracts {value_text(-other)}'
        yield Proposal(_set(line, places, other), one, two, text, like, instead=without)

  def exchanged_numbers(self, line: Line) -> Iterator[Proposal]:
    """Yields two numbers that both sides have in place of each other: of the line, or one of it."""
    own = _numbers_of(line)
    known = [number for number in self._own if number in self.all_of_tf1]
    pairs = itertools.chain(
      itertools.combinations([number for number in known if number in own], 2),
      itertools.product(
        [number for number in known if number in own],
        [number for number in known if number not in own],
      ),
    )
    for one, other in pairs:
      places = [(own if n in own else self._own)[n] for n in (one, other)]
      changes = (*_set(line, places[0], other), *_set(line, places[1], one))
      first, second = (name_at(line, found[0][0]) for found in places)
      ours, theirs = (value_text(number) for number in (one, other))
      text = f'{first} has {ours} and {second} has {theirs} in the port, {theirs} and {ours} in tf1'
      both = f'{theirs} and {ours}', f'{ours} and {theirs}'
      yield Proposal(changes, *both, text, self.all_of_tf1[other])

  def other_shares(self, line: Line) -> Iterator[Proposal]:
    """Yields another share of tf1, and what it leaves of 1, in place of both of the port.

    A decay is a number twice: as itself, and as 1 without it. That is one of the line alone, or
    one setting of all lines that read it, or of those that one caller leads to.
    """
    known = [_shares(_numbers_of(line)), *self._shares_of_callers(line), _shares(self._own)]
    for row in itertools.zip_longest(*(self._other_shares(line, shares) for shares in known)):
      yield from (one for one in row if one is not None)

  def _other_shares(self, line: Line, shares: _Shares) -> Iterator[Proposal]:
    of_tf1 = [one for one in self.all_of_tf1 if _LEAST_SHARE <= one < 1]
    further = [one for one in of_tf1 if one in self.further]
    # What tf1 has nowhere may be another one of tf1's that the port has as well.
    known = [one for one in of_tf1 if rounded(1 - one) in self.all_of_tf1]
    for number, (places, left) in shares.items():
      is_here = any(n in line.positions for n, *_ in (*places, *left))
      others = further if number in self.all_of_tf1 else dict.fromkeys((*further, *known))
      for other in others if is_here else ():
        changes = (*_set(line, places, other), *_set(line, left, rounded(1 - other)))
        both = [f'{value_text(one)} and {value_text(rounded(1 - one))}' for one in (other, number)]
        first, second = (name_at(line, found[0][0]) for found in (places, left))
        text = f'{first} and {second} have {both[1]} in the port, {both[0]} in tf1'
        like = self.all_of_tf1[other]
        shown = value_text(other), value_text(number)
        yield Proposal(changes, *shown, text, like, is_setting=True)

  def _shares_of_callers(self, line: Line) -> Iterator[_Shares]:
    """Yields the shares among what each caller of a line leads to, where it has several."""
    found = dict.fromkeys(
      caller.at
      for op in line.ops
      if op.source is not None
      for caller in op.source.callers
      if not self._called[caller.at].issuperset(line.positions)
    )
    for at in itertools.islice(found, _MOST_CALLERS):
      called = self._called[at]
      numbers = {
        number: kept
        for number, places in self._own.items()
        if (kept := [place for place in places if place[0] in called])
      }
      yield _shares(numbers)

  def without_terms(self, line: Line) -> Iterator[Proposal]:
    """Yields 0 for factors and terms of the line."""
    for number, places in _numbers_of(line).items():
      proposal = _without_term(line, number, places)
      if proposal is not None:
        yield proposal


def _shares(
  numbers: Mapping[float, list[_NumberPlace]],
) -> _Shares:
  """Returns the shares of 1 among some numbers."""
  found = {}
  for number, places in numbers.items():
    for rest, left in numbers.items():
      if _LEAST_SHARE <= rest < number < 1 and math.isclose(number + rest, 1, rel_tol=_CLOSE):
        found[number] = places, left
  return found


def _set(line: Line, places: Iterable[_NumberPlace], number: float) -> tuple[NodeChange, ...]:
  """Returns what gives operations of a line another number."""
  return tuple(
    NodeChange(line.graph.ops[n].name, inputs=((slot, np.asarray(number, dtype)),))
    for n, slot, dtype in places
  )


def _without_term(line: Line, number: float, places: Sequence[_NumberPlace]) -> Proposal | None:
  """Returns the line with 0 for a factor or a term of a sum; None for any other number."""
  if not number or any(line.graph.ops[n].op_type not in _OF_TERMS for n, *_ in places):
    return None
  two = value_text(number)
  text = (
    f'{name_at(line, places[0][0])} has {two} in the port, for what tf1 leaves out here: with 0 '
    'both sides agree'
  )
  return Proposal(_set(line, places, 0.0), '0', two, text)


def _numbers_of(line: Line) -> Mapping[float, list[_NumberPlace]]:
  """Returns the floating numbers that a line reads, with the operations that read them."""
  found: dict[float, list[_NumberPlace]] = {}
  for n, op in zip(line.positions, line.ops, strict=True):
    if is_backward(op):
      continue  # gradients are formed anew
    for slot, (producer, _) in enumerate(op.inputs):
      value = constant_or_number(line.graph, producer)
      if value is not None and value.size == 1 and value.ndim == 0 and value.dtype.kind == 'f':
        number = rounded(value.item())
        if math.isfinite(number):
          found.setdefault(number, []).append((n, slot, value.dtype))
  return found


def _further_numbers(tf1: OpGraph, tf2: OpGraph) -> Mapping[float, int]:
  """Returns the numbers that tf1 has and the port does not, with an operation that reads each."""
  ones, others = (_all_numbers(graph) for graph in (tf1, tf2))
  return {number: position for number, position in ones.items() if number not in others}


def _all_numbers(graph: OpGraph) -> Mapping[float, int]:
  found: dict[float, int] = {}
  for position, op in enumerate(graph.ops):
    for producer, _ in op.inputs:
      value = constant_or_number(graph, producer)
      if value is not None and value.size == 1 and value.dtype.kind == 'f':
        found.setdefault(rounded(value.item()), position)
  return found


def operations_with_numbers(
  graph: OpGraph, types: Collection[str]
) -> collections.Counter[tuple[str, float]]:
  """Returns how often a graph has operations of some types with a number other than 0 and 1."""
  found: collections.Counter[tuple[str, float]] = collections.Counter()
  for op in graph.ops:
    if op.op_type not in types or is_backward(op):
      continue
    for producer, _ in op.inputs:
      value = constant_or_number(graph, producer)
      if value is not None and value.size == 1 and value.dtype.kind == 'f':
        found[op.op_type, rounded(value.item())] += 1
  return collections.Counter({pair: n for pair, n in found.items() if pair[1] not in (0.0, 1.0)})


def squares(graph: OpGraph) -> int:
  """Returns how many squares a graph computes, as an operation, a power or a product."""
  return sum(
    op.op_type == SQUARE
    or (op.op_type == 'Mul' and op.inputs[0] == op.inputs[1])
    or (op.op_type == 'Pow' and _is_two(graph, op))
    for op in graph.ops
  )


def _is_two(graph: OpGraph, op: OpRecord) -> bool:
  value = constant_or_number(graph, op.inputs[1][0])
  return value is not None and value.size == 1 and value.item() == _EXPONENT


def rounded(number: float) -> float:
  """Returns a number as it is compared with others."""
  return float(f'{number:.{_DIGITS}g}')
