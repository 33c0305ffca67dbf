"""Two losses, or metrics, on the same arrays."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tf2verify.diagnosis.formulas.losses import Evaluated
from tf2verify.records.loss_values import MetricValue
from tf2verify.records.observation import SourceLine
from tf2verify.records.training import LossObservation

# Examples larger than this are not computed again.
_MOST_ELEMENTS = 2**20


@dataclasses.dataclass(frozen=True, eq=False)
class LossEvidence:
  """Both losses, example by example."""

  tf1: tuple[Evaluated, ...]  # the reference's
  tf2: tuple[Evaluated, ...]  # the port's, of the same examples
  paths: tuple[str, ...]  # the outputs that the losses read, without those that follow from others


@dataclasses.dataclass(frozen=True, eq=False)
class LossOfOutput:
  """The same, as functions of one output."""

  tf1: tuple[Evaluated, ...]  # the reference's losses
  tf2: tuple[Evaluated, ...]  # the port's
  path: str  # the output


@dataclasses.dataclass(frozen=True)
class Term:
  """What a side adds to its loss for a variable."""

  growth: float  # by how much it grows with the variable: sum(w * gradient); 0 for nothing
  of: str = ''  # what of the elements is added up, `the square`; '' if unknown
  factor: float | None = None  # by which the sum of these is multiplied; None if unknown


@dataclasses.dataclass(frozen=True)
class Penalty:
  """How a variable counts in what both sides add to their losses."""

  tf1_name: str  # of the variable
  tf1: Term  # of the reference
  tf2: Term  # of the port
  source: SourceLine | None = None  # the user's line that creates the port's; None if unknown


@dataclasses.dataclass(frozen=True, eq=False)
class TotalLossEvidence:
  """What each side minimizes."""

  tf1: LossObservation  # the reference's losses within the model
  tf2: LossObservation  # the port's
  gap: float  # by how much the sum of the totals of tf1 is greater
  # Returns the variables that count differently in that; it takes runs, and is asked last.
  penalties: Callable[[], Sequence[Penalty]] = tuple


@dataclasses.dataclass(frozen=True, eq=False)
class MetricEvidence:
  """One metric on every example."""

  # The value of tf1, and what is known of the port's.
  pairs: tuple[tuple[np.ndarray, MetricValue], ...]


@dataclasses.dataclass(frozen=True)
class RepeatedLoss:
  """The port's loss, called again on the same data."""

  sums: tuple[float, ...]  # what each call gave, added up; not all the same


@dataclasses.dataclass(frozen=True)
class ExtremeLosses:
  """Losses that differ on some examples, or in eager mode alone."""

  different: tuple[str, ...]  # names of these
  finite_only: bool  # whether all of these are compared for being finite alone
  eager_only: bool = False  # whether the port's loss as a graph is that of TF1 on all of these


def loss_evidence(
  tf1: Sequence[Evaluated], tf2: Sequence[Evaluated], paths: Sequence[str]
) -> Iterator[LossOfOutput | LossEvidence]:
  """Yields what may show why two losses differ, the most telling first.

  Args:
    tf1: the reference's loss, example by example.
    tf2: the port's, of the same examples.
    paths: the outputs that the losses read, without those that follow from others.
  """
  kept = [
    pair
    for pair in zip(tf1, tf2, strict=True)
    if all(pair[0].example.outputs[path].size <= _MOST_ELEMENTS for path in paths)
  ]
  # Where a batch size is written into one side, the batch of another size fits nothing.
  of_one_batch = [pair for pair in kept if not pair[0].example.other_batch]
  for pairs in (kept, of_one_batch if of_one_batch != kept else ()):
    ones, others = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
    if pairs:
      yield from (LossOfOutput(ones, others, path) for path in paths)
      yield LossEvidence(ones, others, tuple(paths))
