"""What a recorded graph yields where it is run again."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.records.observation import Observation


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedGraphHere:
  """The recorded graph, run by the TensorFlow that is here."""

  recorded_by: str  # `TensorFlow 1.15.5`
  run_by: str  # `TensorFlow 2.21.0`
  observation: Observation  # what it yields
  # Recorded tensors of the same run, by name; empty where there are none.
  intermediates: Mapping[str, np.ndarray]
