"""What a rule may look at."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from tf2verify.records.diagnosis import GraphDifference, Source
from tf2verify.records.difference import Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import OpGraph


@dataclasses.dataclass(frozen=True, eq=False)
class SourceEvidence:
  """A source with the output that differs.

  Attributes:
    source: the record of a report.
    tf1: the output, tf1 side.
    tf2: the same from the tf1 side's inputs.
  """

  source: Source
  tf1: np.ndarray
  tf2: np.ndarray

  @property
  def is_comparable(self) -> bool:
    """Whether shape and dtype agree, and both are floating."""
    same = self.tf1.shape == self.tf2.shape and self.tf1.dtype == self.tf2.dtype
    return same and self.tf1.dtype.kind == 'f'


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
  """All that is known of a failed stage.

  Attributes:
    stage: the stage's name.
    differences: what the stage found, worst first.
    tensors: some of the arrays behind them.
    sources: where the sides part, in the order of execution.
    gradient_differences: where gradients pass differently.
    stops: places where gradients are stopped on one side only.
    updates: variables that are written a different number of times: name, times in
      tf1, times in tf2.
    tf2_op_types: the op types of the port's computation.
    tf1_op_types: those of the tf1 side's.
    not_traceable: why the port could not be traced; '' where it could.
    agrees_as_graph: whether the port agrees once it is traced as a graph.
    tf1_graph: the tf1 side's computation; None where it was not looked into.
    tf2_graph: the port's, likewise.
  """

  stage: str
  differences: tuple[Difference, ...] = ()
  tensors: tuple[FailedTensor, ...] = ()
  sources: tuple[SourceEvidence, ...] = ()
  gradient_differences: tuple[GraphDifference, ...] = ()
  stops: tuple[Source, ...] = ()
  updates: tuple[tuple[str, int, int], ...] = ()
  tf1_op_types: frozenset[str] = frozenset()
  tf2_op_types: frozenset[str] = frozenset()
  not_traceable: str = ''
  agrees_as_graph: bool = False
  tf1_graph: OpGraph | None = None
  tf2_graph: OpGraph | None = None

  def graph_differences(self) -> Iterator[tuple[SourceEvidence, GraphDifference]]:
    """Yields what differs in the graphs at each source."""
    for source in self.sources:
      for difference in source.source.differences:
        yield source, difference

  def of_quantity(self, quantity: str) -> list[FailedTensor]:
    """Returns the tensors of one kind, such as `initial value`."""
    return [tensor for tensor in self.tensors if tensor.quantity == quantity]
