"""How far values spread, and which repeat."""

from typing import Callable, Dict, Optional, Set

import numpy as np

from .arrays import Array, widened
from .held_array import HeldArray
from .run import Key


def spread_of(one: HeldArray, moved: Optional[HeldArray]) -> Array:
  """Returns |moved - value|; infinity where a finite element is not finite any more."""
  if moved is None or moved.values.shape != one.values.shape:
    return np.full(one.values.shape, np.inf)
  with np.errstate(all='ignore'):
    before, after = widened(one.values), widened(moved.values)
    spread = np.abs(after - before)
  spread = np.where(np.isfinite(spread), spread, np.inf)
  return np.where(np.isfinite(before), spread, 0.0)


def _repeats(one: HeldArray, again: Optional[HeldArray], noise: Optional[Array]) -> bool:
  """Returns whether a run that moved nothing gave the same, or no more than rounding beside it."""
  if again is not None and again.digest == one.digest:
    return True
  if again is None or noise is None:
    return False
  allowed = np.maximum(0.1 * noise, 1e-5 + 1e-6 * np.abs(one.values.astype(np.complex128)))
  return bool(np.all(spread_of(one, again) <= allowed))


_REPEATED_RUNS = 6


def which_repeat(
  first: Dict[Key, Optional[HeldArray]],
  noises: Dict[Key, Array],
  run: Callable[[], Dict[Key, Optional[HeldArray]]],
) -> Set[Key]:
  """Returns which tensors a run that moves nothing gives again, but for rounding.

  One such run is enough where all bits are the same. Where they are not, a draw without a
  seed may have come out close to the first one by luck: it is run again.
  """
  left = {key for key, one in first.items() if one is not None}
  for _ in range(_REPEATED_RUNS):
    again = run()
    same = True
    for key in sorted(left):
      one, other = first[key], again.get(key)
      # An initial value that is not drawn again is drawn by a seed of the recorder's.
      if one is None or (key[0] == 'initial value' and key not in again):
        continue
      if not _repeats(one, other, noises.get(key)):
        left.discard(key)
      elif other is None or other.values.tobytes() != one.values.tobytes():
        same = False
    if same:
      break
  return left
