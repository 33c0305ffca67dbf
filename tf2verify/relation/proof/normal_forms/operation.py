"""What a rule is given: one operation, with the terms of what it reads."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tf2verify.relation.proof.normal_forms.terms import Shape, Terms


@dataclasses.dataclass(frozen=True, eq=False)
class Operation:
  """One operation of either graph."""

  terms: Terms  # all terms
  op_type: str  # TensorFlow's
  inputs: Sequence[int]  # the terms that it reads
  attributes: Mapping[str, Any]  # plain values by name
  # Dtype and static shape of what it yields.
  outputs: Sequence[tuple[str, tuple[int | None, ...] | None]]

  @property
  def dtype(self) -> str:
    """The dtype of the first output."""
    return self.outputs[0][0]

  @property
  def shape(self) -> Shape | None:
    """The shape of the first output, where all of it is known."""
    found = self.outputs[0][1]
    if found is None or any(size is None for size in found):
      return None
    return tuple(size for size in found if size is not None)

  def number(self, value: float) -> int:
    """Returns the term of a number of the first output's dtype."""
    kind = np.dtype('float32' if self.dtype in ('bfloat16', 'float16') else self.dtype)
    return self.terms.constant(np.asarray(value, kind), self.dtype)

  def shapes(self) -> list[Shape] | None:
    """Returns the shapes of all inputs; None if one is not known."""
    found = [self.terms.shape(number) for number in self.inputs]
    known = [shape for shape in found if shape is not None]
    return known if len(known) == len(found) else None


# Returns the terms of all outputs; None where the rule's conditions do not hold.
Rule = Callable[[Operation], Sequence[int] | None]


def axes_of(values: Sequence[int] | None, rank: int) -> list[int] | None:
  """Returns axes counted from the front, in order; None where they are not known or too far."""
  if values is None or any(not -rank <= axis < rank for axis in values):
    return None
  return sorted({axis % rank for axis in values})
