"""A recording of a TF1 side: opened, verified, and read array by array."""

import collections
import os
import stat
import threading
import types
import weakref
from typing import Any

import numpy as np

from tf2verify.errors import RecordingError
from tf2verify.recordings import observations
from tf2verify.recordings.array_entries import ArrayEntry, Nest, TensorEntry
from tf2verify.recordings.array_files import ArrayFiles
from tf2verify.recordings.graph_entries import GraphEntry
from tf2verify.recordings.manifest import parse_manifest
from tf2verify.recordings.manifest_entries import Manifest
from tf2verify.recordings.run_entries import RunEntry
from tf2verify.records.observation import Observation
from tf2verify.records.sampled import SampledArray
from tf2verify.records.training import LossObservation, TrainingRun
from tf2verify.reference import noise_codes
from tf2verify.reference.arrays import array_digest, widened

_Array = np.ndarray[Any, Any]

MANIFEST = 'manifest.json'
_MOST_MANIFEST_BYTES = 256 * 2**20
# Of the arrays read last; others are read, and verified, again.
_KEPT_BYTES = 256 * 2**20


class Recording:
  """A folder that the recorder has written.

  Nothing that is read is executed, and no array is given out before its bytes are known
  to be those that were recorded.

  Attributes:
    path: of the folder.
    manifest: what it holds.
  """

  def __init__(self, path: str, manifest: Manifest) -> None:
    """Takes a manifest that was read; `open` does both."""
    self.path = path
    self.manifest = manifest
    self._files = ArrayFiles(path, manifest.arrays.values())
    # One object for each id as long as anybody holds it.
    self._held: weakref.WeakValueDictionary[str, _Array] = weakref.WeakValueDictionary()
    self._kept: collections.OrderedDict[str, _Array] = collections.OrderedDict()
    self._kept_bytes = 0
    self._lock = threading.Lock()

  @classmethod
  def open(cls, path: str) -> 'Recording':
    """Reads and checks the manifest; arrays are read when they are asked for.

    Raises:
      RecordingError: the folder is not a recording, or one that cannot be used.
    """
    return cls(path, parse_manifest(_manifest_bytes(path), path))

  def check(self) -> None:
    """Reads every array and verifies it.

    Raises:
      RecordingError: one is missing or not as it was recorded.
    """
    for name in self.manifest.arrays:
      self.array(name)
    for graph in self.manifest.graphs:
      self.op_sources(graph)

  def close(self) -> None:
    """Lets go of files and arrays."""
    with self._lock:
      self._files.close()
      self._kept.clear()
      self._kept_bytes = 0

  def __enter__(self) -> 'Recording':
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: types.TracebackType | None,
  ) -> None:
    self.close()

  @property
  def files(self) -> tuple[tuple[str, int], ...]:
    """Name and bytes of the files with arrays."""
    return tuple((name, self._files.size(name)) for name in self._files.names)

  def other_files(self) -> tuple[str, ...]:
    """Returns the names of what lies in the folder and is not a part of the recording."""
    known = {MANIFEST, *self._files.names}
    try:
      return tuple(sorted(name for name in os.listdir(self.path) if name not in known))
    except OSError:
      return ()

  def array(self, name: str) -> _Array:
    """Returns an array by its id, read-only; the same object while anybody holds it.

    Returns:
      A `SampledArray` where it was sampled. Text comes as bytes (dtype `S`), or as objects
      where an element ends in a zero byte, which `S` does not keep.

    Raises:
      RecordingError: it is missing or not as it was recorded.
    """
    with self._lock:
      found = self._held.get(name)
      if found is None:
        found = self._read(name, self.manifest.arrays[name])
        self._held[name] = found
        self._keep(name, found)
      return found

  def nest(self, nest: Nest) -> Any:
    """Returns the arrays of a nest, in tuples, lists, dictionaries and named tuples."""
    if nest.kind == 'array':
      return self.array(nest.array)
    parts = {n: self.nest(child) for n, (_, child) in enumerate(nest.children)}
    labels = [label for label, _ in nest.children]
    if nest.kind == 'none':
      return None
    if nest.kind == 'dict':
      return dict(zip(labels, parts.values(), strict=True))
    if nest.kind == 'namedtuple':
      try:
        return collections.namedtuple(nest.name, labels)(*parts.values())
      except ValueError:
        raise RecordingError(
          f'{self.path}: a nest has the named tuple {nest.name}, for which no class can be '
          'created; record again'
        ) from None
    return list(parts.values()) if nest.kind == 'list' else tuple(parts.values())

  @property
  def inputs(self) -> Any:
    """The nest of inputs as they were given."""
    return self.nest(self.manifest.inputs)

  @property
  def varied_inputs(self) -> Any:
    """The nest of inputs with constant ones replaced."""
    return self.nest(self.manifest.varied_inputs)

  @property
  def labels(self) -> Any:
    """The nest of labels; None without any."""
    return None if self.manifest.labels is None else self.nest(self.manifest.labels)

  def tensor(
    self, entry: TensorEntry | None, moved: bool = False, again: bool = False
  ) -> _Array | None:
    """Returns the value of a tensor.

    Args:
      entry: None gives None.
      moved: with its noise added, in float64 (complex128); NaN where the noise is unknown.
      again: as a second run gave it: None where it did not repeat.
    """
    if entry is None or (again and not entry.repeats):
      return None
    value = self.array(entry.value)
    if not moved or entry.noise is None:
      return value
    noise = noise_codes.noise_of_codes(self.array(entry.noise), np.asarray(value))
    with_noise: _Array = np.asanyarray(widened(value) + noise)
    return with_noise

  def graph_def(self, graph: GraphEntry, constant: bool = False) -> bytes:
    """Returns a serialized GraphDef.

    Args:
      graph: one of the manifest's.
      constant: that for seed mode `constant`, where it was stored by itself.
    """
    own = graph.constant_graph_def if constant else None
    return self.array(graph.graph_def if own is None else own).tobytes()

  def op_sources(self, graph: GraphEntry) -> _Array:
    """Returns for every node of a graph the index of its source line, -1 for none.

    Raises:
      RecordingError: one refers to a line that is not there.
    """
    found = self.array(graph.op_sources)
    if np.any(found < -1) or np.any(found >= len(graph.sources)):
      raise RecordingError(
        f'{self.path}: {graph.op_sources} refers to source lines that are not there; record again'
      )
    return found

  def observation(self, run: RunEntry, moved: bool = False, again: bool = False) -> Observation:
    """Returns what a run yielded; see `tensor` for `moved` and `again`."""
    return observations.observation(self, run, moved, again)

  def losses(self, moved: bool = False, again: bool = False) -> LossObservation | None:
    """Returns the losses in the model; None where none were recorded."""
    return observations.losses(self, moved, again)

  def steps(self, moved: bool = False, again: bool = False) -> TrainingRun | None:
    """Returns the training steps; None where none were recorded."""
    return observations.steps(self, moved, again)

  def _read(self, name: str, entry: ArrayEntry) -> _Array:
    stored, lengths = self._files.read(entry)
    found = self._decoded(name, entry, stored, lengths)
    self._check_digest(found, name, entry)
    if entry.sampled is not None:
      how = entry.sampled
      found = SampledArray(found, how.shape, how.samples, how.block, how.sha256)
    found.flags.writeable = False
    return found

  def _check_digest(self, found: _Array, name: str, entry: ArrayEntry) -> None:
    if array_digest(found) != entry.sha256:
      raise self._other_bytes(name, entry)

  def _decoded(
    self, name: str, entry: ArrayEntry, stored: _Array, lengths: _Array | None
  ) -> _Array:
    if entry.encoding == 'bfloat16':
      import ml_dtypes  # comes with TensorFlow; a recording without bfloat16 does not need it

      return stored.view(ml_dtypes.bfloat16)
    if lengths is None:
      return stored
    if (lengths < 0).any() or (lengths > stored.size).any() or lengths.sum() != stored.size:
      raise self._other_bytes(name, entry)
    ends = np.cumsum(lengths.reshape(-1)).tolist()
    data = stored.tobytes()
    texts = [data[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    if any(text.endswith(b'\0') for text in texts):
      found = np.empty(len(texts), object)
      found[:] = texts
    else:
      found = np.array(texts, 'S') if texts else np.zeros(0, 'S1')
    return found.reshape(entry.shape)

  def _other_bytes(self, name: str, entry: ArrayEntry) -> RecordingError:
    return RecordingError(
      f'{os.path.join(self.path, entry.file)}: array {name} was changed (its sha256 '
      'differs); the file is damaged or belongs to a different recording: copy the whole folder '
      'again, or '
      'record again'
    )

  def _keep(self, name: str, found: _Array) -> None:
    self._kept[name] = found
    self._kept_bytes += found.nbytes
    while self._kept_bytes > _KEPT_BYTES:
      _, dropped = self._kept.popitem(last=False)
      self._kept_bytes -= dropped.nbytes


def _manifest_bytes(path: str) -> bytes:
  name = os.path.join(path, MANIFEST)
  if not os.path.isdir(path):
    what = 'is a file' if os.path.exists(path) else 'does not exist'
    raise RecordingError(
      f'recording {path}: it {what}; give the folder that tf1_recorder.py has written (--out)'
    )
  if not os.path.lexists(name):
    raise RecordingError(
      f'recording {path}: there is no {MANIFEST} in it; give the folder that tf1_recorder.py has '
      'written (--out). A folder with ".partial" in its name is one that was not finished'
    )
  try:
    if os.path.dirname(os.path.realpath(name)) != os.path.realpath(path):
      raise RecordingError(
        f'{name}: it is a link that leads out of the folder; put the file itself there (cp -rL '
        'copies what links lead to)'
      )
    found = os.stat(name)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_MANIFEST_BYTES:
      raise RecordingError(
        f'{name}: it is not a file of less than {_MOST_MANIFEST_BYTES:,} bytes; copy the whole '
        'folder '
        'again'
      )
    with open(name, 'rb') as file:
      return file.read(_MOST_MANIFEST_BYTES + 1)
  except OSError as error:
    raise RecordingError(
      f'{name}: it cannot be read: {error.strerror}; make it readable, or copy the folder again'
    ) from None
