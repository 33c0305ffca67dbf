"""Files that code of TensorFlow and of HDF5 opens, which Python does not see."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from tensorflow.python.lib.io import _pywrap_file_io
from tensorflow.python.util import _pywrap_checkpoint_reader

_READERS = (
  (_pywrap_file_io, 'BufferedInputStream'),
  (_pywrap_file_io, 'FileExists'),
  (_pywrap_file_io, 'GetChildren'),
  (_pywrap_file_io, 'GetMatchingFiles'),
  (_pywrap_file_io, 'IsDirectory'),
  (_pywrap_file_io, 'ReadFileToString'),
  (_pywrap_file_io, 'Stat'),
  (_pywrap_file_io, 'WritableFile'),
  (_pywrap_checkpoint_reader, 'CheckpointReader'),
)


@contextlib.contextmanager
def told(tell: Callable[[str], object]) -> Iterator[None]:
  """Calls `tell` with the name of what is used to read files, until exit."""
  with contextlib.ExitStack() as stack:
    hdf5 = sys.modules.get('h5py.h5f')  # by which Keras reads weights
    for module, name in (*_READERS, *([(hdf5, 'open')] if hdf5 is not None else [])):
      reader = getattr(module, name, None)
      if reader is not None:
        stack.enter_context(mock.patch.object(module, name, _telling(reader, name, tell)))
    yield


def _telling(reader: Any, name: str, tell: Callable[[str], object]) -> Callable[..., Any]:
  def telling(*arguments: Any, **keywords: Any) -> Any:
    tell(name)
    return reader(*arguments, **keywords)

  return telling
