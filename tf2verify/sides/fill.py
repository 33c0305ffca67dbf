"""Fixed values for every variable, so that nothing is random."""

import hashlib
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import numpy as np

from tf2verify.reference.fill_values import (
  CONSTANT_VALUES,
  DISTINCT_VALUES,
  GUIDE_CONSTANT,
  constant_values,
  distinct_values,
  is_bound,
)
from tf2verify.reference.perturbation import Perturber

# Of its last place: 5e-4 of it. What is not linear in that is below 1e-6.
_MOST_UNITS = 2**12


class Fill(Protocol):
  """Gives a variable its value.

  Attributes:
    description: for reports.
  """

  @property
  def description(self) -> str: ...

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value for the variable of this tf1 name; None to keep its initial value."""


class DistinctFill:
  """`distinct_values` for every variable."""

  description = DISTINCT_VALUES

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

  Attributes:
    description: of the other fill.
    is_constant: whether that is the guide's constant.
    given: the other fill.
  """

  def __init__(
    self,
    fill: Fill,
    drawn_start: Callable[[str], np.ndarray | None],
    kept: Collection[str] = (),
  ) -> None:
    """Takes what gives values.

    Args:
      fill: the other fill.
      drawn_start: gives the initial value of a variable that tf1 draws, by name.
      kept: variables that keep their initial values.
    """
    self.description = fill.description
    self.is_constant = isinstance(fill, ConstantFill)
    self.given = fill
    self._drawn_start = drawn_start
    self._kept = kept

  def over(self, fill: Fill) -> 'StartedFill':
    """Returns the same over another fill."""
    return StartedFill(fill, self._drawn_start, self._kept)

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the value; None for one that is neither filled nor drawn."""
    if name in self._kept:
      return None
    value = self.given(name, shape, dtype)
    return self._drawn_start(name) if value is None else value


class PerturbedFill:
  """The values of another fill, perturbed by rounding."""

  def __init__(self, fill: Fill, perturber: Perturber) -> None:
    self.description = fill.description
    self._fill = fill
    self._perturber = perturber

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the perturbed value."""
    value = self._fill(name, shape, dtype)
    return None if value is None else self._perturber.variable(name, value)


class ScaledFill:
  """The values of another fill, multiplied."""

  def __init__(self, fill: Fill, factor: float) -> None:
    """Takes the fill and the factor of what is floating."""
    self.description = f'{fill.description}, times {factor:g}'
    self._fill = fill
    self._factor = factor

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the values, of the same dtype."""
    value = self._fill(name, shape, dtype)
    if value is None or value.dtype.kind != 'f':
      return value
    scaled: np.ndarray = (value * self._factor).astype(value.dtype)
    return scaled


class MilderFill:
  """Smaller values where another fill gives distinct ones, with which TF1 overflows.

  What a case gives instead of these stays, and so do bounds of ranges.
  """

  def __init__(self, fill: Fill, factor: float) -> None:
    """Takes the fill, and the factor of its distinct values."""
    self.description = f'{fill.description}, times {factor:g}'
    self._fill = fill
    self._scaled = ScaledFill(fill, factor)

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the values, of the same dtype."""
    value = self._fill(name, shape, dtype)
    if is_bound(name, shape) or _is_given(value, name, shape, dtype):
      return value
    return self._scaled(name, shape, dtype)


class OtherFill:
  """Other and greater values where another fill gives distinct ones.

  What a case gives instead of these stays, and so do bounds of ranges.
  """

  def __init__(self, fill: Fill, draw: int, factor: float) -> None:
    """Takes the fill, which draw of further distinct values to give, and their factor."""
    self.description = f'{fill.description}, others times {factor:g}'
    self._fill = fill
    self._draw = draw
    self._scaled = ScaledFill(DistinctFill(), factor)

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the values, of the same dtype."""
    value = self._fill(name, shape, dtype)
    if is_bound(name, shape) or _is_given(value, name, shape, dtype):
      return value
    return self._scaled(f'draw {self._draw} of {name}', shape, dtype)


def _is_given(value: np.ndarray | None, name: str, shape: tuple[int, ...], dtype: np.dtype) -> bool:
  """Returns whether a case chose the value of a variable, in place of the distinct one."""
  distinct = distinct_values(name, shape, dtype)
  return value is not None and distinct is not None and not np.array_equal(value, distinct)


class ConstantFill:
  """The guide's fill: every element of every floating variable is 0.001."""

  description = CONSTANT_VALUES

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the constant array."""
    return constant_values(name, shape, dtype)


class ConstantInDomain:
  """The guide's constant, without the variables that have a domain.

  Those whose values a case chooses, and bounds of ranges: with 0.001 for both the range is empty.
  """

  description = f'{CONSTANT_VALUES} where fill_values gives distinct values'

  def __init__(self, own: Fill) -> None:
    """Takes the case's own fill."""
    self._own = own

  def __call__(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
    """Returns the constant array, or the case's own values."""
    value = self._own(name, shape, dtype)
    if is_bound(name, shape) or _is_given(value, name, shape, dtype):
      return value
    return constant_values(name, shape, dtype)


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
