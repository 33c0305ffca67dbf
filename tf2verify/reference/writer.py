"""The arrays of a recording, written."""

import collections.abc
import io
import os
import zipfile
import zlib
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .arrays import Array, array_digest, encoded_strings, is_bfloat16, is_string
from .errors import RecorderError
from .held_array import HeldArray
from .perturbation import fraction_bits
from .sampling import BLOCK, SAMPLES

LARGEST_ARRAY = 65536
LARGEST_ARRAY_OF_LARGE_MODEL = 4096
STEP_SAMPLES = 256  # and no means, of each large array of each training step
_LARGEST_FILE = 48 * 2**20  # bytes of arrays in one .npz


class Writer:
  """Writes the arrays of a recording, each set of bytes once."""

  def __init__(self, folder: str, largest_array: Optional[int], compress: bool) -> None:
    self.folder = folder
    self.largest_array = LARGEST_ARRAY if largest_array is None else largest_array
    self.sparing = False
    self.entries: Dict[str, Dict[str, Any]] = {}
    self._compress = compress
    self._may_spare = largest_array is None
    self._known: Dict[str, str] = {}
    self._waiting: List[Tuple[str, Array]] = []
    self._waiting_bytes = 0
    self._files = 0

  def spare(self) -> None:
    """Stores less of what follows, since the model is large."""
    self.sparing = True
    if self._may_spare:
      self.largest_array = LARGEST_ARRAY_OF_LARGE_MODEL

  def hold(
    self, array: Any, whole: bool = False, with_digest: bool = True, of_step: bool = False
  ) -> HeldArray:
    """Returns an array as it will be stored."""
    array = np.asarray(array)
    if whole or array.size <= self.largest_array or not fraction_bits(array.dtype):
      return HeldArray(array, with_digest=with_digest)
    if of_step and self.sparing:
      return HeldArray(array, STEP_SAMPLES, 0, with_digest)
    return HeldArray(array, SAMPLES, BLOCK, with_digest)

  def add(self, array: Any, whole: bool = True) -> str:
    """Stores an array, or what `hold` gave, and returns its id."""
    held = array if isinstance(array, HeldArray) else self.hold(array, whole)
    key = '{} {}'.format(held.digest, held.values.size)  # whole, or of so many samples
    if key not in self._known:
      self._known[key] = self._store(held)
    return self._known[key]

  def nest(self, nest: Any) -> Dict[str, Any]:
    """Stores the arrays of a nest and returns its entry of the manifest."""
    if nest is None:
      return {'none': True}
    if isinstance(nest, collections.abc.Mapping):
      if not all(isinstance(key, str) for key in nest):
        raise RecorderError(
          'a dictionary of arrays has the keys {!r}; use strings'.format(list(nest))
        )
      return {'dict': {key: self.nest(nest[key]) for key in nest}}
    if isinstance(nest, tuple) and hasattr(nest, '_fields'):
      parts = [[name, self.nest(getattr(nest, name))] for name in nest._fields]
      return {'namedtuple': type(nest).__name__, 'fields': parts}
    if isinstance(nest, (list, tuple)):
      return {type(nest).__name__ if type(nest) is list else 'tuple': [self.nest(c) for c in nest]}
    return {'array': self.add(nest)}

  def close(self) -> None:
    """Writes what is still waiting."""
    if self._waiting:
      name = 'arrays-{:03d}.npz'.format(self._files)
      self._files += 1
      with zipfile.ZipFile(os.path.join(self.folder, name), 'w', allowZip64=True) as archive:
        for key, array in self._waiting:
          self._write(archive, key, array)
          if key in self.entries:
            self.entries[key]['file'] = name
      self._waiting, self._waiting_bytes = [], 0

  def _store(self, held: HeldArray) -> str:
    name = 'a{}'.format(len(self.entries))
    values, encoding = held.values, 'plain'
    dtype, shape = values.dtype.name, list(values.shape)
    parts = [(name, values)]
    if is_bfloat16(values.dtype):
      encoding, parts = 'bfloat16', [(name, values.view(np.uint16))]
    elif is_string(values):
      lengths, texts = encoded_strings(values)
      dtype, encoding, parts = 'string', 'string', [(name, texts), (name + '.lengths', lengths)]
    size = sum(int(part.nbytes) for _, part in parts)
    if self._waiting_bytes + size > _LARGEST_FILE:
      self.close()
    self._waiting += parts
    self._waiting_bytes += size
    self.entries[name] = {
      'file': '',
      'key': name,
      'dtype': dtype,
      'shape': shape,
      'sha256': held.digest if held.sampled is None else array_digest(values),
      'encoding': encoding,
      'sampled': held.sampled,
    }
    return name

  def _write(self, archive: zipfile.ZipFile, key: str, array: Array) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array, order='C'), allow_pickle=False)
    data = buffer.getvalue()
    info = zipfile.ZipInfo(key + '.npy')  # of a fixed date, so that equal arrays give equal files
    info.external_attr = 0o644 << 16
    if self._compress and _compresses(data):
      info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def _compresses(data: bytes) -> bool:
  """Returns whether compressing is worth its time, by a part from the middle."""
  middle = len(data) // 2
  part = data if len(data) < 2**16 else data[middle : middle + 2**15]
  return len(zlib.compress(part, 1)) < 0.95 * len(part)
