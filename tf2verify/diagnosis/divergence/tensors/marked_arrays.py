"""Arrays among which others are looked for, in whatever shape or order these have the elements."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf2verify.numerics.relayout import alike_as_held, are_reordered
from tf2verify.numerics.signatures import may_be_alike, signature


@dataclasses.dataclass(frozen=True, eq=False)
class Marked:
  """An array with what tells it from most others at once."""

  array: np.ndarray
  kind: tuple[int, str]
  signature: np.ndarray

  @classmethod
  def of(cls, array: np.ndarray) -> 'Marked':
    return cls(array, (array.size, array.dtype.name), signature(array))

  def is_same(self, other: 'Marked') -> bool:
    """Returns whether another one has the same elements, in whatever shape or order."""
    return alike_as_held(self.array, other.array) or are_reordered(
      self.array.ravel(), other.array.ravel()
    )


class Quantities:
  """Arrays among which others are looked for; all signatures of a size are compared at once."""

  def __init__(self, known: Sequence[Marked]) -> None:
    self._known: dict[tuple[int, str], list[Marked]] = {}
    for one in known:
      self._known.setdefault(one.kind, []).append(one)
    self._signatures = {
      kind: np.stack([one.signature for one in alike]) for kind, alike in self._known.items()
    }

  def have(self, one: Marked) -> bool:
    """Returns whether one of them has the same elements, in whatever shape or order."""
    if one.kind not in self._known:
      return False
    near = may_be_alike(one.signature, self._signatures[one.kind])
    return any(one.is_same(self._known[one.kind][n]) for n in np.flatnonzero(near))
