"""What a run has computed before, kept as far as memory allows."""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

# Of arrays that are kept, and of those of one answer: a search asks for small ones often.
_MOST_BYTES, _MOST_OF_ONE = 32 * 2**20, 2**20
_Answer = list[np.ndarray] | None


class KeptValues:
  """Arrays by what they answer; those beyond the limit are computed again."""

  def __init__(self) -> None:
    """Begins with none."""
    self._known: dict[Hashable, _Answer] = {}
    self._bytes = 0

  def answers(
    self, keys: Sequence[Hashable], compute: Callable[[Sequence[int]], Sequence[_Answer]]
  ) -> list[_Answer]:
    """Returns answers, of which those that are not known are computed.

    Args:
      keys: what is asked; None for what is not to be kept.
      compute: returns the answers to some, by their numbers; None where there is none. Nobody may
        change the arrays from then on.
    """
    asked = [(n,) if key is None else key for n, key in enumerate(keys)]
    first = {key: n for n, key in reversed([*enumerate(asked)]) if key not in self._known}
    numbers = sorted(first.values())
    found = dict(zip([asked[n] for n in numbers], compute(numbers), strict=True))
    for n in numbers:
      if keys[n] is not None:
        self._keep(keys[n], found[keys[n]])
    return [found[key] if key in found else self._known[key] for key in asked]

  def _keep(self, key: Hashable, answer: _Answer) -> None:
    size = sum(array.nbytes for array in answer or ())
    if size > _MOST_OF_ONE or self._bytes + size > _MOST_BYTES:
      return
    for array in answer or ():
      array.setflags(write=False)
    self._known[key] = answer
    self._bytes += size

  def clear(self) -> None:
    """Lets go of all."""
    self._known.clear()
    self._bytes = 0


def key_of(wanted: Sequence[str], given: Mapping[str, np.ndarray]) -> Hashable:
  """Returns what tells tensors, computed from values by name, from others.

  None where the values are too large to be looked at each time.
  """
  values = given.values()
  if sum(one.nbytes for one in values) > _MOST_OF_ONE or any(o.dtype.hasobject for o in values):
    return None
  digest = hashlib.blake2b(digest_size=16)
  for name in sorted(given):
    value = given[name]
    digest.update(f'{name} {value.dtype.str} {value.shape} '.encode())
    digest.update(np.ascontiguousarray(value).tobytes())
  return *wanted, digest.digest()
