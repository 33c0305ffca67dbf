"""Bounds and choices that one side alone has, and that do nothing in a run.

Where what comes before, or after, is not proven, no two operations are known to read the same, and
a bound of one side has no counterpart to be held against. What it does in a run can be seen. So it
is with a choice (`tf.where(norm > 0, w / norm, 1)`) of which a run takes one side alone.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number, same_everywhere
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.records.wording import number_text
from tf2verify.reference.graph_ops import reached
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.proof.proving import Proof
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.graphs.step_run import is_decision_target
from tf2verify.stages.comparison.proof.quantities import (
  Quantity,
  comparisons_behind,
  quantities,
  roots,
)
from tf2verify.stages.comparison.proof.tried_bounds import TriedBounds

_MINIMUM, _MAXIMUM = 'Minimum', 'Maximum'
_CHOICE = 'SelectV2'
# Of numbers below it, the rest of a division is the number.
_REST = 'FloorMod'
_WRITTEN = 'where'
_CHOSEN = 'a choice (where) of another value or'
# Activations that bound what they read, and by what.
_AS_BOUNDS = {'Relu': (_MAXIMUM, 0.0), 'Relu6': (_MINIMUM, 6.0)}
# What yields no number that a bound of 0 from below could change.
_NOT_NEGATIVE = frozenset(
  ('Abs', 'Square', 'SquaredDifference', 'Sqrt', 'Exp', 'Sigmoid', 'Softmax', 'Softplus', 'Relu')
)
_OF_BOUNDS = re.compile('max|min|clip|relu')
_MOST = 3
# Of a tensor of more numbers, they are no bounds of coordinates, say.
_MOST_ELEMENTS = 16
_RELATIVE = 1e-6
_RELATIVE_ELEMENTS = 1e-3
_RELATIVE_SHARE = 1e-5
_SIDES = ('tf1', 'the port')

_Bound = tuple[str, float]
_Known = tuple[str, float | None]  # with a number that is not seen


def idle_bounds(
  proof: Proof,
  runs: tuple[GraphRun, GraphRun],
  tried: TriedBounds,
  told: Collection[SourceLine] = (),
) -> list[str]:
  """Returns a sentence for each bound that does nothing in a run, and that one side alone has.

  Args:
    proof: of the graphs of the run.
    runs: of both sides, at inputs at which they agree.
    tried: of both.
    told: lines of which is told already that they differ.
  """
  sides = proof.tf1, proof.tf2
  partners = _Partners((proof.tf1.graph, proof.tf2.graph), runs)
  alone: list[_Idle] = []
  for number, (side, run) in enumerate(zip(sides, runs, strict=True)):
    # A line in a loop of Python makes an operation in each round, and may do nothing in the first.
    places: dict[tuple[str, _Bound], list[int]] = {}
    for position in sorted(side.tested):
      op = side.graph.ops[position]
      bound = _bound(side.graph, op)
      if bound is None or op.source in told or partners.has(number, position, bound):
        continue
      where = 'an unknown line' if op.source is None else str(op.source)
      places.setdefault((where, bound), []).append(position)
    for (where, bound), ops in places.items():
      idle = [functools.partial(_is_idle, side.graph, side.graph.ops[n]) for n in ops]
      if not all(one(run, {}) for one in idle):
        continue
      if not all(map(functools.partial(tried.is_on_both_sides, number), ops, idle)):
        alone.append(_Idle(number, where, bound, _share(side.graph, run, ops, bound)))
  found: dict[tuple[int, str], list[str]] = {}
  for one in alone:
    if not any(one.is_reached_with(other) for other in alone):
      found.setdefault((one.side, one.where), []).append(_text(one.bound))
  return [_said(number, bounds, where) for (number, where), bounds in found.items()][:_MOST]


@dataclasses.dataclass(frozen=True, eq=False)
class _Idle:
  """A bound that does nothing, and that the other side does not have as it is.

  Attributes:
    share: how much of the bound is reached, different numbers in order; None if it is not known.
  """

  side: int
  where: str
  bound: _Bound
  share: np.ndarray | None

  def is_reached_with(self, other: '_Idle') -> bool:
    """Returns whether a bound of the other side is reached by the same inputs as this one.

    `min(step, 10) / 10` and `min(step / 10, 1)`; `x * min(1 / norm, 1 / 5)` and
    `x / max(norm, 5)`.
    """
    if other.side == self.side or self.share is None or other.share is None:
      return False
    if self.bound[1] * other.bound[1] < 0:  # reached from the other side
      return False
    share = other.share if other.bound[0] == self.bound[0] else np.sort(1.0 / other.share)
    if share.shape != self.share.shape:
      return False
    return bool(np.allclose(share, self.share, rtol=_RELATIVE_SHARE, atol=0.0))


def _share(
  graph: OpGraph, run: GraphRun, positions: Sequence[int], bound: _Bound
) -> np.ndarray | None:
  if bound[0] not in (_MINIMUM, _MAXIMUM) or not bound[1]:
    return None
  found = run.refetched([name for n in positions for name in _read(graph, graph.ops[n])], {})
  if not found or any(value.dtype.kind not in 'fi' for value in found):
    return None
  share = np.sort(np.concatenate([np.ravel(value) / bound[1] for value in found]))
  # One side may bound the same number once for all variables, and the other one for each of them.
  steps = np.diff(share, prepend=-np.inf)
  share = share[steps > _RELATIVE_SHARE * np.abs(share)]
  return share if share.size and bool(np.all(share)) else None


class _Partners:
  """Which bounds of one side the other one has as well."""

  def __init__(self, graphs: tuple[OpGraph, OpGraph], runs: tuple[GraphRun, GraphRun]) -> None:
    self._graphs, self._runs = graphs, runs
    self._known = [_bounds(graph) for graph in graphs]
    self._alone: dict[tuple[int, _Bound], frozenset[int]] = {}
    self._decided: dict[int, list[tuple[frozenset[str], list[Quantity]]]] = {}
    self._taken: dict[int, set[int]] = {}

  def has(self, side: int, position: int, bound: _Bound) -> bool:
    """Returns whether the other side has a bound, of several alike as many of them.

    Or whether what it bounds decides there which operations run.
    """
    if self._is_of_decision(side, position) or self._is_not_taken(side, position):
      return True
    if not _among(bound, self._known[1 - side]):
      return False
    if not self._graphs[side].ops[position].outputs[0][0].startswith('float'):
      return True  # of identifiers, whatever the bound keeps out
    if (side, bound) not in self._alone:
      self._alone[side, bound] = self._without_partner(side, bound)
    return position not in self._alone[side, bound]

  def _is_of_decision(self, side: int, position: int) -> bool:
    others = self._decisions(1 - side)
    if not others:
      return False
    graph, op = self._graphs[side], self._graphs[side].ops[position]
    own = [position]
    if family(op.op_type) == _CHOICE:
      own = comparisons_behind(graph, [op.inputs[0][0]])
    held = quantities(graph, self._runs[side], own)
    read = roots(graph, own)
    return any(
      (read == of and (not known or not all(one.number for one in (*held, *known))))
      or any(one.is_reached_with(other) for one in held for other in known)
      for of, known in others
    )

  def _is_not_taken(self, side: int, position: int) -> bool:
    """Returns whether a bound is of a case that was not chosen, where the other side has branches.

    What is in a branch that does not run is not in the graph of that side.
    """
    if not self._decisions(1 - side):
      return False
    if side not in self._taken:
      self._taken[side] = _chosen(self._graphs[side], self._runs[side])
    return position not in self._taken[side]

  def _decisions(self, side: int) -> list[tuple[frozenset[str], list[Quantity]]]:
    """Returns what decides which operations of a side run: what it follows from, and its values.

    Of a number that Python reads, what it is compared with is not known.
    """
    if side not in self._decided:
      graph = self._graphs[side]
      ends = [n for name, n in graph.targets().items() if is_decision_target(name)]
      behind = [n for end in ends for n in comparisons_behind(graph, [end]) or [end]]
      self._decided[side] = [
        (roots(graph, [n]), quantities(graph, self._runs[side], [n])) for n in behind
      ]
    return self._decided[side]

  def _without_partner(self, side: int, bound: _Bound) -> frozenset[int]:
    """Returns the bounds of a side that are alike and of which the other side has fewer."""
    own, others = (self._positions(number, bound) for number in (side, 1 - side))
    # In loops, or with a number that is not seen, they are not counted.
    if len(own) <= len(others) or len(others) < _among(bound, self._known[1 - side]):
      return frozenset()
    values, known = self._values(side, own), self._values(1 - side, others)
    if not values or (others and not known):
      return frozenset()  # they cannot be run again
    left, alone = list(known), []
    for place in own:
      like = next((n for n in left if _are_alike(values[place], known[n])), None)
      if like is None:
        alone.append(place)
      else:
        left.remove(like)
    return frozenset() if left else frozenset(alone)

  def _positions(self, side: int, bound: _Bound) -> list[int]:
    graph = self._graphs[side]
    return [n for n, op in enumerate(graph.ops) if _is_among_one(bound, _bound(graph, op))]

  def _values(self, side: int, positions: Sequence[int]) -> dict[int, np.ndarray]:
    names = [self._graphs[side].ops[n].tensors[0] for n in positions]
    found = self._runs[side].refetched(names, {})
    return {} if found is None else dict(zip(positions, map(np.ravel, found), strict=True))


def _chosen(graph: OpGraph, run: GraphRun) -> set[int]:
  """Returns the operations that targets follow from, without cases that no element chooses."""
  choices = [n for n, op in enumerate(graph.ops) if family(op.op_type) == _CHOICE]
  names = [graph.ops[op].tensors[k] for op, k in (graph.ops[n].inputs[0] for n in choices)]
  found = run.refetched(names, {}) if choices else ()
  unused = {
    n: {2 if bool(np.all(value)) else 1}
    for n, value in zip(choices, found or (), strict=bool(found))
    if bool(np.all(value)) or not bool(np.any(value))
  }

  def before(position: int) -> list[int]:
    left_out = unused.get(position, ())
    inputs = enumerate(graph.ops[position].inputs)
    return [producer for slot, (producer, _) in inputs if slot not in left_out]

  ends = list(graph.targets().values())
  return set(reached(ends, before))


def _are_alike(one: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether two arrays have the same elements, in whatever order."""
  if one.size != other.size or one.dtype.kind != 'f':
    return False
  return bool(np.allclose(np.sort(one), np.sort(other), rtol=_RELATIVE_ELEMENTS, atol=1e-7))


