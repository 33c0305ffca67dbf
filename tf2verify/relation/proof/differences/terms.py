"""Terms of both graphs that differ in a number: whatever operations they are spelled with.

Two operations that read the same are compared as they stand (`unlike.py`). Where the sides spell
something in two ways, a fused batch norm and its arithmetic, no two operations are alike, but
their terms are: the same kind, of the same terms, with another coefficient, constant or attribute.
"""

import bisect
import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Sequence

import numpy as np

from tf2verify.reference.graph_ops import reached
from tf2verify.relation.proof.differences.pairs import text_of
from tf2verify.relation.proof.normal_forms.polynomials import POLYNOMIAL
from tf2verify.relation.proof.normal_forms.terms import CONSTANT, Term, Terms
from tf2verify.relation.proof.proving import Proof, Side

# Of these, what differs is where elements lie or come from: another tensor, and no number.
_PLACES = frozenset(
  (
    *('input', 'variable', 'argument', 'draw', 'unknown', 'call', 'reshape', 'transpose'),
    *('slice', 'concatenation', 'gather', 'kept by batch norm', 'constant by digest', CONSTANT),
    *('OneHot',),
  )
)
# What the parts of a term's detail are, by its kind.
_PARTS = {
  **dict.fromkeys(('Conv2D', 'Conv3D'), ('strides', 'dilations', 'paddings', 'channel')),
  'DepthwiseConv2dNative': ('strides', 'dilations', 'paddings', 'channel'),
  **dict.fromkeys(('MaxPool', 'AvgPool'), ('ksize', 'strides', 'paddings', 'axes')),
  **dict.fromkeys(('MaxPool3D', 'AvgPool3D'), ('ksize', 'strides', 'paddings', 'axes')),
  **dict.fromkeys(('Cumsum', 'Cumprod'), ('axis', 'exclusive', 'reverse')),
  'pad': ('paddings', 'constant_values'),
}


@dataclasses.dataclass(frozen=True)
class UnlikeTerms:
  """Two terms of the same kind, computed from the same terms.

  Attributes:
    tf1: the reference's.
    tf2: the port's.
    places: positions of the operations that make them.
    what: `constant`, or the name of an attribute.
    values: of both.
  """

  tf1: int
  tf2: int
  places: tuple[int, int]
  what: str
  values: tuple[str, str]


def unlike_terms(proof: Proof) -> Iterator[UnlikeTerms]:
  """Yields terms of both graphs that differ in a number, the first of the port first."""
  terms = proof.terms
  begin = proof.tf1.made[-1] if proof.tf1.made else 0
  end = proof.tf2.made[-1] if proof.tf2.made else 0
  known: dict[Hashable, list[int]] = {}
  for number in range(begin):
    if _place(proof.tf1, number) in proof.tf1.tested and terms[number].kind not in _PLACES:
      known.setdefault(_signature(terms, terms[number]), []).append(number)
  both = _used(terms, proof.tf2.values.values())
  for number in range(begin, end):
    other = terms[number]
    if other.kind in _PLACES or any(one >= begin for one in other.inputs):
      continue
    position = _place(proof.tf2, number)
    if position not in proof.tf2.tested or number not in both:
      continue
    for one in known.get(_signature(terms, other), ()):
      found = None if one in both else _difference(terms, terms[one], other)
      if found is not None:
        yield UnlikeTerms(one, number, (_place(proof.tf1, one), position), *found)


def _place(side: Side, number: int) -> int:
  """Returns the position of the operation that makes a term first."""
  return bisect.bisect_right(side.made, number)


def _used(terms: Terms, numbers: Iterable[int]) -> set[int]:
  """Returns terms and all that they are computed from."""

  def read(number: int) -> list[int]:
    term = terms[number]
    return [*term.inputs, *(_results(term.detail) if term.kind == 'call' else ())]

  return set(reached(numbers, read))


def _results(detail: Sequence[object]) -> list[int]:
  """Returns the terms of what the functions of a loop or a condition compute."""
  found: list[int] = []
  for part in detail:
    if isinstance(part, tuple):
      found += [n for result in part if isinstance(result, tuple) for n in result]
  return found


def _signature(terms: Terms, term: Term) -> Hashable:
  if term.kind == POLYNOMIAL:
    read: Hashable = frozenset(monomial for monomial in term.extra if monomial)
  else:
    read = tuple(sorted(n for n in term.inputs if terms.value(n) is None))
  return term.kind, term.dtype, term.shape, len(term.inputs), read


def _difference(terms: Terms, one: Term, other: Term) -> tuple[str, tuple[str, str]] | None:
  if one.kind == POLYNOMIAL:
    return _coefficients(one, other)
  values = [[terms.value(n) for n in term.inputs] for term in (one, other)]
  constants = [[value for value in side if value is not None] for side in values]
  if one.detail != other.detail:
    return _details(one, other) if one.inputs == other.inputs else None
  told = [
    (text_of(a), text_of(b))
    for a, b in zip(*constants, strict=True)
    if not np.array_equal(a, b, equal_nan=a.dtype.kind == 'f')
  ]
  if not told or any(a.shape != b.shape for a, b in zip(*constants, strict=True)):
    return None
  return 'constant', _both(told)


def _coefficients(one: Term, other: Term) -> tuple[str, tuple[str, str]] | None:
  first, second = dict(one.detail), dict(other.detail)
  told = [
    (f'{first.get(m, 0):.6g}', f'{second.get(m, 0):.6g}')
    for m in sorted({*first, *second})
    if first.get(m, 0) != second.get(m, 0)
  ]
  return ('constant', _both(told)) if told else None


def _details(one: Term, other: Term) -> tuple[str, tuple[str, str]] | None:
  """Returns the parts of two details that differ, where it is known what they are."""
  names = _PARTS.get(one.kind)
  if names is None:
    return None
  for name, a, b in zip(names, one.detail, other.detail, strict=False):
    if a != b:
      return name, (str(a), str(b))
  return None


def _both(told: Sequence[tuple[str, str]]) -> tuple[str, str]:
  first, second = (', '.join(dict.fromkeys(side)) for side in zip(*told, strict=True))
  return first, second
