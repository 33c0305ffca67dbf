"""Numbers and kinds of operations that one side alone has, where not all is proven.

An epsilon, the number that a mask adds, a comparison that is strict, rounding to even: where the
operations have no counterpart that is known, they have no effect at the case's inputs, or a small
one. That one side has such a number and the other one has another can be seen all the same.
"""

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.patterns.numbers.known_values import constant_or_number
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph, OpRecord
from tf2verify.records.wording import number_text
from tf2verify.relation.operations.gradient_names import is_of_gradient
from tf2verify.relation.operations.op_pairs import family
from tf2verify.relation.proof.proving import Proof
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.stages.comparison.proof.tried_bounds import TriedBounds, drawn_tensors

_SIDES = ('tf1', 'the port')
_MOST = 3
_TINY, _HUGE = 1e-5, 1e5
_RELATIVE = 1e-6
# Bounds of two comparisons that may stand for one another: of the greater one; and beside 0.
_NEAR, _NEAR_ZERO = 0.3, 0.02
_ARITHMETIC = frozenset(
  ('Add', 'AddV2', 'Sub', 'Mul', 'RealDiv', 'Maximum', 'Minimum', 'Pow', 'SelectV2', 'Select')
)
# Of `x > c`, the case of `x <= c` is what is left: how strict a comparison is shows in both.
_STRICT = {'Less': '<', 'GreaterEqual': '<', 'LessEqual': '<=', 'Greater': '<='}
_MIRRORED = {
  'Less': 'Greater',
  'Greater': 'Less',
  'LessEqual': 'GreaterEqual',
  'GreaterEqual': 'LessEqual',
}
_SHOWN = {'Less': '<', 'GreaterEqual': '>=', 'LessEqual': '<=', 'Greater': '>'}
# Of several names of one operation, the first; and within which one is held against another.
_KINDS = {
  'Floor': ('Floor', 'rounding'),
  'Ceil': ('Ceil', 'rounding'),
  'Round': ('Round', 'rounding'),
  'Rint': ('Round', 'rounding'),
  'IsFinite': ('IsFinite', 'finite'),
  'IsNan': ('IsNan', 'finite'),
  'IsInf': ('IsInf', 'finite'),
}
# Libraries test and round as well, for reasons of their own.
_WRITTEN = re.compile('floor|ceil|round|rint|finite|nan|inf')
# The gradient of a bound compares as well, at the line that asks for gradients.
_WRITTEN_COMPARISON = re.compile('[<>]|less|greater|equal')
_NUMBER, _COMPARED, _KIND = 'the number', 'the comparison', 'the operation'
_EPSILON = 'the epsilon'
_UNDER, _BESIDE = 'under a root', 'beside a root'


@dataclasses.dataclass(frozen=True)
class _Trait:
  """What an operation has that another one may have as well."""

  sort: str
  group: str  # within which one is held against another
  number: float
  text: str

  def is_like(self, other: '_Trait') -> bool:
    """Returns whether both are the same."""
    is_same = bool(np.isclose(self.number, other.number, rtol=_RELATIVE, atol=0.0))
    return is_same and self.sort == other.sort and self._own_group == other._own_group

  @property
  def _own_group(self) -> str:
    return self.text if self.sort in (_KIND, _EPSILON) else self.group

  def is_held_against(self, other: '_Trait') -> bool:
    """Returns whether another one may stand in its place: of one number, but for mere numbers.

    Or a comparison in the same direction with a number that is near.
    """
    if self.sort == other.sort and self.sort in (_COMPARED, _EPSILON):
      is_same = bool(np.isclose(self.number, other.number, rtol=_RELATIVE, atol=0.0))
      return is_same or (self.sort == _COMPARED and self._is_near(other))
    return self.sort == other.sort and self.group == other.group

  def _is_near(self, other: '_Trait') -> bool:
    size = max(abs(self.number), abs(other.number))
    apart = abs(self.number - other.number)
    return self.text[0] == other.text[0] and apart <= max(_NEAR * size, _NEAR_ZERO)


_Found = tuple[_Trait, OpRecord]


def one_sided_numbers(
  proof: Proof, tried: TriedBounds, told: Collection[SourceLine] = ()
) -> list[str]:
  """Returns a sentence for each number, or kind of operation, that one side alone has.

  Args:
    proof: of graphs whose results agree.
    tried: of runs of both.
    told: lines of which is told already that they differ.
  """
  sides = proof.tf1, proof.tf2
  known = [list(_all_traits(side.graph)) for side in sides]
  tested = [
    [
      (trait, op)
      for trait, op in _traits(side.graph, sorted(side.tested))
      if op.source not in told and not _is_of_gradient(trait, op)
    ]
    for side in sides
  ]
  said: dict[frozenset[str], str] = {}
  for number, found in enumerate(tested):
    own, others = known[number], known[1 - number]
    for trait, op in found:
      if any(trait.is_like(other) for other, _ in others):
        continue
      held = next(
        (
          one
          for one in tested[1 - number]
          if trait.is_held_against(one[0])
          and (trait.sort != _NUMBER or family(one[1].op_type) == family(op.op_type))
          and _lines(one[0], others) > _lines(one[0], own)
        ),
        None,
      )
      is_alone = held is not None or trait.sort == _KIND
      if is_alone and not _is_spelled_differently(tried, number, sides[number].graph, op):
        key = frozenset((trait.text, '' if held is None else held[0].text))
        said.setdefault(key, _said(number, (trait, op), held))
  return list(said.values())[:_MOST]


