"""The values of a graph's constants."""

import hashlib
from typing import Any

import numpy as np
import tensorflow as tf

_LARGEST = 4096


def constant_of(node: Any) -> tuple[np.ndarray | None, str]:
  """Returns the value of a constant, by its NodeDef, where it is small; else a digest of it."""
  tensor = node.attr['value'].tensor
  value = np.asarray(tf.make_ndarray(tensor))
  if value.size <= _LARGEST:
    return value, ''
  if value.dtype.kind == 'O':
    return None, ''
  described = f'{value.dtype.name} {value.shape} '.encode()
  return None, hashlib.sha256(described + np.ascontiguousarray(value).tobytes()).hexdigest()
