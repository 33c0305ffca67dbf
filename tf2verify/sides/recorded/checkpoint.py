"""The checkpoint that a recording names, where it is here."""

import os
from typing import Any

from tf2verify.errors import NotApplicable, RecordingError
from tf2verify.recordings.recording import Recording
from tf2verify.reference.arrays import array_digest
from tf2verify.sides.tf1.checkpoint import CheckpointFile, name_based


def checkpoint_path(recording: Recording, case: Any) -> str:
  """Returns the path of a case's checkpoint, that of the recording where the case has none.

  Raises:
    CheckpointError: it cannot be read.
    NotApplicable: that of the recording is not here.
    RecordingError: it holds something else than was recorded.
  """
  entry = recording.manifest.checkpoint
  own = case.declares('tf1_checkpoint')
  path = case.tf1_checkpoint() if own or entry is None else entry.path
  if entry is None:
    return str(path)
  if not own and not (os.path.isfile(f'{path}.index') or os.path.isfile(path)):
    raise NotApplicable(
      f'the recording names the checkpoint {path}, which is not here: copy its files, and declare '
      'tf1_checkpoint in the case'
    )
  file = name_based(path, 'tf1_checkpoint')
  problem = _difference(recording, file)
  if problem:
    raise RecordingError(
      f'{file.path} is not the checkpoint that {recording.path} was recorded with: {problem}; copy '
      f'{entry.path} from where it was recorded, or record again with --checkpoint'
    )
  return str(path)


def _difference(recording: Recording, file: CheckpointFile) -> str:
  """Returns the first thing that a checkpoint holds differently; '' where there is none."""
  entry = recording.manifest.checkpoint
  assert entry is not None, 'asked for with one only'
  known, keys = {key.name: key for key in entry.keys}, {key.name: key for key in file.keys}
  for name in sorted(known.keys() ^ keys.keys()):
    return f'{name} is only in {"the recorded one" if name in known else "this one"}'
  for name, key in keys.items():
    if (key.shape, key.dtype) != (known[name].shape, known[name].dtype):
      recorded = f'{known[name].shape} {known[name].dtype}'
      return f'{name} is of {key.shape} {key.dtype}, and was of {recorded}'
    if array_digest(file.value(name)) != known[name].sha256:
      return f'{name} has other values'
  return ''
