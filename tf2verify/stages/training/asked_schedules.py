"""The schedule of a port that is asked for its rates at counts of steps of TF1."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from tf2verify.diagnosis.rules.training.later_rates import are_same
from tf2verify.sides.tf2.schedule_arguments import fitting_arguments
from tf2verify.sides.tf2.schedules import Schedule


@dataclasses.dataclass(frozen=True, eq=False)
class AskedSchedule:
  """A schedule, and what makes a count of TF1 one of the port."""

  schedule: Schedule
  of_port: Callable[[int], int]  # the port's count after as many steps
  ahead: int  # by how many steps that are forgotten the port has counted more

  def rates(self, counts: Collection[int]) -> list[float]:
    """Returns the rates at counts of TF1."""
    return self.schedule.rates(self._counts(counts))

  def fitting(self, known: Mapping[int, tuple[float, float]]) -> Sequence[tuple[str, float, float]]:
    """Returns arguments of the schedule, its values, and those with which its rates are TF1's.

    Args:
      known: the rates of both sides, by the count of TF1.
    """
    if not known:  # the reference tells none
      return ()
    wanted = [one for one, _ in known.values()]
    return list(fitting_arguments(self.schedule, self._counts(known), wanted, are_same))

  def _counts(self, counts: Collection[int]) -> list[int]:
    return [max(self.of_port(n) + self.ahead, 0) for n in counts]
