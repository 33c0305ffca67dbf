"""The manifest of a recording: what was recorded, by what, and which array is which."""

import hashlib

from tf2verify.errors import RecordingError
from tf2verify.recordings import strict_json
from tf2verify.recordings.consistency import check_references
from tf2verify.recordings.fields import (
  Malformed,
  count,
  inside,
  record,
)
from tf2verify.recordings.manifest_entries import Manifest
from tf2verify.reference.versions import KIND, SCHEMA, VERSIONS

_AGAIN = 'record again with the tf1_recorder.py of this tf2verify (python -m tf2verify recorder)'


_manifest = record(Manifest)


def parse_manifest(data: bytes, path: str) -> Manifest:
  """Returns the manifest, every field of it checked.

  Args:
    data: the bytes of manifest.json.
    path: of the recording, for messages.

  Raises:
    RecordingError: it is damaged, of another kind or version, or contradicts itself.
  """
  found = _json(data, path)
  try:
    _check_kind(found, path)
    _check_digest(found, path)
    _check_versions(found.get('versions'), path)
    for name in ('schema', 'kind', 'versions'):
      del found[name]
    manifest = _manifest(found)
    check_references(manifest)
  except Malformed as error:
    place = error.place.lstrip('.') or 'it'
    raise RecordingError(
      f'{path}: manifest.json is not a manifest of a recording: {place} {error.problem}; {_AGAIN}'
    ) from None
  return manifest


def _json(data: bytes, path: str) -> dict[str, object]:
  try:
    found = strict_json.loads(data)
    if not isinstance(found, dict):
      raise Malformed('is not a JSON object')
  except Malformed as error:
    raise RecordingError(
      f'{path}: manifest.json {error.problem}; it is damaged: copy the whole folder again, or '
      'record again'
    ) from None
  return found


def _check_kind(found: dict[str, object], path: str) -> None:
  if found.get('kind') != KIND:
    raise RecordingError(
      f'{path}: manifest.json is not that of a recording (no "kind": "{KIND}"); give the folder '
      'that tf1_recorder.py has written (--out)'
    )
  schema = found.get('schema')
  if isinstance(schema, bool) or not isinstance(schema, int):
    raise RecordingError(f'{path}: manifest.json has no schema number; {_AGAIN}')
  if schema > SCHEMA:
    raise RecordingError(
      f'{path}: the recording has schema {schema:.0f}, this tf2verify reads {SCHEMA}: update '
      'tf2verify, or record with its own recorder (python -m tf2verify recorder)'
    )
  if schema < SCHEMA:
    raise RecordingError(
      f'{path}: the recording has schema {schema:.0f}, this tf2verify reads {SCHEMA}; {_AGAIN}'
    )


def _check_digest(found: dict[str, object], path: str) -> None:
  fields = {name: value for name, value in found.items() if name != 'sha256'}
  if found.get('sha256') != hashlib.sha256(strict_json.canonical(fields)).hexdigest():
    raise RecordingError(
      f'{path}: manifest.json was changed (its sha256 differs); copy the whole '
      'recording again; to change something, record again'
    )


def _check_versions(found: object, path: str) -> None:
  if not isinstance(found, dict) or found.keys() != VERSIONS.keys():
    raise Malformed('does not have the versions ' + ', '.join(VERSIONS), '.versions')
  for name, known in VERSIONS.items():
    version = inside(f'.versions.{name}', count, found[name])
    if version != known:
      raise RecordingError(
        f'{path}: the recording was made with version {version} of "{name}", this tf2verify has '
        f'version {known}, so the numbers cannot be compared; {_AGAIN}'
      )
