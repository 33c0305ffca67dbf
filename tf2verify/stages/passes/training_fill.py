"""The values that training starts from."""

from collections.abc import Sequence

import numpy as np

from tf2verify.reference.fill_values import distinct_values
from tf2verify.sides.fill import Fill, StartedFill
from tf2verify.stages.passes.zero_randomness import case_fill
from tf2verify.stages.stage import CaseUnderTest


def training_fill(case: CaseUnderTest) -> StartedFill:
  """Returns the case's fill, but for variables whose slots fit only the constant they start with.

  Ftrl computes a variable from its slots alone, and these start with what fits zero. Where TF1
  updates the rows of a lookup and the port the whole table, any other start would be lost in the
  first step of the port, in rows that no batch of a real training has touched.
  """
  fill, tied = case_fill(case), case.tf1_training.computed_from_slots()
  known = [one for one in case.tf1.inventory().variables if one.name in tied]
  kept = [
    one.name
    for one in known
    if case.tf1.drawn_start(one.name) is None and _is_default(fill, one.name, one.shape, one.dtype)
  ]
  return case_fill(case, kept) if kept else fill


def _is_default(fill: Fill, name: str, shape: Sequence[int | None], dtype: str) -> bool:
  """Returns whether the value of a variable is not the case's own."""
  whole = tuple(size for size in shape if size is not None)
  if len(whole) < len(shape):
    return False
  like = name, whole, np.dtype(dtype)
  given, default = fill(*like), distinct_values(*like)
  return given is not None and default is not None and np.array_equal(given, default)