def _is_of_gradient(trait: _Trait, op: OpRecord) -> bool:
  """Returns whether differentiation alone made a comparison: no user has written it."""
  if trait.sort != _COMPARED or not is_of_gradient(op.name):
    return False
  return op.source is None or not _WRITTEN_COMPARISON.search(op.source.code)


def _is_spelled_differently(tried: TriedBounds, side: int, graph: OpGraph, op: OpRecord) -> bool:
  """Returns whether the other side rounds negative numbers down as well, as `x % 1` does.

  Or whether it makes the same of other random numbers: `floor(keep + uniform)` is a comparison.
  """
  if op.op_type != 'Floor':
    return False
  producer, number = op.inputs[0]
  read = graph.ops[producer].tensors[number]
  drawn = drawn_tensors(graph)

  def is_idle(run: GraphRun, given: Mapping[str, np.ndarray]) -> bool:
    found = run.refetched([read], given)
    if not drawn.isdisjoint(given):  # what it rounds down to has to be another number
      own = run.refetched([read], {})
      return not found or not own or np.array_equal(np.floor(found[0]), np.floor(own[0]))
    return found is None or not bool(np.any((found[0] < 0) & (found[0] != np.trunc(found[0]))))

  position = graph.ops.index(op)
  if tried.is_the_same_for_all_draws(side, position):
    return True
  return tried.is_on_both_sides(side, position, is_idle)


def _lines(trait: _Trait, known: Sequence[_Found]) -> int:
  """Returns in how many lines something is like it: a loop in Python makes it in each round."""
  return len({op.source or op.name for other, op in known if other.is_like(trait)})


def _said(number: int, found: _Found, held: _Found | None) -> str:
  trait, op = found
  where = 'an unknown line' if op.source is None else str(op.source)
  lacks = f'{_SIDES[1 - number]} does not have it'
  if held is not None:
    other, at = held
    place = '' if at.source is None else f' at {at.source}'
    lacks = f'{_SIDES[1 - number]} has {other.text}{place}'
  return (
    f'{_SIDES[number]} has {trait.sort} {trait.text} at {where}, {lacks}, and not all operations '
    'are proven: make the port the same as tf1, or give inputs for which it matters'
  )


def _all_traits(graph: OpGraph) -> Iterator[_Found]:
  """Yields what a graph has, with the functions of its loops and branches."""
  yield from _traits(graph, range(len(graph.ops)))
  for op in graph.ops:
    epsilon = dict(op.attributes).get('epsilon')
    if isinstance(epsilon, float) and epsilon:  # of a fused normalization
      yield _Trait(_NUMBER, _group(epsilon), abs(epsilon), number_text(epsilon)), op
      yield _epsilon(epsilon, _UNDER), op
    for _, function in op.functions:
      yield from _all_traits(function)


def _epsilon(number: float, place: str) -> _Trait:
  """Returns what tells `sqrt(x + epsilon)` from `sqrt(x) + epsilon`."""
  return _Trait(_EPSILON, 'root', abs(number), f'{number_text(number)} {place}')


def _place_by_a_root(graph: OpGraph, readers: Sequence[int], op: OpRecord) -> str:
  """Returns where a number is added to another one, if that is a root or a root is taken of it."""
  if any(_is_root(graph, graph.ops[n]) for n in readers):
    return _UNDER
  return _BESIDE if any(_is_root(graph, graph.ops[n]) for n, _ in op.inputs) else ''


def _is_root(graph: OpGraph, op: OpRecord) -> bool:
  if op.op_type != 'Pow':
    return op.op_type in ('Sqrt', 'Rsqrt')
  power = constant_or_number(graph, op.inputs[1][0])
  return power is not None and power.size == 1 and abs(float(power.reshape(()))) == 0.5


def _traits(graph: OpGraph, positions: Sequence[int]) -> Iterator[_Found]:
  consumers = graph.consumers()
  for position in positions:
    op = graph.ops[position]
    if op.op_type in _KINDS and (op.source is None or _WRITTEN.search(op.source.code)):
      kind, group = _KINDS[op.op_type]
      yield _Trait(_KIND, group, 0.0, kind), op
    if op.op_type in _ARITHMETIC or op.op_type in _STRICT:
      for place, (producer, _) in enumerate(op.inputs):
        value = constant_or_number(graph, producer)
        trait = None if value is None else _of_number(op, place, value)
        if trait is not None:
          yield trait, op
        if trait is not None and trait.group == 'tiny' and family(op.op_type) == 'AddV2':
          by_root = _place_by_a_root(graph, [n for n, _ in consumers[position]], op)
          yield from [(_epsilon(trait.number, by_root), op)] if by_root else []


def _of_number(op: OpRecord, place: int, value: np.ndarray) -> _Trait | None:
  """Returns what a number that an operation reads says; None for an ordinary one."""
  if value.size != 1 or value.dtype.kind != 'f' or not np.isfinite(value).all():
    return None
  number = float(value.reshape(()))
  if op.op_type in _STRICT:
    kind = op.op_type if place else _MIRRORED[op.op_type]
    return _Trait(_COMPARED, _STRICT[kind], number, f'{_SHOWN[kind]} {number_text(number)}')
  group = _group(number)
  return _Trait(_NUMBER, group, abs(number), number_text(number)) if group else None


def _group(number: float) -> str:
  if 0.0 < abs(number) <= _TINY:
    return 'tiny'
  return 'huge' if abs(number) >= _HUGE else ''
