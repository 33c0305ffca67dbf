"""The losses within the model, run again with edits of the port's graph."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.places.bench import Left, LookedAt
from tf2verify.numerics.agreement import agreement
from tf2verify.numerics.tolerance import ToleranceTable
from tf2verify.records.diagnosis import Cause
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import LossObservation
from tf2verify.sides.graphs.edits.repairs import Repair
from tf2verify.sides.graphs.run import GraphRun
from tf2verify.sides.losses import loss_function
from tf2verify.sides.tf2.traces.repaired import given_values, repaired_run, target_values
from tf2verify.sides.tf2.traces.tracing import TracedPort
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.losses.results import comparable

QUANTITY = 'model loss'
# An edit may let a loop run for ever.
_RUN_SECONDS = 60


@dataclasses.dataclass(frozen=True, eq=False)
class EditedModel:
  """The run of the model in which its losses differ, see `diagnosis.bench.BenchRun`.

  Attributes:
    tf1: the reference, as it is looked into.
    traced: returns the port with its losses, traced.
    observed: the losses of both sides.
    failed: the losses that differ, as differences name them.
    tolerance: of losses.
    explain: returns what the stage takes for the cause.
  """

  tf1: GraphRun
  traced: Callable[[], TracedPort]
  observed: tuple[LossObservation, LossObservation]
  failed: frozenset[str]
  tolerance: ToleranceTable
  explain: Callable[[], Sequence[Cause]]

  @property
  def names(self) -> frozenset[str]:
    """The run, as differences name it."""
    return frozenset([self.observed[0].run])

  def why_not(self) -> str:
    """Returns why the port cannot be edited; '' where its graph yields what it yields."""
    own = losses_by_name(self.observed[1])
    found = self._values([])
    for name in sorted(self._compared):
      if not agreement(*comparable(own[name], found[name])).is_rounding:
        return f'as a graph, the port has a different {name}'
    return ''

  def looked_at(self, repairs: Sequence[Repair], left: Left) -> LookedAt:
    """Returns both sides, the port with edits."""
    del left
    return LookedAt(self.observed[0].run, self.tf1, self._repaired(repairs))

  def judged(self, repairs: Sequence[Repair]) -> tuple[Left, list[float]]:
    """Returns what differs with edits, and how far each pair of losses is apart."""
    found, own = self._values(repairs), losses_by_name(self.observed[0])
    comparison = Comparison()
    shares = []
    for name in sorted(self._compared):
      pair = comparable(own[name], found[name])
      key = TensorKey(QUANTITY, name, self.observed[0].run)
      comparison.tensors(key, *pair, self.tolerance)
      shares.append(agreement(*pair).relative)
    left = {(d.quantity, d.tf1_subject, d.run) for d in comparison.differences}
    return frozenset(left), shares

  def still_fails(self, repairs: Sequence[Repair]) -> bool:
    """Returns whether the run still fails with edits."""
    return bool(self.judged(repairs)[0])

  def causes(self, repairs: Sequence[Repair]) -> Sequence[Cause]:
    """Returns what the stage takes for the cause; nothing of an edited port."""
    return () if repairs else self.explain()

  def close(self) -> None:
    """Has nothing of its own to let go of."""

  @functools.cached_property
  def _port(self) -> TracedPort:
    return self.traced()

  @functools.cached_property
  def _compared(self) -> frozenset[str]:
    """The losses to compare: those that differ, and those that agree.

    Neither holds for a loss that one side alone has with its regularization.
    """
    ones, others = map(losses_by_name, self.observed)
    comparison, run = Comparison(), self.observed[0].run
    for name in ones.keys() & others.keys():
      pair = comparable(ones[name], others[name])
      comparison.tensors(TensorKey(QUANTITY, name, run), *pair, self.tolerance)
    differ = {difference.subject for difference in comparison.differences}
    return frozenset(self.failed | ((ones.keys() & others.keys()) - differ))

  def _values(self, repairs: Sequence[Repair]) -> Mapping[str, np.ndarray]:
    with contextlib.closing(self._repaired(repairs, targets_only=True)) as run:
      values = target_values(run, _RUN_SECONDS)
    found = {name: values.get(loss_function.target_in_model(name)) for name in self._compared}
    return {name: value for name, value in found.items() if value is not None}

  def _repaired(self, repairs: Sequence[Repair], targets_only: bool = False) -> GraphRun:
    given = given_values(self.tf1, repairs) if any(one.given for one in repairs) else {}
    return repaired_run(self._port, repairs, given, None, targets_only)


def losses_by_name(observed: LossObservation) -> dict[str, np.ndarray]:
  """Returns the loss, the total loss and the parts of the loss, as differences name them."""
  parts = {
    loss_function.part_name(part.name): part.value
    for part in observed.parts or ()
    if part.value is not None
  }
  return {'loss': observed.loss, loss_function.TOTAL: observed.total_loss, **parts}
