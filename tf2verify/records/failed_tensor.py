"""The arrays behind a difference."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class FailedTensor:
  """Two tensors that a stage compared and found different.

  Attributes:
    quantity: as in `Difference`.
    name: a variable's tf1 name, or the path of an output.
    run: as in `Difference`.
    tf1: the tf1 side's array.
    tf2: the tf2 side's; of the same shape and dtype or not.
  """

  quantity: str
  name: str
  run: str
  tf1: np.ndarray
  tf2: np.ndarray
