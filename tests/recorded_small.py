"""A recording of `small_case.model`, made here, and cases of it; and how to alter one."""

import contextlib
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import tf2verify
from tests import small_case
from tf2verify.recordings.strict_json import canonical
from tf2verify.reference import recording
from tf2verify.reference.arrays import array_digest

INPUTS = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)


def build(inputs: Any, training: bool) -> Any:
  """The reference."""
  return small_case.model(inputs, training)


def record(folder: str, builder: Callable[..., Any] = build, **options: Any) -> str:
  """Records a builder into a new folder and returns its path."""
  out = os.path.join(tempfile.mkdtemp(dir=folder), 'recording')
  given = options.pop('inputs', INPUTS)
  with contextlib.redirect_stderr(io.StringIO()):
    return recording.record(builder, given, out, **options)


def case_of(path: str, base: type = object, **members: Any) -> type[tf2verify.EquivalenceCase]:
  """Returns a case of the small port with a recording."""
  bases = (tf2verify.EquivalenceCase,) if base is object else (base, tf2verify.EquivalenceCase)
  given = {'make_tf2_layer': lambda self: small_case.Port(), 'tf1_recording': path, **members}
  return type('RecordedCase', bases, {'__module__': __name__, **given})


def altered(path: str, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> str:
  """Changes a recording as its author could, with digests that fit, and returns its path.

  Args:
    path: of the recording, which is changed in place.
    change: is given the manifest and the arrays by id, and changes them.
  """
  name = os.path.join(path, 'manifest.json')
  with open(name, encoding='utf-8') as file:
    manifest = json.load(file)
  files = sorted({entry['file'] for entry in manifest['arrays'].values()})
  stored = {}
  for file_name in files:
    with np.load(os.path.join(path, file_name)) as loaded:
      stored[file_name] = {key: loaded[key] for key in loaded.files}
  arrays = {name: stored[entry['file']][entry['key']] for name, entry in manifest['arrays'].items()}
  change(manifest, arrays)
  for array_name, entry in manifest['arrays'].items():
    value = arrays[array_name]
    if entry['encoding'] == 'plain':
      entry.update(shape=list(value.shape), dtype=value.dtype.name, sha256=array_digest(value))
    stored[entry['file']][entry['key']] = value
  for file_name in files:
    np.savez(os.path.join(path, file_name), **stored[file_name])
  del manifest['sha256']
  manifest['sha256'] = hashlib.sha256(canonical(manifest)).hexdigest()
  with open(name, 'wb') as file:
    file.write(canonical(manifest))
  return path
