"""Values of both graphs as terms, each of which exists once: equal numbers are equal values."""

import dataclasses
import hashlib
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]

CONSTANT = 'constant'
# Constants beyond this many elements are not computed with.
LARGEST_FOLDED = 65536


@dataclasses.dataclass(frozen=True, eq=False)
class Term:
  """One value.

  Attributes:
    kind: what it is: an operation in its canonical spelling, or where it comes from.
    inputs: the numbers of the terms that it is computed from.
    detail: what else tells it from others of its kind.
    dtype: numpy's name.
    shape: its static shape; None where that is not known.
    value: of a constant that is known.
    extra: what its rules keep of it, which is not part of what it is.
  """

  kind: str
  inputs: tuple[int, ...]
  detail: Any
  dtype: str
  shape: tuple[int | None, ...] | None
  value: np.ndarray | None = None
  extra: Any = None


class Terms:
  """The terms of both graphs."""

  def __init__(self) -> None:
    self._terms: list[Term] = []
    self._numbers: dict[Hashable, int] = {}

  def __getitem__(self, number: int) -> Term:
    return self._terms[number]

  def __len__(self) -> int:
    return len(self._terms)

  def add(
    self,
    kind: str,
    inputs: Sequence[int],
    detail: Hashable,
    dtype: str,
    shape: tuple[int | None, ...] | None,
    value: np.ndarray | None = None,
    extra: Any = None,
  ) -> int:
    """Returns the number of a term: the one that it has already, or a new one."""
    key = (kind, tuple(inputs), detail, dtype, shape)
    known = self._numbers.get(key)
    if known is None:
      known = self._numbers[key] = len(self._terms)
      self._terms.append(Term(kind, tuple(inputs), detail, dtype, shape, value, extra))
    return known

  def shape(self, number: int) -> Shape | None:
    """Returns a term's shape where all of it is known."""
    found = self._terms[number].shape
    if found is None:
      return None
    known = tuple(size for size in found if size is not None)
    return known if len(known) == len(found) else None

  def dtype(self, number: int) -> str:
    """Returns numpy's name of a term's dtype."""
    return self._terms[number].dtype

  def value(self, number: int) -> np.ndarray | None:
    """Returns the value of a constant; None of anything else."""
    return self._terms[number].value

  def constant(self, value: np.ndarray, dtype: str = '') -> int:
    """Returns the term of a constant.

    Args:
      value: the constant.
      dtype: its name, where numpy has none for it.
    """
    value = np.asarray(value)
    dtype = dtype or value.dtype.name
    if value.dtype.kind in 'OSU':
      detail: Hashable = repr(value.tolist())
    elif value.size and value.dtype.kind in 'fiub' and bool((value == value.flat[0]).all()):
      detail = ('all', value.flat[0].item())
      value = np.broadcast_to(value.flat[0], value.shape)
    elif value.size <= 8:
      detail = value.tobytes()
    else:
      detail = hashlib.sha256(np.ascontiguousarray(value).tobytes()).digest()
    return self.add(CONSTANT, (), detail, dtype, value.shape, value)

  def single(self, number: int) -> float | int | bool | None:
    """Returns the number that all elements of a constant are; None where there is none."""
    term = self._terms[number]
    if term.value is None or not isinstance(term.detail, tuple) or term.detail[0] != 'all':
      return None
    found: float | int | bool = term.detail[1]
    return found

  def integers(self, number: int) -> list[int] | None:
    """Returns the elements of a constant of integers."""
    value = self._terms[number].value
    if value is None or value.dtype.kind not in 'iu' or value.size > LARGEST_FOLDED:
      return None
    return [int(one) for one in np.reshape(value, -1)]


def size_of(shape: Shape) -> int:
  """Returns how many elements a shape has."""
  return math.prod(shape)
