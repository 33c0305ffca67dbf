"""Variables that are updated in some steps only: in each second one, or once a generator has."""

import numpy as np

from tf2verify.records.training import TrainingRun
from tf2verify.stages.training.step_quantities import Steps


class Turns:
  """Watches which variables steps after the one that differs update.

  Attributes:
    moved: tf1 names of the variables that each side has updated in them.
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
    theirs = frozenset(names[name] for name in other if name in names)
    self.moved = self.moved[0] | one, self.moved[1] | theirs


def _moved_since(run: TrainingRun, number: int) -> frozenset[str]:
  known = {record.name: record.value for record in run.steps[number - 1].variables}
  found = set()
  for record in run.steps[-1].variables:
    before = known.get(record.name)
    if record.value is not None and before is not None:
      found |= set() if np.array_equal(record.value, before) else {record.name}
  return frozenset(found)
