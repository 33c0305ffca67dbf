"""Quantities that operations of a run hold against a number: with a comparison, or with a bound.

Where what comes before is not proven, that two operations read the same shows in its values: two
norms that have the same digits are one norm, however each side computes it.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Sequence

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.records.op_graph import INPUT, VARIABLE, OpGraph, OpRecord, TensorKey
from tf2verify.records.wording import number_text
from tf2verify.relation.operations.gradient_names import is_of_gradient
from tf2verify.relation.operations.op_pairs import family
from tf2verify.sides.graphs.run import GraphRun

ORDERED, EQUAL = 'comparison', 'equality'
# What all that follows from counts alone is computed from, see `roots`.
_COUNT = '(any count)'
OF_COUNTS = frozenset({_COUNT})
_COUNTS = (('int64', ()), ('int32', ()))
_MIRRORED = {
  'Less': 'Greater',
  'Greater': 'Less',
  'LessEqual': 'GreaterEqual',
  'GreaterEqual': 'LessEqual',
  'Equal': 'Equal',
  'NotEqual': 'NotEqual',
}
_SHOWN = {
  'Less': '<',
  'GreaterEqual': '>=',
  'LessEqual': '<=',
  'Greater': '>',
  'Equal': '==',
  'NotEqual': '!=',
}
# Of whole numbers, `x > 0` is `x >= 1`: where between two of them a comparison changes.
_BETWEEN = {'Less': -0.5, 'GreaterEqual': -0.5, 'LessEqual': 0.5, 'Greater': 0.5}
_BOUNDS = ('Maximum', 'Minimum')
_ADDED = 'AddV2'
# What is added to keep a root or a division from 0.
_SMALL = 1e-2
_MOST_ELEMENTS = 1 << 20
_RELATIVE_ELEMENTS = 1e-3
_SAME_NUMBER = 1e-6
# Of the numbers of a bound and of a comparison that are one threshold, one of them wrong.
_MOST_APART = 10.0
# Of a scalar that is a whole number, counts of steps and of classes among them, say little.
_MOST_WHOLE = 1000
# Libraries compare as well, and so does the gradient of a bound.
_WRITTEN = re.compile('[<>]|==|!=|less|greater|equal|if |while |where|mask')


@dataclasses.dataclass(frozen=True, eq=False)
class Quantity:
  """What an operation holds against a number.

  Attributes:
    op: the operation.
    position: of it.
    tensor: TensorFlow's name of the quantity.
    kind: `ORDERED`, `EQUAL`, or the family of the operation.
    number: the number.
    between: the same; of a comparison of whole numbers, halfway to the next one.
    text: the operation and the number as they are written.
    value: in the run.
    read: names of the variables and inputs from which it is computed.
  """

  op: OpRecord
  position: int
  tensor: str
  kind: str
  number: float
  between: float
  text: str
  value: np.ndarray
  read: frozenset[str]

  @functools.cached_property
  def _elements(self) -> np.ndarray:
    return np.sort(np.ravel(self.value).astype(np.float64))

  @functools.cached_property
  def _tells(self) -> bool:
    """Whether other quantities hardly have the same elements by chance."""
    least, greatest = self._elements[[0, -1]]
    if self.value.size > 1:
      return bool(least < greatest)
    return bool(least != np.round(least)) or abs(least) > _MOST_WHOLE

  def is_same(self, other: 'Quantity') -> bool:
    """Returns whether both are one quantity, as far as a run tells."""
    if self.value.size != other.value.size:
      return False
    size = float(np.max(np.abs(self._elements)))
    is_same = np.allclose(self._elements, other._elements, _RELATIVE_ELEMENTS, 1e-6 * size)
    return is_same and (self._tells or bool(self.read and self.read == other.read))

  def filled(self, number: float) -> np.ndarray:
    """Returns an array like the quantity, of one number."""
    return np.full_like(self.value, number)

  def has_number_of(self, other: 'Quantity') -> bool:
    """Returns whether both are held against the same number, in the same way.

    Or one of them in a comparison, and the other one by a bound.
    """
    if self.kind == other.kind:
      return bool(np.isclose(self.between, other.between, _SAME_NUMBER, 1e-12))
    whole = 1.0 if self.value.dtype.kind != 'f' else 0.0
    return self._is_bounded_as(other) and bool(
      np.isclose(self.number, other.number, _SAME_NUMBER, whole)
    )

  def may_stand_for(self, other: 'Quantity') -> bool:
    """Returns whether one is written in the place of the other, whatever the numbers are."""
    if self.kind == other.kind:
      return True
    ratio = self.number / other.number if other.number else 0.0
    return self._is_bounded_as(other) and 1 / _MOST_APART <= ratio <= _MOST_APART

  def is_reached_with(self, other: 'Quantity') -> bool:
    """Returns whether the same values reach both numbers: of `x / 2` and 1, and of `x` and 2."""
    if self.value.size != other.value.size or not (self.number and other.number):
      return self.is_same(other) and self.has_number_of(other)
    one, same = (known._elements / known.number for known in (self, other))
    with np.errstate(all='ignore'):
      return any(
        np.allclose(np.sort(one), np.sort(share), _RELATIVE_ELEMENTS, 1e-6)
        for share in (same, 1.0 / same)
      )

  def _is_bounded_as(self, other: 'Quantity') -> bool:
    kinds = {self.kind, other.kind}
    return ORDERED in kinds and not kinds.isdisjoint(_BOUNDS)


def quantities(graph: OpGraph, run: GraphRun, positions: Collection[int]) -> list[Quantity]:
  """Returns what some operations hold against a number; none where they cannot be run.

  Args:
    graph: of one side.
    run: of it.
    positions: of the operations.
  """
  known = [found for n in sorted(positions) if (found := _held(graph, n)) is not None]
  names = [graph.tensor(key) for _, key, _ in known]
  values = run.refetched(names, {}) if names else None
  if values is None:
    return []
  return [
    Quantity(graph.ops[n], n, name, *held, value, read_by(graph, key[0]))
    for (n, key, held), name, value in zip(known, names, values, strict=True)
    if value.dtype.kind in 'fiu' and 0 < value.size <= _MOST_ELEMENTS and np.isfinite(value).all()
  ]


def comparisons_behind(graph: OpGraph, ends: Sequence[int]) -> list[int]:
  """Returns the positions of the comparisons that decide truths, through logical operations."""
  pending, seen = list(ends), set(ends)
  found = []
  while pending:
    position = pending.pop()
    op = graph.ops[position]
    if op.op_type in _MIRRORED:
      found.append(position)
      continue
    for producer, number in op.inputs:
      outputs = graph.ops[producer].outputs
      if producer not in seen and number < len(outputs) and outputs[number][0] == 'bool':
        seen.add(producer)
        pending.append(producer)
  return found


def read_by(graph: OpGraph, position: int) -> frozenset[str]:
  """Returns the names of the variables and inputs from which an operation is computed."""
  ops = (graph.ops[n] for n in graph.ancestors([position]))
  return frozenset(op.name for op in ops if op.op_type in (INPUT, VARIABLE))


def roots(graph: OpGraph, positions: Sequence[int]) -> frozenset[str]:
  """Returns the same of some, with one name for all counts, which sides call otherwise."""
  ops = [graph.ops[n] for n in graph.ancestors(positions)]
  counts = {op.name for op in ops if op.op_type == VARIABLE and op.outputs[0] in _COUNTS}
  read = {op.name for op in ops if op.op_type in (INPUT, VARIABLE)}
  return frozenset(read - counts | ({_COUNT} if counts else set()))


# Kind, number, `between` and text of a `Quantity`.
_Number = tuple[str, float, float, str]


def _held(graph: OpGraph, position: int) -> tuple[int, TensorKey, _Number] | None:
  """Returns an operation, what it reads besides a number, and what tells of the number.

  None for an operation that holds nothing against one number.
  """
  op = graph.ops[position]
  kind = family(op.op_type)
  if kind not in (*_MIRRORED, *_BOUNDS, _ADDED) or len(op.inputs) != 2:
    return None
  numbers = [constant_or_number(graph, producer) for producer, _ in op.inputs]
  places = [n for n, one in enumerate(numbers) if one is not None]
  value = numbers[places[0]] if len(places) == 1 else None
  if value is None or value.size != 1 or value.dtype.kind not in 'fiu':
    return None
  number, read = float(value.reshape(())), op.inputs[1 - places[0]]
  if kind in _MIRRORED:
    if is_of_gradient(op.name) and not (op.source and _WRITTEN.search(op.source.code)):
      return None
    kind = kind if places[0] else _MIRRORED[kind]
    text = f'{_SHOWN[kind]} {number_text(number)}'
    between = number + (0.0 if value.dtype.kind == 'f' else _BETWEEN.get(kind, 0.0))
    return position, read, (ORDERED if kind in _BETWEEN else EQUAL, number, between, text)
  if kind == _ADDED and not (value.dtype.kind == 'f' and 0.0 < number <= _SMALL):
    return None
  return position, read, (kind, number, number, f'{kind} with {number_text(number)}')
