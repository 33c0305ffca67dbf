"""What a recorded graph yields where it is run again."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf2verify.records.observation import Observation


@dataclasses.dataclass(frozen=True, eq=False)
class RecordedGraphHere:
  """The recorded graph, run by the TensorFlow that is here.

  Attributes:
    recorded_by: `TensorFlow 1.15.5`.
    run_by: `TensorFlow 2.21.0`.
    observation: what it yields.
    intermediates: recorded tensors of the same run, by name; empty where there are none.
  """

  recorded_by: str
  run_by: str
  observation: Observation
  intermediates: Mapping[str, np.ndarray]
