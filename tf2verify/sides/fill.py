"""Fixed values for every variable, so that nothing is random."""

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from tf2verify.reference.perturbation import Mover

VERSION = 1
GUIDE_CONSTANT = 0.001
# Of its last place: 5e-4 of it. What is not linear in that is below 1e-6.
_MOST_UNITS = 2**12
_POSITIVE_WORDS = ('variance', 'moving_var', 'running_var', 'stddev', 'sigma')


class Fill(Protocol):
  """Gives a variable its value.

  Attributes:
    description: for reports.
  """

  @property
  def description(self) -> str: ...

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value for the variable of this tf1 name; None to keep its initial value."""


def _fan_in(name: str, shape: tuple[int, ...]) -> int:
  if 'embedding' in name.lower():
    return shape[-1]  # one row is looked up, no sum over the rows
  if 'depthwise' in name.lower():
    return math.prod(shape[:-2])
  return math.prod(shape[:-1])


def distinct_values(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
  """Returns values that differ from variable to variable and from element to element.

  One constant for all (the guide's 0.001) hides transposed kernels, swapped
  variables, permuted gates and a changed order of channels.

  The magnitude is uniform in [0.5, 1.5): with random signs for a weight, scaled
  by 1 / sqrt(fan-in) where the rank is 2 or more, so that activations neither
  vanish nor explode; positive where the name says that a variance is meant.
  The draws come from numpy's frozen `RandomState`, seeded by the SHA-256 of the
  name, so that they are the same in every version.

  Args:
    name: the variable's tf1 name.
    shape: its shape.
    dtype: its dtype.

  Returns:
    The values; None for a dtype that is not floating or complex, whose
    initial value (a step, an index table) has a meaning.
  """
  if not (np.issubdtype(dtype, np.inexact) or dtype.name in ('bfloat16', 'float16')):
    return None
  digest = hashlib.sha256(f'{VERSION}:{name}'.encode()).digest()
  generator = np.random.RandomState(np.frombuffer(digest, dtype='<u4'))
  words = generator.randint(0, 2**32, size=math.prod(shape), dtype=np.uint32)
  positive = any(word in name.lower() for word in _POSITIVE_WORDS)
  # A word's lower 23 bits become the fraction of a float32 in [1, 2), its highest
  # bit the sign: no rounding, and no float64 copy of a large variable.
  fractions = (words & np.uint32(0x007FFFFF)) | np.uint32(0x3F800000)
  values: np.ndarray = fractions.view(np.float32)
  values -= np.float32(0.5)
  if not positive:
    fractions |= words & np.uint32(0x80000000)
    if len(shape) >= 2 and values.size:
      values *= np.float32(1.0 / math.sqrt(_fan_in(name, shape)))
  filled: np.ndarray = values.astype(dtype, copy=False).reshape(shape)
  return filled


class DistinctFill:
  """`distinct_values` for every variable."""

  description = 'distinct values'

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns `distinct_values`."""
    return distinct_values(name, shape, dtype)


class RecordedFill:
  """Values that variables had in a run."""

  def __init__(self, description: str, values: Mapping[str, np.ndarray | None]) -> None:
    self.description = description
    self._values = values

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the recorded value."""
    return self._values.get(name)


class StartedFill:
  """The values of another fill, and for what it leaves out what tf1 draws to start with.

  Both sides keep their own initial value where neither gives one: a step, a table.
  """

  def __init__(self, fill: Fill, drawn_start: Callable[[str], np.ndarray | None]) -> None:
    """Takes a fill, and what gives the initial value of a variable that tf1 draws, by name."""
    self.description = fill.description
    self._fill = fill
    self._drawn_start = drawn_start

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value; None for one that is neither filled nor drawn."""
    value = self._fill(name, shape, dtype)
    return self._drawn_start(name) if value is None else value


class MovedFill:
  """The values of another fill, moved by rounding."""

  def __init__(self, fill: Fill, mover: Mover) -> None:
    self.description = fill.description
    self._fill = fill
    self._mover = mover

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the moved value."""
    value = self._fill(name, shape, dtype)
    return None if value is None else self._mover.variable(name, value)


class ConstantFill:
  """The guide's fill: every element of every floating variable is 0.001."""

  description = f"the guide's constant {GUIDE_CONSTANT}"

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the constant array."""
    if not (np.issubdtype(dtype, np.inexact) or dtype.name in ('bfloat16', 'float16')):
      return None
    return np.full(shape, GUIDE_CONSTANT, dtype)


class DitheredFill:
  """The constant fill with every element a little off, so that roundings do not line up.

  A sum of n equal terms rounds the same way at every step, and n moves of the last bit leave
  that as it is: beside a sum of n times the term they are as small as 1/n of its own last
  bit. Up to n/2 units either way are up to half of it, which is what makes roundings
  independent (L. Schuchman, Dither signals and their effect on quantization noise, 1964).
  """

  description = f'about {GUIDE_CONSTANT}'

  def __init__(self, number: int, sign: int) -> None:
    """Takes which offsets to use.

    Args:
      number: another number is another set of offsets.
      sign: 1, or -1 for the same offsets the other way.
    """
    self._number = number
    self._sign = sign

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the values; the constant itself where the dtype is none of 32 or 64 bits."""
    constant = ConstantFill()(name, shape, dtype)
    if constant is None or dtype.name not in ('float32', 'float64') or not constant.size:
      return constant
    digest = hashlib.sha256(f'dither {self._number}:{name}'.encode()).digest()
    generator = np.random.RandomState(np.frombuffer(digest, dtype='<u4'))
    # The longest sum over it: all axes but the shorter one of the last two.
    terms = constant.size // min(shape[-2:]) if len(shape) > 1 else 1
    most = min(max(1, terms // 2), _MOST_UNITS)
    units = generator.randint(-most, most + 1, size=shape)
    unit = np.spacing(np.asarray(GUIDE_CONSTANT, dtype))
    moved: np.ndarray = (constant + self._sign * units * unit).astype(dtype)
    return moved
