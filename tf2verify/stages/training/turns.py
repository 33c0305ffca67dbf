"""Variables that are updated in some steps only: in each second one, or once a generator has."""

import numpy as np

from tf2verify.records.training import TrainingRun, TrainingStep
from tf2verify.relation.shadows import SHADOW, SHADOW_OF
from tf2verify.stages.training.steps.quantities import Steps


class Turns:
  """Watches which variables steps after the one that differs update.

  Attributes:
    moved: tf1 names of the variables that each side has updated in them, and `shadow of` those
      whose moving averages it has.
  """

  def __init__(self) -> None:
    self.moved: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()

  def see(self, steps: Steps, parted: int) -> None:
    """Takes steps of which the last one, and the one that differs, have their arrays.

    Args:
      steps: all of them so far.
      parted: number of the one that differs, from 1.
    """
    names = {tf2: tf1 for tf1, tf2 in steps.names}
    one, other = (_moved_since(run, parted) for run in (steps.tf1, steps.tf2))
    theirs = frozenset(prefix + names[name] for prefix, name in other if name in names)
    ones = frozenset(prefix + name for prefix, name in one)
    self.moved = self.moved[0] | ones, self.moved[1] | theirs


def _moved_since(run: TrainingRun, number: int) -> set[tuple[str, str]]:
  """Returns what has moved, each by what is said before the name of a variable, and that name."""
  known, now = _values(run.steps[number - 1]), _values(run.steps[-1])
  return {
    key for key, value in now.items() if key in known and not np.array_equal(value, known[key])
  }


def _values(step: TrainingStep) -> dict[tuple[str, str], np.ndarray]:
  shadows = {(SHADOW_OF, s.variable): s.value for s in step.slots if s.role == SHADOW}
  return shadows | {('', r.name): r.value for r in step.variables if r.value is not None}
