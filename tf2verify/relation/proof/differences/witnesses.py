"""Short computations of both graphs, and a value that tells them apart.

Two sides may round, convert or guard a value in operations that have nothing in common. Whether
that is another spelling or another function, numbers tell: both are computed here, for numbers at
which such things differ. A pair without a number that tells it apart is not taken for a difference.
"""

import dataclasses
import itertools
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from tf2verify.records.op_graph import OpRecord, TensorKey
from tf2verify.relation.proof.differences.cones import Cone, alike
from tf2verify.relation.proof.differences.pairs import COMPARED, Unlike, text_of
from tf2verify.relation.proof.normal_forms.folding import computed
from tf2verify.relation.proof.normal_forms.operation import Operation
from tf2verify.relation.proof.normal_forms.ranges import range_of
from tf2verify.relation.proof.normal_forms.shapes import source
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms
from tf2verify.relation.proof.proving import Proof

# Of each trial, what numbers are multiplied by: small ones tell epsilons. In the last trial some
# values are equal, which strict comparisons tell.
_SCALES = (1.0, 1.0, 1.0, 1e-6, 0.0, 1e3, 1.0)
# Of single numbers, a trial is one of them.
_FEW = 8
_TRIALS_OF_FEW = 40
_TIES = (0.5, 3.0)
_LARGEST = 2**18
# Halves and signs tell roundings apart, 0 divisions, great and small numbers bounds and epsilons.
_FLOATS = (
  *(0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.5, -2.5, 0.3, -0.3, 3.0, -7.0, 10.0, -10.0, 100.0),
  *(-100.0, 1e4, -1e4, 1e-4, -1e-4, 1e-8),
)
_INTEGERS = (0, 1, -1, 2, -2, 3, -3, 5, 7, -7, 16, -17, 100, -100, 255, 256, 1000)
_APART = 1e-3
# Relative: what is computed by one function in two ways, from constants of 32 bits.
_EQUAL = 1e-6
_MOST_COMPARED = 64


@dataclasses.dataclass(frozen=True)
class Same:
  """Two computations of the same values, in different words.

  Attributes:
    tf1: position of the last operation of the reference.
    tf2: of the port.
    of_tf1: positions of all of it.
    of_tf2: likewise, of the port.
  """

  tf1: int
  tf2: int
  of_tf1: frozenset[int]
  of_tf2: frozenset[int]


# What two cones yield, by their operations.
Known = dict[Hashable, tuple[str, str] | None]


def told_apart(proof: Proof, known: Known) -> Iterator[Unlike]:
  """Yields operations of both graphs that yield something else for the same values.

  Args:
    proof: what is proven of the graphs.
    known: what was computed before, for the same graphs.
  """
  for cone, other in alike(proof):
    key = cone.positions, other.positions
    if key not in known:
      known[key] = _witness(proof, cone, other)
    values = known[key]
    if values is not None:
      yield Unlike(cone.last, other.last, 'operation', values)


def same_function(
  proof: Proof, known: dict[Hashable, bool], from_afar: bool = False
) -> Iterator[Same]:
  """Yields computations of tf1 and of the port whose results no value tells apart.

  That proves nothing, but what such a computation has and the other has not is no difference: it
  is another spelling of one function.

  Args:
    proof: what is proven of the graphs.
    known: what was found before, for the same graphs.
    from_afar: whether they begin as far back as numbers can be computed, so that what they are
      computed from is in step: both branches of a condition, and what that compares.
  """
  paired: set[int] = set()
  both = alike(proof, from_afar)
  new = ((a, b) for a, b in both if a.last not in paired and b.last not in paired)
  for cone, other in itertools.islice(new, _MOST_COMPARED):
    key = cone.positions, other.positions
    if key not in known:
      met: set[OpRecord] = set()
      pairs = [(first, second) for _, first, second in _results(proof, cone, other, met)]
      known[key] = (
        _vary([first for first, _ in pairs])
        and all(_are_same(*both) for both in pairs)
        and (not from_afar or _compared(cone) | _compared(other) <= met)
      )
    if known[key]:
      paired |= {cone.last, other.last}
      yield Same(cone.last, other.last, frozenset(cone.positions), frozenset(other.positions))


