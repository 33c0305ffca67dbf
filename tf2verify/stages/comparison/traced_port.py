"""What a traced port yields, compared with the reference as a stage does it."""

import dataclasses
import re
from collections.abc import Mapping

import numpy as np

from tf2verify.records.difference import Difference
from tf2verify.records.observation import Observation, RegularizationLoss, TensorRecord
from tf2verify.records.op_graph import OpGraph
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.comparison.noise.reruns import Rerun
from tf2verify.stages.stage import CaseUnderTest

_LOSS = 'regularization loss '
_UPDATE = 'update of '
_NUMBER = re.compile(r' \(\d+\)$')


@dataclasses.dataclass(frozen=True, eq=False)
class TracedComparison:
  """Compares what graphs of the port yield with one run of the reference.

  Attributes:
    case: both sides.
    reference: the run.
    rerun: repeats it, to measure rounding noise.
  """

  case: CaseUnderTest
  reference: Observation
  rerun: Rerun

  def differences(self, values: Mapping[str, np.ndarray], graph: OpGraph) -> list[Difference]:
    """Returns what differs beyond tolerance and rounding.

    Args:
      values: by the graph's targets.
      graph: of the port.
    """
    comparison, case = Comparison(), self.case
    reference = dataclasses.replace(self.reference, regularization_total=None)
    port = self._observation(values, graph)
    comparison.outputs(reference, port, case.tolerance)
    comparison.regularization(reference, port, (), case.regularization_tolerance)
    changed = _changed_names(reference) | _changed_names(port)
    comparison.variables(
      'state after the call',
      [(name, name) for name in sorted(changed)],
      reference.state_after,
      port.state_after,
      case.tolerance,
      reference.run,
    )
    comparison.excuse_rounding(reference, self.rerun)
    return list(comparison.differences)

  def _observation(self, values: Mapping[str, np.ndarray], graph: OpGraph) -> Observation:
    """Returns what the port yields; what it does not yield as a tensor is as in the reference."""
    reference = self.reference
    losses = {name: value for name, value in values.items() if name.startswith(_LOSS)}
    outputs = tuple(
      TensorRecord(record.name, values.get(f'output {record.name}', record.value))
      for record in reference.outputs
    )
    return dataclasses.replace(
      reference,
      outputs=outputs,
      regularization_losses=tuple(
        RegularizationLoss(_variables_of(name), value) for name, value in losses.items()
      ),
      regularization_total=None,
      state_after=self._state_after(values, graph),
    )

  def _state_after(
    self, values: Mapping[str, np.ndarray], graph: OpGraph
  ) -> tuple[TensorRecord, ...]:
    layouts = {layout.tf1: layout for layout in self.case.pairing.layouts}
    after = {record.name: record for record in self.reference.initial_values}
    for name, position in graph.targets().items():
      kind = str(graph.ops[position].attribute('op'))
      if name.startswith(_UPDATE):  # of several writes of a variable, one after the other
        variable, value = _NUMBER.sub('', name.removeprefix(_UPDATE)), values[name]
        layout = layouts.get(variable)
        if variable in after:
          found = value if layout is None else layout.to_tf1(value)
          after[variable] = _after(after[variable], kind, found)
    return tuple(after.values())


def _variables_of(target: str) -> tuple[str, ...]:
  names = target.removeprefix(_LOSS)
  return () if names.startswith('number ') else tuple(names.split(', '))


def _after(record: TensorRecord, kind: str, value: np.ndarray) -> TensorRecord:
  before = record.value
  if before is None or kind.startswith('AssignVariable') or kind == 'Assign':
    return TensorRecord(record.name, value)
  if before.shape != value.shape:
    return TensorRecord(record.name, value)
  after = before - value if kind.startswith('AssignSub') else before + value
  return TensorRecord(record.name, np.asarray(after, before.dtype))


def _changed_names(observation: Observation) -> set[str]:
  before = {record.name: record for record in observation.initial_values}
  return {
    record.name for record in observation.state_after if before.get(record.name) is not record
  }