def _said(number: int, bounds: Sequence[str], where: str) -> str:
  word = 'choice' if all(one.startswith(_CHOSEN) for one in bounds) else 'bound'
  each = ' and '.join(dict.fromkeys(bounds))
  return (
    f'{_SIDES[number]} has {each} at {where}, which changes nothing at the '
    f"case's own inputs; {_SIDES[1 - number]} has no such {word}, and not all operations are "
    f'proven: make the port the same as tf1, or give inputs that reach the {word}'
  )


def _bounds(graph: OpGraph) -> list[_Known]:
  """Returns the bounds of a graph, and those of the functions of its loops and branches."""
  found: list[_Known] = [one for op in graph.ops if (one := _bound(graph, op)) is not None]
  found += [one for op in graph.ops for one in _bounds_of_elements(graph, op)]
  functions = [function for op in graph.ops for _, function in op.functions]
  return found + [bound for one in functions for bound in _bounds_within(one)]


def _bounds_of_elements(graph: OpGraph, op: OpRecord) -> Iterator[_Known]:
  """Yields the bounds of an operation that has one for each of a few elements."""
  kind = family(op.op_type)
  if kind in (_MINIMUM, _MAXIMUM):
    for producer, _ in op.inputs:
      known = constant_or_number(graph, producer)
      if known is not None and 1 < known.size <= _MOST_ELEMENTS and known.dtype.kind in 'fi':
        yield from ((kind, float(value)) for value in np.unique(known))


