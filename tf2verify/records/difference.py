"""Two things compared, and how they differ."""

import dataclasses
import enum
from typing import Any


class Aspect(enum.Enum):
  """What differs, in the order in which it is looked at."""

  CREATION = 'creation'
  PRESENCE = 'presence'
  STRUCTURE = 'structure'
  SHAPE = 'shape'
  DTYPE = 'dtype'
  TRAINABLE = 'trainable'
  ORDER = 'order'
  NON_FINITE = 'non-finite pattern'
  VALUES = 'values'


@dataclasses.dataclass(frozen=True)
class ArrayDifference:
  """Where two arrays of one shape and dtype differ.

  Attributes:
    shape: of both arrays.
    dtype: of both arrays, numpy's name.
    mismatched: number of elements beyond the allowance.
    size: number of elements.
    index: the worst element.
    tf1: its value on the tf1 side, a Python scalar.
    tf2: its value on the tf2 side.
    greatest_absolute: |tf2 - tf1| there; NaN where it cannot be formed.
    greatest_relative: greatest |tf2 - tf1| / |tf1| of all mismatched elements;
      infinite where tf1 is 0.
    rtol: relative allowance.
    atol: absolute allowance.
  """

  shape: tuple[int, ...]
  dtype: str
  mismatched: int
  size: int
  index: tuple[int, ...]
  tf1: Any
  tf2: Any
  greatest_absolute: float
  greatest_relative: float
  rtol: float
  atol: float


@dataclasses.dataclass(frozen=True)
class Difference:
  """One finding of a stage.

  Attributes:
    quantity: what was compared: `output`, `gradient`, `initial value`, ...
    subject: whose: a variable name, or the path of an output.
    aspect: what about it differs.
    tf1: the tf1 side, as text (empty where `array` says it).
    tf2: the tf2 side, as text.
    run: which run, where a stage has several: `training, constant`.
    array: the numbers, for NON_FINITE and VALUES.
    hint: the likely slip and its fix, where it is known.
  """

  quantity: str
  subject: str
  aspect: Aspect
  tf1: str = ''
  tf2: str = ''
  run: str = ''
  array: ArrayDifference | None = None
  hint: str = ''
