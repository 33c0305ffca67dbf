"""The arrays behind a difference."""

import dataclasses
from collections.abc import Collection, Iterable

import numpy as np

from tf2verify.records.tensor_key import TensorKey

_KEPT_BYTES = 64 * 2**20


@dataclasses.dataclass(frozen=True, eq=False)
class FailedTensor:
  """Two tensors that a stage compared and found different."""

  quantity: str  # as in `Difference`
  name: str  # a variable's tf1 name, or the path of an output
  run: str  # as in `Difference`
  tf1: np.ndarray  # the tf1 side's array
  tf2: np.ndarray  # the tf2 side's; of the same shape and dtype or not


def kept_tensors(
  failed: Iterable[FailedTensor], left: Collection[TensorKey]
) -> tuple[FailedTensor, ...]:
  """Returns those of some keys, as far as the first ones are within a bound of memory."""
  kept: list[FailedTensor] = []
  size = 0
  for one in failed:
    size += one.tf1.nbytes + one.tf2.nbytes
    if size > _KEPT_BYTES:
      break
    if TensorKey(one.quantity, one.name, one.run) in left:
      kept.append(one)
  return tuple(kept)
