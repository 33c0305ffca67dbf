"""What a loss function gives for outputs and labels, as numpy."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.records.observation import SourceLine, TensorRecord

# Arrays by their path in a nest: `['logits']`; '' where the nest is the array itself.
Leaves = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class LossExample:
  """Outputs and labels to give to both losses."""

  name: str  # for reports: `saturated, wrong class`
  outputs: Leaves  # by path
  labels: Leaves  # by path; empty without labels
  extreme: bool = True  # whether made of the model's outputs, not those themselves
  # Whether of another batch size than the model's outputs, to which code may be bound.
  other_batch: bool = False
  # Whether nothing is looked at but that the port is finite where the reference is: so far out,
  # right losses may round differently.
  finite_only: bool = False
  # Of more examples, to be compared instead where the port cannot take this one; None without.
  larger: 'LossExample | None' = None
  declared: bool = False  # whether the case gives it, by `loss_examples`


@dataclasses.dataclass(frozen=True, eq=False)
class LossValue:
  """What a loss gives for one example."""

  value: np.ndarray  # of the loss, as the function returned it: a scalar, or one per example
  # Of the sum of that, by the path of every floating output; None where the output is not
  # connected.
  gradients: tuple[TensorRecord, ...]

  def gradient(self, path: str) -> np.ndarray | None:
    """Returns the gradient with respect to an output; None without one."""
    return next((record.value for record in self.gradients if record.name == path), None)


@dataclasses.dataclass(frozen=True)
class LossProgram:
  """What a loss is made of."""

  reads: frozenset[str]  # paths of the outputs that it is computed from
  # By path of an output that it reads, how many tensors of that output's size value and gradient
  # together compute.
  kept: Mapping[str, int]
  # The user's line that made its last operation; None where that is not known.
  source: SourceLine | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class MetricValue:
  """A metric after one update."""

  name: str  # as the case calls it
  value: np.ndarray  # of the metric
  settings: tuple[tuple[str, object], ...] = ()  # of a Keras metric: those that are text or numbers
  # Of a metric over thresholds: arrays by name (`true_positives`).
  counts: tuple[tuple[str, np.ndarray], ...] = ()
