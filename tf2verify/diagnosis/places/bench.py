"""What experiments are made on."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from tf2verify.records.diagnosis import Cause
from tf2verify.records.observation import SourceLine
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.run import GraphRun

# Of several edits at once, where they do not make the stage pass.
_MUCH_NEARER = 0.5
# What differs: quantity, subject and run.
Left = frozenset[tuple[str, str, str]]


@dataclasses.dataclass(frozen=True)
class Judged:
  """What a stage's comparison says of the port with some edits."""

  left: Left  # what still differs, by quantity, subject and run
  tensors: int  # how many tensors were compared
  # The greatest difference of one of them, as a share of the greatest magnitude of tf1's.
  apart: float
  distance: float  # the sum of these shares, none counted as more than 1

  @property
  def passes(self) -> bool:
    """Whether nothing differs beyond tolerance and rounding."""
    return not self.left and self.tensors > 0

  def is_much_nearer_than(self, before: 'Judged') -> bool:
    """Returns whether half of the difference is left at most."""
    return self.passes or self.distance <= _MUCH_NEARER * before.distance


@dataclasses.dataclass(frozen=True, eq=False)
class LookedAt:
  """Both sides of a run, the port with edits."""

  name: str  # as differences name it
  tf1: GraphRun
  tf2: GraphRun
  # The user's line of an operation of the port that only passes a tensor on, by name.
  line_of: Callable[[str], SourceLine | None] = lambda name: None


class BenchRun(Protocol):
  """A run of a failed stage, or several that go together, of which the port can be edited.

  Attributes:
    names: as differences name the run.
  """

  @property
  def names(self) -> frozenset[str]: ...

  def why_not(self) -> str:
    """Returns why the port cannot be edited in it; '' where it can."""

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> 'LookedAt':
    """Returns what to look into for what is left with edits.

    Raises:
      CannotRepair: they make no graph.
    """

  def judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    """Returns what differs with edits, and how far each pair of tensors is apart.

    Raises:
      CannotRepair: they make no graph that runs.
    """

  def still_fails(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether what failed first still does with edits; no more of the run is made.

    Raises:
      CannotRepair: they make no graph that runs.
    """

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns what the stage itself takes for the cause of what differs with edits.

    Raises:
      CannotRepair: they make no graph that runs.
    """

  def close(self) -> None:
    """Lets go of what it has opened itself."""


class Bench(Protocol):
  """The runs of a failed stage, to be made again with an edited port.

  Attributes:
    derives: whether the port's gradients are formed after an edit, so that they follow from it.
  """

  derives: bool

  def why_not(self) -> str:
    """Returns why no experiment can be made; '' where it can."""

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns both sides of the run to look into for what is left with edits.

    Raises:
      CannotRepair: the edits make no graph.
    """

  def judged(self, repairs: Sequence[Repair]) -> Judged:
    """Compares all runs of the stage, with edits of the port.

    Raises:
      CannotRepair: the edits make no graph that runs.
    """

  def judged_if_passing(self, repairs: Sequence[Repair]) -> Judged | None:
    """Compares all runs of the stage, with edits with which it passes; None for others.

    Raises:
      CannotRepair: the edits make no graph that runs.
    """

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns what the stage itself takes for the cause of what differs with edits."""

  def is_over(self) -> bool:
    """Returns whether the time for experiments is used up."""
