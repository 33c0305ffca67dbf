"""The inputs of a case, checked."""

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy import ma  # here, since numpy loads it, and changes, when it is first asked for

from tf2verify.errors import InputsError
from tf2verify.reference import inputs as case_inputs
from tf2verify.reference import nests
from tf2verify.sides.hooks.places import with_place

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
# Of Python's values: what they are in numpy, as TensorFlow converts them.
_PLAIN: Mapping[type, str] = {
  bool: 'np.bool_',
  int: 'np.int32',
  float: 'np.float32',
  complex: 'np.complex64',
  str: 'np.array',
  bytes: 'np.array',
}
# Of dtypes that TensorFlow does not have, by their kind: what to give instead.
_CASTS = {
  'M': "x.astype('int64') counts its units since 1970",
  'm': "x.astype('int64') counts its units",
  'V': 'give an array for each field, {name: x[name] for name in x.dtype.names}',
  'f': 'x.astype(np.float32) is what models usually take',
  'c': 'x.astype(np.complex64)',
  'T': "np.char.encode(x.astype('U'))",
}
_LONGEST_VALUE = 40


def _plain_slip(leaf: Any, parent: Any) -> str:
  """Returns what is meant by a value of Python's; '' if it is none."""
  plain = next((kind for kind in _PLAIN if isinstance(leaf, kind)), None)
  if plain is None:
    return ''
  of_list = isinstance(parent, (list, tuple)) and not hasattr(parent, '_fields')
  if of_list and not any(isinstance(child, np.ndarray) for child in parent):
    return 'a list means several inputs, each an array; return np.asarray(the list) for one'
  shown = repr(plain(leaf))
  value = shown if len(shown) <= _LONGEST_VALUE else 'x'
  return (
    f'write {_PLAIN[plain]}({value}); if it is a setting of the model and not fed, give it to '
    'both models in the hooks that create them'
  )


def _likely_slip(path: str, leaf: Any, parent: Any) -> str:
  if leaf is None:
    return 'usually a missing `return`' if not path else 'leave it out'
  kind = type(leaf).__name__
  for composite, parts in _PARTS.items():
    if kind.startswith(composite):
      return f'return its parts ({parts[0]}), of which each side makes it: {parts[1]}'
  if plain := _plain_slip(leaf, parent):
    return plain
  for method, said in (
    ('numpy', 'return `x.numpy()` instead'),
    ('__array__', 'return `np.asarray(x)` instead'),
    ('toarray', 'return `x.toarray()` instead'),
  ):
    if hasattr(leaf, method):
      return said
  if isinstance(leaf, Set):
    return 'a set has no order, which would differ between runs: return `np.array(sorted(x))`'
  if isinstance(leaf, Sequence):
    return 'return `np.asarray(x)` instead'
  if callable(leaf):
    return 'it was returned and not called: return the arrays that it makes'
  if isinstance(leaf, Iterable):
    return (
      'it can be read only one element after another: return `np.stack(list(x))` for one input, '
      '`list(x)` for several, each an array'
    )
  return 'return arrays made of what it holds'


def _check_leaf(place: str, path: str, leaf: Any, parent: Any) -> Any:
  if not isinstance(leaf, (np.ndarray, np.generic)):
    raise InputsError(
      f'{place} is of type {type(leaf).__name__}; inputs are nests of numpy arrays, so that both '
      f'sides get the same bytes: {_likely_slip(path, leaf, parent)}'
    )
  if isinstance(leaf, ma.MaskedArray) and ma.getmaskarray(leaf).any():
    count = int(ma.getmaskarray(leaf).sum())
    raise InputsError(
      f'{place} is a masked array ({count} of {leaf.size} elements masked); TensorFlow has none, '
      'and would be fed what the mask hides: return x.filled(value), and np.ma.getmaskarray(x) as '
      'a further input if the model takes a mask'
    )
  array = case_inputs.with_bytes(np.asarray(leaf))
  if array.dtype == object:
    if all(isinstance(element, numbers.Real) for element in array.flat):
      raise InputsError(
        f'{place} has dtype object, with numbers as elements, which TensorFlow is not fed; return '
        'x.astype(np.float32), or the dtype that the model takes in production'
      )
    raise InputsError(
      f'{place} has dtype object, with elements that are not all strings; usually rows of '
      "different length, or None: pad the rows, or give strings as np.array(..., dtype='S')"
    )
  if not case_inputs.is_dtype_of_tensorflow(array.dtype):
    raise InputsError(
      f'{place} has dtype {array.dtype}, which TensorFlow does not have; cast it to the dtype that '
      f'the model takes in production: {_CASTS.get(array.dtype.kind, "x.astype(np.float32)")}'
    )
  if np.issubdtype(array.dtype, np.inexact) and np.isnan(array).any():
    count = int(np.isnan(array).sum())
    raise InputsError(
      f'{place} contains NaN ({count} of {array.size} elements): every comparison downstream '
      'would compare NaN with NaN; replace them, as the model in production does'
    )
  return array


