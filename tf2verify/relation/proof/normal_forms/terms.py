"""Values of both graphs as terms, each of which exists once: equal numbers are equal values."""

import dataclasses
import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]

CONSTANT = 'constant'
# Constants beyond this many elements are not computed with.
LARGEST_FOLDED = 65536
# Relative: numbers of a dtype that are closer are one number.
_SAME = {'float64': 1e-14, 'float32': 2e-7}
_SAME_OF_FEW_DIGITS = 1e-4  # of bfloat16 and float16


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

  def __init__(self, taken_for: Mapping[int, int] | None = None) -> None:
    """Begins without any.

    Args:
      taken_for: of terms that are to be taken for others, to see what follows: these, by number.
        Numbers are those of a run that had none of it, or less: terms are made in the same order.
    """
    self._terms: list[Term] = []
    self._numbers: dict[Hashable, int] = {}
    self._coefficients: dict[tuple[str, int, int], float] = {}
    # Indices by which rows of a table are looked up, and how many rows it has: all are in it.
    self.looked_up: set[tuple[int, int]] = set()
    # Bounds of terms as `ranges` has found them, by what it was asked.
    self.ranges: dict[tuple[int, bool, int], tuple[float, float]] = {}
    self._taken_for = taken_for or {}

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
    return self._taken_for.get(known, known)

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

  def coefficient(self, number: float | int, dtype: str) -> float | int:
    """Returns the number that stands for all that are the same up to the rounding of a dtype.

    It is the first one that came within a unit in the last place, so that two ways to round
    1 / 48 are one number, wherever a digit ends.
    """
    if isinstance(number, int) or not number or not math.isfinite(number):
      return number
    allowed = _SAME.get(dtype, _SAME_OF_FEW_DIGITS)
    place = math.floor(math.log(abs(number)) / allowed)
    sign = 1 if number > 0 else -1
    for near in (place, place - 1, place + 1):
      known = self._coefficients.get((dtype, sign, near))
      if known is not None and math.isclose(known, number, rel_tol=allowed):
        return known
    return self._coefficients.setdefault((dtype, sign, place), number)


def size_of(shape: Shape) -> int:
  """Returns how many elements a shape has."""
  return math.prod(shape)