def _compared(cone: Cone) -> set[OpRecord]:
  """Returns the comparisons of a cone, which differ where their operands are equal."""
  ops = (cone.side.graph.ops[position] for position in cone.positions)
  return {op for op in ops if op.op_type in COMPARED}


def _vary(results: Sequence[np.ndarray]) -> bool:
  """Returns whether results say something: most numbers are finite, and not all the same."""
  if not results:
    return False
  numbers = np.concatenate([np.ravel(one).astype('float64') for one in results])
  seen = numbers[np.isfinite(numbers)]
  return 2 * seen.size >= numbers.size and bool(seen.size) and np.ptp(seen) != 0


def _are_same(one: np.ndarray, other: np.ndarray) -> bool:
  """Returns whether two results are equal, where the first one is finite."""
  first, second = one.astype('float64'), other.astype('float64')
  if first.shape != second.shape:
    return False
  seen = np.isfinite(first)
  size = float(np.abs(first[seen]).max(initial=0.0))
  return bool(np.allclose(first[seen], second[seen], rtol=_EQUAL, atol=1e-9 * min(size, 1.0)))


def _witness(proof: Proof, one: Cone, other: Cone) -> tuple[str, str] | None:
  """Returns what two cones compute, each with a value that tells them apart."""
  for given, first, second in _results(proof, one, other):
    found = _first_apart(first, second)
    if found is not None:
      at = ' and '.join(_element(given[n], first.shape, found) for n in sorted(given))
      texts = [
        f'{_spelled(proof, cone)} (which gives {text_of(result[found].item())} for {at})'
        for cone, result in ((one, first), (other, second))
      ]
      return texts[0], texts[1]
  return None


def _results(
  proof: Proof, one: Cone, other: Cone, met: set[OpRecord] | None = None
) -> Iterator[tuple[dict[int, np.ndarray], np.ndarray, np.ndarray]]:
  """Yields what two cones are given, by term, and what they yield; nothing if not computable.

  Args:
    proof: what is proven of the graphs.
    one: a cone of tf1.
    other: one of the port.
    met: as for `_evaluated`.
  """
  shapes: dict[int, Shape] = {}
  for number in one.given:
    shape, term = proof.terms.shape(number), proof.terms[number]
    if shape is None or not term.dtype.startswith(('float', 'int', 'bool')) or term.kind == 'draw':
      return
    shapes[number] = shape
  if any(np.prod(shape, initial=1) > _LARGEST for shape in shapes.values()):
    return
  limits = [*_limits(proof, one), *_limits(proof, other)]
  is_few = all(np.prod(shape, initial=1) <= _FEW for shape in shapes.values())
  trials = _TRIALS_OF_FEW if is_few else len(_SCALES)
  for trial in range(trials):
    given = {
      number: _points(proof.terms, number, limits, (trial, place), trial == trials - 1)
      for place, number in enumerate(sorted(shapes))
    }
    with np.errstate(all='ignore'):
      ties = met if _scale(trial) == 1 else None  # of tiny numbers much else is equal as well
      first, second = (_evaluated(proof, cone, given, ties) for cone in (one, other))
    if first is None or second is None:
      return
    yield given, first, second


def _limits(proof: Proof, cone: Cone) -> list[float]:
  """Returns the numbers that a cone compares with, adds or multiplies by."""
  found = []
  for position in cone.positions:
    for key in cone.side.graph.ops[position].inputs:
      single = proof.terms.single(cone.side.values[key])
      if single is not None:
        found.append(float(single))
  return found


def _scale(trial: int) -> float:
  return _SCALES[trial] if trial < len(_SCALES) else 1.0