def _bounds_within(function: OpGraph) -> Iterator[_Known]:
  yield from _bounds(function)
  # What a function is given, a number outside of it among them, is not seen in it.
  for op in function.ops:
    kind = family(op.op_type)
    constants = [constant_or_number(function, producer) for producer, _ in op.inputs]
    is_float = bool(op.outputs) and op.outputs[0][0].startswith('float')
    bounds = kind == _REST or (kind in (_MINIMUM, _MAXIMUM) and is_float)
    if kind == _CHOICE or (bounds and all(one is None for one in constants)):
      yield kind, None


def _bound(graph: OpGraph, op: OpRecord) -> _Bound | None:
  """Returns from which side an operation bounds, and by what number; None for others."""
  kind = family(op.op_type)
  if kind == _CHOICE:
    return _choice(graph, op)
  if kind in _AS_BOUNDS:
    return _AS_BOUNDS[kind]
  if kind not in (_MINIMUM, _MAXIMUM, _REST):
    return None
  # `dynamic_rnn` goes one round at least, whatever the lengths are: no bound of the user's.
  is_float = op.outputs[0][0].startswith('float')
  is_size = not is_float and op.source is not None and not _OF_BOUNDS.search(op.source.code)
  if is_size and kind != _REST:
    return None
  constants = [constant_or_number(graph, n) for n, _ in op.inputs]
  numbers = [one for one in constants if one is not None and one.size == 1]
  if len(numbers) != 1 or numbers[0].dtype.kind not in 'fi':
    return None
  number = float(numbers[0].reshape(()))
  read = {family(graph.ops[n].op_type) for n, _ in op.inputs}
  return None if kind == _MAXIMUM and number <= 0.0 and read & _NOT_NEGATIVE else (kind, number)


