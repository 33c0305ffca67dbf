"""What a loss function gives for outputs and labels, as numpy."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.records.observation import SourceLine, TensorRecord

# Arrays by their path in a nest: `['logits']`; '' where the nest is the array itself.
Leaves = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class LossExample:
  """Outputs and labels to give to both losses.

  Attributes:
    name: for reports: `saturated, wrong class`.
    outputs: by path.
    labels: by path; empty without labels.
    extreme: whether made of the model's outputs, not those themselves.
    other_batch: whether of another batch size than the model's outputs, to which code
      may be bound.
    finite_only: whether nothing is looked at but that the port is finite where the reference
      is: so far out, right losses may round differently.
  """

  name: str
  outputs: Leaves
  labels: Leaves
  extreme: bool = True
  other_batch: bool = False
  finite_only: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class LossValue:
  """What a loss gives for one example.

  Attributes:
    value: of the loss, as the function returned it: a scalar, or one per example.
    gradients: of the sum of that, by the path of every floating output; None where the
      output is not connected.
  """

  value: np.ndarray
  gradients: tuple[TensorRecord, ...]

  def gradient(self, path: str) -> np.ndarray | None:
    """Returns the gradient with respect to an output; None without one."""
    return next((record.value for record in self.gradients if record.name == path), None)


@dataclasses.dataclass(frozen=True)
class LossProgram:
  """What a loss is made of.

  Attributes:
    reads: paths of the outputs that it is computed from.
    kept: by path of an output that it reads, how many tensors of that output's size
      value and gradient together compute.
    source: the user's line that made its last operation; None where that is not known.
  """

  reads: frozenset[str]
  kept: Mapping[str, int]
  source: SourceLine | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class MetricValue:
  """A metric after one update.

  Attributes:
    name: as the case calls it.
    value: of the metric.
    settings: of a Keras metric: those that are text or numbers.
    counts: of a metric over thresholds: arrays by name (`true_positives`).
  """

  name: str
  value: np.ndarray
  settings: tuple[tuple[str, object], ...] = ()
  counts: tuple[tuple[str, np.ndarray], ...] = ()
