"""The manifest of a recording: what was recorded, by what, and which array is which."""

import dataclasses
import hashlib

from tf2verify.errors import RecordingError
from tf2verify.recordings import strict_json, training_entries
from tf2verify.recordings.array_entries import ArrayEntry, Nest, nest
from tf2verify.recordings.consistency import check_references
from tf2verify.recordings.fields import (
  Malformed,
  anything,
  by_key,
  count,
  digest,
  flag,
  inside,
  key,
  maybe,
  named,
  one_of,
  parsed,
  record,
  several,
  text,
)
from tf2verify.recordings.graph_entries import GraphEntry, graph
from tf2verify.recordings.run_entries import FilledEntry, RunEntry, SeededEntry, run
from tf2verify.recordings.training_entries import CheckpointEntry, LossesEntry, StepsEntry

SCHEMA = 1
KIND = 'tf2verify recording'
# Of everything that both sides have to do alike for their numbers to be comparable.
VERSIONS = {'recorder': 1, 'fill': 1, 'seeds': 1, 'loss': 1, 'sampling': 1, 'noise': 1}
_AGAIN = 'record again with the tf1_recorder.py of this tf2verify (python -m tf2verify recorder)'


@dataclasses.dataclass(frozen=True)
class SourceFile:
  """A file of the user's code.

  Attributes:
    path: relative to the folder in which it was recorded.
    sha256: of its bytes.
  """

  path: str = parsed(text)
  sha256: str = parsed(digest)


@dataclasses.dataclass(frozen=True)
class BuilderEntry:
  """What built the graphs.

  Attributes:
    name: `module:function`.
    sources: the user's files that it imported.
  """

  name: str = parsed(text)
  sources: tuple[SourceFile, ...] = parsed(several(record(SourceFile)))


@dataclasses.dataclass(frozen=True)
class IntermediateRun:
  """Tensors of a run between inputs and outputs.

  Attributes:
    run: index among the runs.
    tensors: name and id of the array.
  """

  run: int = parsed(count)
  tensors: tuple[tuple[str, str], ...] = parsed(named(key))


@dataclasses.dataclass(frozen=True)
class IntermediatesEntry:
  """Intermediate tensors.

  Attributes:
    level: `none`, `summary` (a few elements of each) or `full`.
    runs: those that they were taken of.
  """

  level: str = parsed(one_of('none', 'summary', 'full'))
  runs: tuple[IntermediateRun, ...] = parsed(several(record(IntermediateRun)))


@dataclasses.dataclass(frozen=True)
class Manifest:
  """All that a recording holds; docs/recordings.md describes every field."""

  sha256: str = parsed(digest)
  made: str = parsed(text)
  environment: dict[str, str] = parsed(by_key(text))
  builder: BuilderEntry = parsed(record(BuilderEntry))
  arguments: dict[str, object] = parsed(by_key(anything))
  training_modes: tuple[bool, ...] = parsed(several(flag))
  arrays: dict[str, ArrayEntry] = parsed(by_key(record(ArrayEntry)))
  inputs: Nest = parsed(nest)
  varied_inputs: Nest = parsed(nest)
  replaced_inputs: tuple[str, ...] = parsed(several(text))
  labels: Nest | None = parsed(maybe(nest))
  fills: dict[str, dict[str, str | None]] = parsed(by_key(by_key(maybe(digest))))
  graphs: tuple[GraphEntry, ...] = parsed(several(graph))
  runs: tuple[RunEntry, ...] = parsed(several(run))
  losses: LossesEntry | None = parsed(maybe(training_entries.losses))
  steps: StepsEntry | None = parsed(maybe(training_entries.steps))
  checkpoint: CheckpointEntry | None = parsed(maybe(training_entries.checkpoint))
  intermediates: IntermediatesEntry = parsed(record(IntermediatesEntry))

  def graph(self, training: bool) -> GraphEntry | None:
    """Returns the graph of a training mode; None where it was not recorded."""
    return next((found for found in self.graphs if found.training == training), None)

  def filled(
    self, training: bool, fill: str, inputs: str, with_gradients: bool
  ) -> FilledEntry | None:
    """Returns a run from filled variables; None where it was not recorded.

    Args:
      training: the training mode.
      fill: the fill's description.
      inputs: `varied` or `given`.
      with_gradients: whether its gradients are wanted.
    """
    wanted = training, fill, inputs, with_gradients
    for found in self.runs:
      if isinstance(found, FilledEntry) and wanted == (
        found.training,
        found.fill,
        found.inputs,
        found.with_gradients,
      ):
        return found
    return None

  def seeded(self, mode: str, training: bool) -> SeededEntry | None:
    """Returns a run from seeded initial values; None where it was not recorded."""
    for found in self.runs:
      if isinstance(found, SeededEntry) and (found.mode, found.training) == (mode, training):
        return found
    return None


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
      f'{path}: manifest.json is no manifest of a recording: {place} {error.problem}; {_AGAIN}'
    ) from None
  return manifest


def _json(data: bytes, path: str) -> dict[str, object]:
  try:
    found = strict_json.loads(data)
    if not isinstance(found, dict):
      raise Malformed('is no JSON object')
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
      f'{path}: manifest.json is not as it was written (its sha256 is another); copy the whole '
      'recording again; to change something, record again'
    )


def _check_versions(found: object, path: str) -> None:
  if not isinstance(found, dict) or found.keys() != VERSIONS.keys():
    raise Malformed('has not the versions ' + ', '.join(VERSIONS), '.versions')
  for name, known in VERSIONS.items():
    version = inside(f'.versions.{name}', count, found[name])
    if version != known:
      raise RecordingError(
        f'{path}: the recording was made with version {version} of "{name}", this tf2verify has '
        f'version {known}, so the numbers cannot be compared; {_AGAIN}'
      )
