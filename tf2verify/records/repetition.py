"""One side, run again from the same start."""

import dataclasses

import numpy as np

from tf2verify.records.observation import SourceLine
from tf2verify.records.tensor_key import TensorKey

# Of the greatest element, in float32: a sum of many terms has some more than one unit.
_OF_ROUNDING = 1e-5


@dataclasses.dataclass(frozen=True)
class Variation:
  """A tensor that is not the same bit by bit in two runs."""

  key: TensorKey  # which one
  mismatched: int = 0  # number of elements with other bits
  size: int = 0  # number of elements
  # Of the elements; NaN where it cannot be formed (text, or a non-finite value in one run only).
  greatest_absolute: float = 0.0
  greatest_relative: float = 0.0  # of the elements, by the first run; likewise
  other: str = ''  # what differs instead of values: shape, dtype or presence; '' for values
  greatest: float = 0.0  # the greatest |element| of the first run

  def __str__(self) -> str:
    return str(self.key)

  @property
  def is_rounding(self) -> bool:
    """Whether it is so small beside the tensor as sums are rounded in another order."""
    is_small = self.greatest_absolute <= _OF_ROUNDING * self.greatest
    return not self.other and self.greatest > 0.0 and is_small

  @property
  def share(self) -> str:
    """How many elements vary, for reports: `3 of 12 (25.0 %)`."""
    if self.other:
      return self.other
    return (
      f'{self.mismatched:,} of {self.size:,} ({100 * self.mismatched / max(self.size, 1):.1f} %)'
    )


@dataclasses.dataclass(frozen=True, eq=False)
class RunOp:
  """An operation as it was run, in the order in which a side runs them."""

  op_type: str  # TensorFlow's
  name: str  # in a graph; '' for one that was run eagerly
  inputs: tuple[str, ...]  # digests of the values that it read
  outputs: tuple[np.ndarray, ...]  # the values that it gave
  source: SourceLine | None = None  # the user's line
  # Whether each input came from an operation before; one that did not is a value that Python gave,
  # or a variable.
  produced: tuple[bool, ...] = ()


@dataclasses.dataclass(frozen=True)
class FirstVariation:
  """The first operation whose inputs are the same bits in two runs, and outputs are not."""

  op_type: str  # TensorFlow's
  name: str  # in a graph; '' for one that was run eagerly
  source: SourceLine | None  # the user's line
  why: str  # what kind of operation it is, where that is known
  # How far its output varies; None where the runs have other operations here.
  variation: Variation | None

  def __str__(self) -> str:
    name = f' {self.name}' if self.name not in ('', self.op_type) else ''
    place = f' at {self.source}' if self.source is not None else ''
    said = f'{self.op_type}{name}{place}'
    if self.variation is not None and not self.variation.other:
      said += (
        f'; {self.variation.share} elements of what it gives differ, by up to '
        f'{self.variation.greatest_absolute:.3g} (relative {self.variation.greatest_relative:.3g})'
      )
    elif self.variation is not None:
      said += f'; {self.variation.other}'
    return f'{said}; {self.why}' if self.why else said
