"""What the tensors of a run are called."""

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np


def subject_of(tf1: str, tf2: str) -> str:
  """Returns how findings call what the sides know by two names: `a (tf2: b)`, `a` for one."""
  return tf1 if tf1 == tf2 else f'{tf1} (tf2: {tf2})'


@dataclasses.dataclass(frozen=True)
class TensorKey:
  """Which tensor of which run.

  Attributes:
    quantity: what it is: `output`, `gradient`, `initial value`, ...
    name: whose: a variable by its tf1 name, or the path of an output.
    run: which run, where a stage has several: `training, constant`.
    port_name: what the port calls a variable that has another name there; '' for the same.
      Of two keys that differ in this alone, either finds what belongs to the other.
  """

  quantity: str
  name: str
  run: str = ''
  port_name: str = dataclasses.field(default='', compare=False)

  @property
  def subject(self) -> str:
    """Whose it is, for a reader."""
    return subject_of(self.name, self.port_name or self.name)

  def __str__(self) -> str:
    where = f' [{self.run}]' if self.run else ''
    return f'{self.quantity} {self.subject}{where}'


# The tensors of one run, or those of them that were asked for; None where a side has none in its
# place.
Run = Mapping[TensorKey, np.ndarray | None]


def numbered(tensors: Iterable[tuple[TensorKey, np.ndarray | None]]) -> Run:
  """Returns tensors as a run; the next of one key gets a number: `kernel (2)`."""
  found: dict[TensorKey, np.ndarray | None] = {}
  for key, value in tensors:
    free, count = key, 1
    while free in found:
      count += 1
      free = dataclasses.replace(key, name=f'{key.name} ({count})')
    found[free] = value
  return found
