"""The schedule of a port that is asked for its rates at counts of steps of TF1."""

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence

from tf2verify.diagnosis.rules.updates.later_rates import are_same
from tf2verify.records.training import TrainingStep
from tf2verify.sides.tf2.optimization.schedule_arguments import fitting_arguments
from tf2verify.sides.tf2.optimization.schedules import Schedule

# Gives rates of several optimizers at counts of steps; None for one that cannot be asked.
FurtherRates = Callable[[Sequence[int]], Sequence[Sequence[float] | None]]
# Counts before the one after a step at which its rate may have been read.
_NEAR = 2


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


def told_rate(
  tf1: TrainingStep, tf2: TrainingStep, further_rates: FurtherRates | None
) -> float | None:
  """Returns the learning rate of a step of the port that TF1's is to be compared with.

  TF1 tells the rate of its first optimizer. If the port updates by another one first, the rate
  of any of its updates may be that one; what each update does is compared by itself.

  Args:
    tf1: the step of TF1.
    tf2: the same step of the port.
    further_rates: gives those of TF1's other optimizers at counts of steps, where the port tells
      of fewer optimizers; None where it does not.

  Returns:
    None where it is, or may be, the rate of another optimizer of TF1.
  """
  rate, wanted = tf2.learning_rate, tf1.learning_rate
  if rate is None or wanted is None:
    return rate
  known = (rate, *tf2.further_rates)
  found = next((r for r in known if all(are_same([wanted], [r]))), None)
  if found is not None or further_rates is None:
    return rate if found is None else found
  # Each of several optimizers may have counted the step.
  last = tf1.global_step or 0
  others = further_rates(range(max(last - _NEAR, 0), last + 1))
  at_steps = [
    None if one is None else [r for r in one if all(are_same([r], [rate]))] for one in others
  ]
  return None if any(one is None or one for one in at_steps) else rate


def may_be_of_another(rates: Sequence[float], others: Sequence[Sequence[float] | None]) -> bool:
  """Returns whether rates are those of one of some others, or one of these is not known."""
  return any(one is None or all(are_same(one, rates)) for one in others)
