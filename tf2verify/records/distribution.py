"""What initial values are drawn from."""

import dataclasses
import enum


class Family(enum.Enum):
  """Distributions that a random op draws from, shifted and scaled by an initializer."""

  UNIFORM = 'uniform'
  NORMAL = 'normal'
  TRUNCATED_NORMAL = 'truncated normal'


@dataclasses.dataclass(frozen=True)
class Distribution:
  """A distribution of which every element of a tensor is drawn alike."""

  family: Family  # which one
  location: float  # the lower bound (uniform), else the mean
  # The width (uniform), else the standard deviation: of a truncated normal before it is cut off at
  # twice of it on both sides.
  scale: float

  def __str__(self) -> str:
    if self.family is Family.UNIFORM:
      upper = self.location + self.scale
      if abs(upper + self.location) <= 1e-4 * self.scale:
        return f'uniform in ±{upper:.4g}'
      return f'uniform from {_rounded(self.location, self.scale)} to {_rounded(upper, self.scale)}'
    mean = _rounded(self.location, self.scale)
    mean = '' if mean == '0' else f'mean {mean}, '
    return f'{self.family.value}, {mean}standard deviation {self.scale:.4g}'


def _rounded(number: float, scale: float) -> str:
  return f'{0.0 if abs(number) <= 1e-4 * scale else number:.4g}'
