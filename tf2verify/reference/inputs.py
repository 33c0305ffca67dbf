"""The arrays that a model is fed."""

import zlib
from typing import Any, List, Tuple

import numpy as np
import tensorflow as tf

from .arrays import Array
from .errors import RecorderError
from .nests import map_leaves


def normal_inputs(shape: Tuple[int, ...], seed: int = 0) -> Array:
  """Returns seeded standard normal values.

  Mixed sign and no two elements alike: constant inputs hide porting mistakes,
  and make gradients through batch norm pure rounding.

  Args:
    shape: of the array.
    seed: 0 to 2**32 - 1; the same seed gives the same values in every version.

  Returns:
    A float32 array.
  """
  return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def varied_inputs(inputs: Any) -> Tuple[Any, Tuple[str, ...]]:
  """Replaces floating inputs whose elements are all the same by seeded normal values.

  An image of ones, a zero initial state: they hide what depends on position.

  Returns:
    The nest, and the paths that were replaced.
  """
  replaced: List[str] = []

  def vary(path: str, leaf: Array) -> Array:
    if leaf.dtype.kind != 'f' or leaf.size < 2 or np.any(leaf != leaf.flat[0]):
      return leaf
    replaced.append(path or 'the input')
    varied = leaf + normal_inputs(leaf.shape, zlib.crc32(path.encode()))
    return np.asarray(varied.astype(leaf.dtype))

  return map_leaves(vary, inputs), tuple(replaced)


def with_bytes(array: Array) -> Array:
  """Returns an array of Python's strings, as pandas has them, as one of bytes; or itself."""
  if array.dtype != object or not array.size:
    return array
  if not all(isinstance(one, (str, bytes)) for one in array.flat):
    return array
  encoded = [one.encode('utf-8') if isinstance(one, str) else one for one in array.flat]
  return np.asarray(encoded, 'S').reshape(array.shape)


def is_dtype_of_tensorflow(dtype: Any) -> bool:
  """Returns whether TensorFlow has a dtype of numpy's; not longdouble, dates and structures."""
  try:
    tf.as_dtype(dtype.newbyteorder('='))
  except TypeError:
    return False
  return True


def checked_arrays(nest: Any, what: str) -> Any:
  """Returns the nest with numpy arrays as its leaves, as they are fed.

  Raises:
    RecorderError: a leaf is not an array, of dtype object, or of one that TensorFlow does not have,
      or holds NaN; or there is none.
  """
  count = [0]

  def check(path: str, leaf: Any) -> Array:
    place = what + path
    if not isinstance(leaf, (np.ndarray, np.generic)):
      raise RecorderError(
        '{} is of type {}; give numpy arrays, in tuples, lists and dictionaries: np.asarray(x)'
        ''.format(place, type(leaf).__name__)
      )
    array = with_bytes(np.asarray(leaf, order='C'))
    if array.dtype == object:
      raise RecorderError(
        '{} has dtype object, with elements that are not all strings: usually rows of different '
        "length, or None; pad the rows, or give strings as np.array(..., dtype='S')".format(place)
      )
    if not is_dtype_of_tensorflow(array.dtype):
      raise RecorderError(
        '{} has dtype {}, which TensorFlow does not have; cast it to the dtype that the model '
        'takes in production, as x.astype(np.float32)'.format(place, array.dtype)
      )
    if array.dtype.kind in 'fc' and np.isnan(array).any():
      raise RecorderError(
        '{} contains NaN ({} of {} elements): every comparison would compare NaN with NaN; '
        'replace them, as the model in production does'
        ''.format(place, int(np.isnan(array).sum()), array.size)
      )
    count[0] += array.size
    if array.dtype.kind == 'U':
      return np.char.encode(array, 'utf-8')
    return array.astype(array.dtype.newbyteorder('='), copy=False)

  checked = map_leaves(check, nest)
  if not count[0]:
    raise RecorderError(
      'the {} hold no array with any element; give a batch of at least one'.format(what)
    )
  return checked
