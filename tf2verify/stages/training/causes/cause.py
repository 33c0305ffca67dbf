"""A known reason why training parts, proved with the numbers of two runs."""

import dataclasses
import enum
from collections.abc import Callable

from tf2verify.stages.training.causes.evidence import Evidence


class About(enum.Enum):
  """What a cause explains; a difference in one of these gets its hint."""

  LEARNING_RATE = 'learning rate'
  LOSS = 'loss'
  GRADIENTS = 'gradients as applied'
  UPDATE = 'variables and slots'
  SHADOWS = 'moving averages of the weights'
  COUNT = 'count of steps'


@dataclasses.dataclass(frozen=True)
class Cause:
  """What was found.

  Attributes:
    text: the slip, with its numbers, and its fix.
    explains: what follows from it.
    variables: tf1 names; empty for all.
  """

  text: str
  explains: frozenset[About]
  variables: frozenset[str] = frozenset()


# Looks for one cause; None where the numbers do not show it.
Search = Callable[[Evidence], Cause | None]


def number_text(value: float) -> str:
  """Returns a number as reports write it: `0.1`, `1e-08`."""
  return f'{value:.6g}'


def listed(names: list[str], most: int = 3) -> str:
  """Returns the first names, and how many more there are."""
  more = f' and {len(names) - most} more' if len(names) > most else ''
  return ', '.join(names[:most]) + more