def _walk(nest: Any, path: str = '', parent: Any = None) -> Iterator[tuple[str, Any, Any]]:
  """Yields all that is in a nest, and itself: its path, and what it is in."""
  yield path, nest, parent
  if isinstance(nest, Mapping):
    children = [(f'{path}[{key!r}]', child) for key, child in nest.items()]
  elif isinstance(nest, tuple) and hasattr(nest, '_fields'):
    children = [(f'{path}.{name}', getattr(nest, name)) for name in nest._fields]
  elif isinstance(nest, (list, tuple)):
    children = [(f'{path}[{number}]', child) for number, child in enumerate(nest)]
  else:
    return
  for below, child in children:
    yield from _walk(child, below, nest)


def _check_keys(place: str, mapping: Mapping[Any, Any]) -> None:
  try:
    sorted(mapping)
  except TypeError as error:
    kinds: dict[str, Any] = {}  # the first key of each
    for key in mapping:
      kinds.setdefault(type(key).__name__, key)
    keys = ', '.join(f'{key!r:.{_LONGEST_VALUE}} ({kind})' for kind, key in kinds.items())
    raise InputsError(
      f'{place} has keys that cannot be sorted: {keys}; TensorFlow takes the entries of a '
      'dictionary in the order of their sorted keys: use keys of one type, as strings'
    ) from error


def checked_inputs(
  inputs: Any, hook: str = 'make_inputs', made_by: Callable[..., Any] | None = None
) -> Any:
  """Returns the nest of arrays as it will be fed.

  Args:
    inputs: what the hook returned.
    hook: its name, for error messages.
    made_by: the hook itself, whose place they name; None if there is none.

  Raises:
    InputsError: not numpy, a dtype that TensorFlow does not have, a mask, NaN, keys that cannot be
      sorted, no array or no element at all.
  """
  try:
    return _checked(inputs, f'{hook}()')
  except InputsError as error:
    raise InputsError(with_place(str(error), hook, made_by)) from error
  except RecursionError as error:
    said = f'{hook}() contains itself, or is nested too deeply; return arrays in a plain nest'
    raise InputsError(with_place(said, hook, made_by)) from error


def _checked(inputs: Any, place: str) -> Any:
  arrays: list[Any] = []
  parents = {}
  for path, child, parent in _walk(inputs):
    parents[path] = parent
    if isinstance(child, Mapping):
      _check_keys(place + path, child)
  checked = nests.map_leaves(
    lambda path, leaf: _check_leaf(place + path, path, leaf, parents.get(path)), inputs
  )
  nests.map_leaves(lambda _, leaf: arrays.append(leaf), checked)
  if not arrays:
    raise InputsError(
      f'{place} returned {inputs!r}, which contains no array; return the array, or the nest '
      'of arrays, that both sides take'
    )
  if not any(array.size for array in arrays):
    shapes = ', '.join(str(array.shape) for array in arrays[:3])
    raise InputsError(
      f'{place} returned arrays without any element (shape {shapes}): whatever is computed '
      'from them is empty and equal; give a batch of at least one'
    )
  return checked