def _choice(graph: OpGraph, op: OpRecord) -> _Bound | None:
  """Returns the number that a choice has for one case; None for a choice between other things."""
  is_float = bool(op.outputs) and op.outputs[0][0].startswith('float')
  # Libraries choose as well, for numbers that are not finite, or signs of zero.
  if not is_float or op.source is None or _WRITTEN not in op.source.code:
    return None
  numbers = [same_everywhere(graph, producer) for producer, _ in op.inputs[1:]]
  known = [one for one in numbers if one is not None]
  return (_CHOICE, known[0]) if len(known) == 1 else None


def _text(bound: _Bound) -> str:
  if bound[0] == _CHOICE:
    return f'{_CHOSEN} {number_text(bound[1])}'
  return f'{bound[0]} with {number_text(bound[1])}'


def _among(bound: _Bound, others: Sequence[_Known]) -> int:
  return sum(_is_among_one(bound, one) for one in others)


def _is_among_one(bound: _Bound, other: _Known | None) -> bool:
  if other is None or other[0] != bound[0]:
    return False
  return other[1] is None or bool(np.isclose(other[1], bound[1], _RELATIVE, _RELATIVE))


def _is_idle(graph: OpGraph, op: OpRecord, run: GraphRun, given: Mapping[str, np.ndarray]) -> bool:
  """Returns whether an operation yields what it reads, all of it, where some tensors are given."""
  found = run.refetched([op.tensors[0], *_read(graph, op)], given)
  if found is None:
    return False
  after, *read = found
  if family(op.op_type) == 'Relu6':  # of which the upper bound is looked at
    read = [np.maximum(one, 0) for one in read]
  return any(
    np.shape(one) == np.shape(after) and np.size(one) > 0 and bool(np.array_equal(one, after))
    for one in read
  )


def _read(graph: OpGraph, op: OpRecord) -> Iterator[str]:
  for producer, number in op.inputs:
    if constant_or_number(graph, producer) is None:
      yield graph.ops[producer].tensors[number]