def _points(
  terms: Terms, number: int, limits: Sequence[float], seed: tuple[int, int], has_ties: bool
) -> np.ndarray:
  dtype, shape = terms.dtype(number), terms.shape(number) or ()
  source = np.random.RandomState(seed[0] * 100 + seed[1])
  if dtype == 'bool':
    return source.randint(0, 2, shape).astype(bool)
  near = [limit + step for limit in limits for step in (-1.0, 0.0, 1.0)]
  points = np.array([*near, *(_FLOATS if 'float' in dtype else _INTEGERS)])
  points = source.permutation(points[np.isfinite(points)])
  values = np.resize(points, shape)
  if 'float' in dtype:
    values = values * _scale(seed[0])
  if has_ties:
    flat = values.reshape(-1)
    flat[1::2] = source.choice(_TIES, flat[1::2].shape)
  low, high = range_of(terms, number, counts=True)
  if low >= 0:
    values = np.abs(values)
  values = np.clip(values, low, high)
  if 'float' in dtype and _is_whole(terms, number):
    values = np.round(values)
  return values.astype('float64' if 'float' in dtype else dtype)


def _is_whole(terms: Terms, number: int) -> bool:
  """Returns whether the elements of a term were integers before they were cast."""
  inner = terms[source(terms, number)]
  return inner.kind == 'Cast' and terms.dtype(inner.inputs[0]).startswith(('int', 'uint'))


def _evaluated(
  proof: Proof, cone: Cone, given: Mapping[int, np.ndarray], met: set[OpRecord] | None = None
) -> np.ndarray | None:
  """Returns what a cone yields; floating-point numbers are computed without 32 bits' rounding.

  Args:
    proof: what is proven of the graphs.
    cone: what to compute.
    given: what it is computed from, by term.
    met: gets the comparisons of which two elements are equal; of computed ones other than 0, where
      much else is equal as well.
  """
  known: dict[TensorKey, np.ndarray] = {}
  for position in cone.positions:
    op = cone.side.graph.ops[position]
    read = []
    for key in op.inputs:
      number = cone.side.values[key]
      value = known.get(key, given.get(number, proof.terms.value(number)))
      if value is None or value.dtype.kind not in 'fiub':
        return None
      read.append(value.astype('float64') if value.dtype.kind == 'f' else value)
    found = _computed(proof, op, read)
    if found is None:
      return None
    if met is not None and op.op_type in COMPARED:
      limits = [proof.terms.value(cone.side.values[key]) is not None for key in op.inputs]
      if np.any((read[0] == read[1]) & ((read[0] != 0) | any(limits))):
        met.add(op)
    known[position, 0] = found
  return known[cone.last, 0]


def _computed(proof: Proof, op: OpRecord, read: Sequence[np.ndarray]) -> np.ndarray | None:
  dtype = op.outputs[0][0]
  attributes = dict(op.attributes)
  try:
    found = computed(Operation(proof.terms, op.op_type, (), attributes, op.outputs), read)
  except (ValueError, TypeError, IndexError):
    return None
  if found is None or not dtype.startswith(('float', 'int', 'uint', 'bool')):
    return None
  return np.asarray(found, 'float64' if 'float' in dtype else dtype)


def _first_apart(one: np.ndarray, other: np.ndarray) -> tuple[int, ...] | None:
  if one.shape != other.shape:
    return None
  first, second = one.astype('float64'), other.astype('float64')
  seen = np.isfinite(first)  # where tf1 yields what is not finite, nothing is told
  with np.errstate(all='ignore'):
    near = np.abs(first - second) <= _APART * np.maximum(np.abs(first), np.abs(second)) + 1e-9
  apart = np.argwhere(seen & ~near)
  return tuple(int(n) for n in apart[0]) if len(apart) else None


def _element(value: np.ndarray, shape: tuple[int, ...], place: tuple[int, ...]) -> str:
  """Returns what one element of a result is computed from, where that is one element."""
  try:
    return text_of(np.broadcast_to(value, shape)[place].item())
  except ValueError:
    return f'{len(value)} values' if value.ndim else text_of(value.item())


def _spelled(proof: Proof, cone: Cone) -> str:
  parts = []
  for position in cone.positions:
    op = cone.side.graph.ops[position]
    values = [proof.terms.value(cone.side.values[key]) for key in op.inputs]
    texts = [text_of(value) for value in values if value is not None]
    parts.append(f'{op.op_type} with {", ".join(texts)}' if texts else op.op_type)
  return ' → '.join(parts)
