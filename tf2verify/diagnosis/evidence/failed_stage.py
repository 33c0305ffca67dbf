"""What a rule may look at."""

import dataclasses
import enum
from collections.abc import Iterator

import numpy as np

from tf2verify.records.diagnosis import GraphDifference, Source
from tf2verify.records.difference import Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.observation import SourceLine
from tf2verify.records.op_graph import OpGraph


class Standing(enum.Enum):
  """What a trial has shown of a difference between the graphs."""

  SOLE = 'with it fixed, and others like it, the port yields what tf1 yields'
  JOINT = 'it takes the operations that one side lacks, as well'
  REFUTED = 'fixed or not, the port yields the same, or still something different'
  UNTRIED = 'it could not be tried'


@dataclasses.dataclass(frozen=True, eq=False)
class SourceEvidence:
  """A source with the output that differs."""

  source: Source  # the record of a report
  tf1: np.ndarray  # the output, tf1 side
  tf2: np.ndarray  # the same from the tf1 side's inputs
  # Of the differences that were tried out.
  standings: tuple[tuple[GraphDifference, Standing], ...] = ()

  def standing(self, difference: GraphDifference) -> Standing:
    """Returns what the trials have shown of a difference."""
    found = (its for known, its in self.standings if known is difference)
    return next(found, Standing.UNTRIED)

  @property
  def is_comparable(self) -> bool:
    """Whether shape and dtype agree, and both are floating."""
    same = self.tf1.shape == self.tf2.shape and self.tf1.dtype == self.tf2.dtype
    return same and self.tf1.dtype.kind == 'f'


@dataclasses.dataclass(frozen=True, eq=False)
class StateEvidence:
  """A variable that a call leaves in another state."""

  name: str  # its tf1 name
  before: np.ndarray  # its value before the call
  tf1: np.ndarray  # after it, tf1 side
  tf2: np.ndarray  # after it, tf2 side
  # By which each side's graph moves it, tf1 before tf2; None where none is seen.
  momenta: tuple[float | None, float | None] = (None, None)


@dataclasses.dataclass(frozen=True, eq=False)
class LoopEnd:
  """That one side's loop ends for an example before the last step, and the other side's does not.

  Attributes:
    side: whose loop does: 'tf1' or 'tf2'.
    inputs: names of the inputs that say where.
    line: the user's line that makes the lengths of them, or compares them.
    of_lengths: whether a length is held against the number of the step.
    early: how many examples end before the last step, of how many.
    explains: whether this side yields what the other one does, where it goes on as well.
    behind: names of the side's operations that are computed from its choices.
  """

  side: str
  inputs: tuple[str, ...]
  line: SourceLine | None
  of_lengths: bool
  early: tuple[int, int]
  explains: bool
  behind: frozenset[str]


@dataclasses.dataclass(frozen=True, eq=False)
class FailedStage:
  """All that is known of a failed stage."""

  stage: str  # the stage's name
  differences: tuple[Difference, ...] = ()  # what the stage found, worst first
  tensors: tuple[FailedTensor, ...] = ()  # some of the arrays behind them
  sources: tuple[SourceEvidence, ...] = ()  # where the sides part, in the order of execution
  gradient_differences: tuple[GraphDifference, ...] = ()  # where gradients pass differently
  stops: tuple[Source, ...] = ()  # places where gradients are stopped on one side only
  is_forward: bool = False  # whether a source is of the forward pass
  # Variables that are written a different number of times: name, times in tf1, times in tf2.
  updates: tuple[tuple[str, int, int], ...] = ()
  # Of variables that a call leaves in another state, as far as their values before it are known.
  states: tuple[StateEvidence, ...] = ()
  tf1_op_types: frozenset[str] = frozenset()  # those of the tf1 side's
  tf2_op_types: frozenset[str] = frozenset()  # the op types of the port's computation
  agrees_as_graph: bool = False  # whether the port agrees once it is traced as a graph
  tf1_graph: OpGraph | None = None  # the tf1 side's computation; None where it was not looked into
  tf2_graph: OpGraph | None = None  # the port's, likewise
  # The tf1 side's in training mode, where the run is one in inference and the port alone draws.
  tf1_in_training: OpGraph | None = None
  of_keras3: bool = False  # whether the port is a layer of Keras 3
  loop_ends: tuple[LoopEnd, ...] = ()  # loops in which one side alone ends an example early

  def graph_differences(self) -> Iterator[tuple[SourceEvidence, GraphDifference]]:
    """Yields what differs in the graphs at each source, but for what trials have refuted."""
    for source in self.sources:
      for difference in source.source.differences:
        if source.standing(difference) is not Standing.REFUTED:
          yield source, difference

  def count(self, op_type: str) -> tuple[int, int]:
    """Returns how many operations of a type each side's computation has, loops included."""
    graphs = self.tf1_graph, self.tf2_graph
    tf1, tf2 = (0 if graph is None else _count(graph, op_type) for graph in graphs)
    return tf1, tf2

  def of_quantity(self, quantity: str) -> list[FailedTensor]:
    """Returns the tensors of one kind, such as `initial value`."""
    return [tensor for tensor in self.tensors if tensor.quantity == quantity]


def _count(graph: OpGraph, op_type: str) -> int:
  """Returns how many operations of a type a graph has, those of gradients left out."""
  own = sum(op.op_type == op_type and not op.name.startswith('gradients') for op in graph.ops)
  return own + sum(_count(function, op_type) for op in graph.ops for _, function in op.functions)
