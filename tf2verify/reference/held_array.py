"""An array as it is stored."""

from typing import Any, Dict, Optional

import numpy as np

from .arrays import Array, array_digest
from .sampling import BLOCK, sample


class HeldArray:
  """An array as it is stored: whole, or sampled."""

  def __init__(
    self, array: Array, samples: int = 0, block: int = BLOCK, with_digest: bool = True
  ) -> None:
    """Takes an array, and how many samples of it are kept; 0 for all of it."""
    array = np.asarray(array, order='C')
    self.digest = array_digest(array) if with_digest else ''
    self.sampled: Optional[Dict[str, Any]] = None
    if samples:
      self.values = sample(array, samples, block)
      shape = list(array.shape)
      self.sampled = {'shape': shape, 'sha256': self.digest, 'samples': samples, 'block': block}
    else:
      self.values = np.array(array)  # a session's array may share the memory of a variable
