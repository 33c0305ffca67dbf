"""The inputs of a case, checked."""

from typing import Any

import numpy as np

from tf2verify.errors import InputsError
from tf2verify.reference import inputs as case_inputs
from tf2verify.reference import nests

# Of tensors that are made of others: their parts, and how they are made again.
_PARTS = {
  'RaggedTensor': (
    "{'values': x.flat_values.numpy(), 'splits': x.row_splits.numpy()}",
    'tf.RaggedTensor.from_row_splits(values, splits)',
  ),
  'SparseTensor': (
    "{'indices': x.indices.numpy(), 'values': x.values.numpy()}",
    'tf.SparseTensor(indices, values, dense_shape)',
  ),
}


def _likely_slip(path: str, leaf: Any) -> str:
  if leaf is None:
    return 'usually a missing `return`' if not path else 'leave it out'
  kind = type(leaf).__name__
  for composite, parts in _PARTS.items():
    if kind.startswith(composite):
      return f'return its parts ({parts[0]}), of which each side makes it: {parts[1]}'
  if hasattr(leaf, 'numpy'):
    return 'return `x.numpy()` instead'
  if path.endswith(']') and isinstance(leaf, (bool, int, float, complex, str, bytes)):
    return 'a list means several inputs, each an array; return np.asarray(the list) for one'
  return 'return `np.asarray(x)` instead'


def _check_leaf(path: str, leaf: Any, hook: str) -> Any:
  place = f'{hook}(){path}'
  if not isinstance(leaf, (np.ndarray, np.generic)):
    raise InputsError(
      f'{place} is of type {type(leaf).__name__}; inputs are nests of numpy arrays, so that both '
      f'sides get the same bytes: {_likely_slip(path, leaf)}'
    )
  array = case_inputs.with_bytes(np.asarray(leaf))
  if array.dtype == object:
    raise InputsError(
      f'{place} has dtype object, with elements that are not all strings; usually rows of '
      "different length, or None: pad the rows, or give strings as np.array(..., dtype='S')"
    )
  if np.issubdtype(array.dtype, np.inexact) and np.isnan(array).any():
    count = int(np.isnan(array).sum())
    raise InputsError(
      f'{place} contains NaN ({count} of {array.size} elements): every comparison downstream '
      'would compare NaN with NaN; replace them, as the model in production does'
    )
  return array


def checked_inputs(inputs: Any, hook: str = 'make_inputs') -> Any:
  """Returns the nest of arrays as it will be fed.

  Args:
    inputs: what the hook returned.
    hook: for error messages.

  Raises:
    InputsError: not numpy, dtype object, NaN, no array or no element at all.
  """
  arrays: list[Any] = []
  checked = nests.map_leaves(lambda path, leaf: _check_leaf(path, leaf, hook), inputs)
  nests.map_leaves(lambda _, leaf: arrays.append(leaf), checked)
  if not arrays:
    raise InputsError(
      f'{hook}() returned {inputs!r}, which contains no array; return the array, or the nest '
      'of arrays, that both sides take'
    )
  if not any(array.size for array in arrays):
    shapes = ', '.join(str(array.shape) for array in arrays[:3])
    raise InputsError(
      f'{hook}() returned arrays without any element (shape {shapes}): whatever is computed '
      'from them is empty and equal; give a batch of at least one'
    )
  return checked
