"""Arrays read from files."""

import zipfile
import zlib
from typing import Any

import numpy as np

from .errors import RecorderError


def load_arrays(path: str, what: str) -> Any:
  """Reads a .npz or .npy file: one array, a tuple (`arr_0`, ...), or a dictionary."""
  try:
    found = np.load(path, allow_pickle=False)
    if not hasattr(found, 'files'):
      return found
    arrays = {name: found[name] for name in found.files}
  except OSError as error:
    raise RecorderError(
      '--{} {} cannot be read: {}'.format(what, path, error.strerror or error)
    ) from None
  except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
    pickled = 'allow_pickle' in str(error)  # numpy takes any other file for one of objects
    why = 'it is not a file of plain arrays' if pickled else str(error).rstrip('.')
    raise RecorderError(
      '--{} {} cannot be read: {}; write it by np.savez, with arrays of numbers'.format(
        what, path, why
      )
    ) from None
  numbered = ['arr_{}'.format(n) for n in range(len(arrays))]
  if set(arrays) in ({'arr_0'}, {'inputs'}, {'labels'}):
    return next(iter(arrays.values()))
  if set(arrays) == set(numbered):
    return tuple(arrays[name] for name in numbered)
  return arrays
