"""What a case needs of the machine that it runs on."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tf2verify.errors import CaseDefinitionError


@dataclasses.dataclass(frozen=True)
class Resources:
  """What one case takes, for a fleet.

  The local engine counts `cpus` as so many of its `--jobs`, at most all of them, and does
  not look at `gpus`. Ray runs a case on a node that has all three free.

  Attributes:
    cpus: processors; 0.5 lets two cases share one.
    gpus: graphics processors.
    memory_gib: GiB of memory, with the processes that the case starts; also the most that
      it may take, in place of `--memory`. None for no demand.

  Raises:
    CaseDefinitionError: a number that is none, or negative.
  """

  cpus: float = 1.0
  gpus: float = 0.0
  memory_gib: float | None = None

  def __post_init__(self) -> None:
    for name, value, least in (
      ('cpus', self.cpus, 'above 0'),
      ('gpus', self.gpus, 'of at least 0'),
      ('memory_gib', 1 if self.memory_gib is None else self.memory_gib, 'above 0, or None'),
    ):
      is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
      if is_number and math.isfinite(value) and (value > 0 or (value == 0 and name == 'gpus')):
        continue
      raise CaseDefinitionError(
        f'Resources({name}={value!r}): {name} must be a number {least}; '
        'Resources(cpus=2, gpus=1, memory_gib=8) asks for two CPUs, one GPU and 8 GiB of memory'
      )
    if self.gpus > 1 and self.gpus != int(self.gpus):
      raise CaseDefinitionError(
        f'Resources(gpus={self.gpus!r}): above 1, gpus must be a whole number, since a fraction is '
        'a share of a single GPU'
      )

  @property
  def memory(self) -> int | None:
    """The memory in bytes."""
    return None if self.memory_gib is None else int(self.memory_gib * 2**30)

  def to_fields(self) -> dict[str, Any]:
    """Returns what `from_fields` takes, for JSON."""
    return dataclasses.asdict(self)

  @classmethod
  def from_fields(cls, fields: Mapping[str, Any]) -> 'Resources':
    """Returns the record of the fields that `to_fields` returns."""
    return cls(**fields)

  def __str__(self) -> str:
    memory = '' if self.memory_gib is None else f', {self.memory_gib:g} GiB of memory'
    return f'CPU {self.cpus:g}, GPU {self.gpus:g}{memory}'


def resources_of(case: type[Any]) -> Resources:
  """Returns what a case needs.

  Raises:
    CaseDefinitionError: it says so in another form.
  """
  declared = case.resources
  if not isinstance(declared, Resources):
    raise CaseDefinitionError(
      f'{case.__name__}.resources is {declared!r:.80}; it must be a tf2verify.Resources: '
      'resources = tf2verify.Resources(cpus=2, memory_gib=8)'
    )
  return declared
