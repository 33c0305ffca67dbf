"""The arrays behind a difference."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class FailedTensor:
  """Two tensors that a stage compared and found different."""

  quantity: str  # as in `Difference`
  name: str  # a variable's tf1 name, or the path of an output
  run: str  # as in `Difference`
  tf1: np.ndarray  # the tf1 side's array
  tf2: np.ndarray  # the tf2 side's; of the same shape and dtype or not
