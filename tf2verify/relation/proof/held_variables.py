"""Variables of a port that hold the elements of those of tf1 in another layout."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.relation.layouts.axis_patterns import Block
from tf2verify.relation.layouts.map_entry import MapEntry
from tf2verify.relation.proof.normal_forms.pieces import concatenated, whole
from tf2verify.relation.proof.normal_forms.polynomials import total
from tf2verify.relation.proof.normal_forms.shapes import reshape
from tf2verify.relation.proof.normal_forms.terms import Shape, Terms, size_of
from tf2verify.relation.proof.rules.parts import part_of, turned

# Dtype and shape.
Kind = tuple[str, tuple[int | None, ...]]


@dataclasses.dataclass(frozen=True)
class Held:
  """One of the port's variables that hold the elements of some of tf1's."""

  tf1: tuple[str, ...]  # names
  tf2_shape: tuple[int, ...]  # its own shape
  place: int = 0  # of the port's variables of the entry, which one it is
  # With all sizes; None where one variable has the elements of one in the same order.
  entry: MapEntry | None = None
  # Whether it has the numbers added that the entry adds: a slot of such a variable has not.
  with_constants: bool = True

  def term(
    self, terms: Terms, read: Callable[[str], int], dtypes: Sequence[str], dtype: str
  ) -> int | None:
    """Returns what the port's variable holds; None where the proof does not know it.

    Args:
      terms: all terms.
      read: returns the term of a variable of tf1, by name.
      dtypes: of tf1's variables.
      dtype: of the port's.
    """
    numbers = [read(name) for name in self.tf1]
    if any(one != dtype for one in dtypes) or any(terms.shape(n) is None for n in numbers):
      return None
    if self.entry is None or self.entry.patterns is None:
      (number,) = numbers
      is_whole = size_of(terms.shape(number) or ()) == size_of(self.tf2_shape)
      return reshape(terms, number, self.tf2_shape) if is_whole else None
    found = _moved(terms, self.entry, numbers, 0, 1 if self.with_constants else 0)[self.place]
    return found if terms.shape(found) == self.tf2_shape else None

  def as_tf1(self, terms: Terms, number: int, tf1_shape: Shape, constants: bool) -> int | None:
    """Returns a term of the port's in the layout of tf1, of a pair of one variable and one.

    Args:
      terms: all terms.
      number: what the variable holds, or something for each of its elements.
      tf1_shape: of tf1's variable.
      constants: whether it has the numbers added that the variable has.
    """
    if len(self.tf1) > 1 or terms.shape(number) != self.tf2_shape:
      return None
    if self.entry is None or self.entry.patterns is None:
      is_whole = size_of(tf1_shape) == size_of(self.tf2_shape)
      return reshape(terms, number, tf1_shape) if is_whole else None
    if len(self.entry.tf2) > 1:
      return None
    sign = -1 if constants and self.with_constants else 0
    return _moved(terms, self.entry, [number], 1, sign)[0]


@dataclasses.dataclass(frozen=True, eq=False)
class PairedVariables(Mapping[str, Kind]):
  """The variables that both sides have, and how the port holds those that it holds differently."""

  known: Mapping[str, Kind]  # in tf1, by tf1 name
  held: Mapping[str, Held]  # by the name that the port's graph has for it

  def __getitem__(self, name: str) -> Kind:
    return self.known[name]

  def __iter__(self) -> Iterator[str]:
    return iter(self.known)

  def __len__(self) -> int:
    return len(self.known)


class _TermArray:
  """A term with what a layout asks of an array."""

  def __init__(self, terms: Terms, number: int) -> None:
    self.terms, self.number = terms, number

  @property
  def shape(self) -> Shape:
    """The shape."""
    shape = self.terms.shape(self.number)
    assert shape is not None
    return shape

  def reshape(self, shape: Sequence[int]) -> '_TermArray':
    """Returns it in another shape."""
    return _TermArray(self.terms, reshape(self.terms, self.number, tuple(shape)))

  def transpose(self, perm: Sequence[int]) -> '_TermArray':
    """Returns it with its axes in another order."""
    return _TermArray(self.terms, turned(self.terms, self.number, perm))

  def __getitem__(self, index: Sequence[slice]) -> '_TermArray':
    cuts = list(whole(self.shape))
    for axis, one in enumerate(index):
      start, stop, _ = one.indices(self.shape[axis])
      cuts[axis] = (start, stop - start, 1)
    return _TermArray(self.terms, part_of(self.terms, self.number, tuple(cuts)))

  def plus(self, constant: float) -> '_TermArray':
    """Returns it with a constant added to all elements."""
    dtype = self.terms.dtype(self.number)
    shift = self.terms.constant(np.asarray(constant, dtype), dtype)
    parts = ((self.number, 1), (shift, 1))
    return _TermArray(self.terms, total(self.terms, parts, dtype, self.shape))


def _concatenated(parts: Sequence[_TermArray], axis: int) -> _TermArray:
  terms = parts[0].terms
  return _TermArray(terms, concatenated(terms, [part.number for part in parts], axis))


def _moved(
  terms: Terms, entry: MapEntry, numbers: Sequence[int], side: int, sign: int
) -> list[int]:
  """Returns the terms of the other side's variables; as `MapEntry.to_tf2` and `to_tf1` do."""
  assert entry.patterns is not None
  sizes = dict(entry.sizes)
  parts: dict[Block, Any] = {}
  for pattern, number in zip(entry.patterns[side], numbers, strict=True):
    parts.update(pattern.divide(_TermArray(terms, number), sizes))
  for block, part in list(parts.items()):
    shift = sum(amount for axis, amount in entry.added if axis in block)
    if shift and sign:
      parts[block] = part.plus(sign * shift)
  others = entry.patterns[1 - side]
  return [pattern.join(parts, sizes, _concatenated).number for pattern in others]
