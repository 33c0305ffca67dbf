"""Rows of a journal: what they hold, and the digest that tells whether one was changed."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

from tf2verify.errors import Tf2VerifyError
from tf2verify.fleet.results import Discovery, Entry, Run
from tf2verify.records.resources import Resources
from tf2verify.records.status import Status

# The columns that a digest covers, and what they hold. The digest of a result covers those
# of its verdict and deviations as well, so that an entry can be read without them.
COLUMNS: Mapping[str, Mapping[str, type]] = {
  'runs': {
    'run': int,
    'started': str,
    'ended': str,
    'arguments': str,
    'versions': str,
    'shard': str,
    'planned': str,
  },
  'results': {
    'run': int,
    'target': str,
    'status': str,
    'attempt': int,
    'ended': str,
    'seconds': float,
    'memory': int,
    'files': str,
    'stages': str,
    'kept_from': int,
    'verdict_sha256': str,
    'deviations_sha256': str,
  },
  'discoveries': {'place': str, 'files': str, 'cases': str},
  'journal': {'identity': str, 'runs': int},
}
# Those that may be absent.
_NULLABLE = ('ended', 'verdict_sha256', 'deviations_sha256')
_ENTRY = tuple(name for name in COLUMNS['results'] if not name.endswith('_sha256'))
DIGEST = 'digest'


class RowError(Exception):
  """A row that is not as it was written; the message says how, to follow its name."""


def new_identity() -> str:
  """Returns what tells a journal from all others."""
  return secrets.token_hex(16)


def content_digest(content: str | bytes | None) -> str | None:
  """Returns the digest of a verdict or of deviations; None without them."""
  if content is None:
    return None
  data = content.encode() if isinstance(content, str) else content
  return hashlib.sha256(data).hexdigest()


def digest_of(identity: str, table: str, row: Mapping[str, Any]) -> str:
  """Returns the digest of a row.

  Args:
    identity: of the journal, since rows of two have the same runs and targets.
    table: its table.
    row: its columns by name; also others than those that are covered.
  """
  covered = [[name, row[name]] for name in COLUMNS[table]]
  return hashlib.sha256(json.dumps([identity, table, covered]).encode()).hexdigest()


def check_row(table: str, row: Mapping[str, Any], identity: str | None) -> None:
  """Checks types and digest of a row.

  Args:
    table: its table.
    row: its columns by name, and its digest.
    identity: of the journal; None for one from before there were digests.

  Raises:
    RowError: the row is not as it was written.
  """
  for name, kind in COLUMNS[table].items():
    if name not in row:
      continue
    value = row[name]
    if type(value) is not kind and not (value is None and name in _NULLABLE):
      raise RowError(f'its column {name} holds {value!r:.40}, and {kind.__name__} was written')
  if identity is not None and row[DIGEST] != digest_of(identity, table, row):
    raise RowError('its digest is that of different contents: it was changed after it was written')


def run_of(row: Mapping[str, Any]) -> Run:
  """Returns the run of a checked row.

  Raises:
    RowError: the row is not as it was written.
  """
  return Run(
    row['run'],
    row['started'],
    row['ended'] or '',
    _texts_by_name(row, 'versions'),
    row['shard'],
    _texts(row, 'planned'),
  )


def entry_of(row: Mapping[str, Any]) -> Entry:
  """Returns the entry of a checked row.

  Raises:
    RowError: the row is not as it was written.
  """
  fields = {name: row[name] for name in _ENTRY}
  names = [status.value for status in Status]
  if row['status'] not in names or row['ended'] is None:
    raise RowError(f'its status is {row["status"]!r:.40}, of {", ".join(names)}')
  fields['status'] = Status(row['status'])
  fields['files'] = _texts_by_name(row, 'files')
  fields['stages'] = _texts(row, 'stages')
  return Entry(**fields)


def row_of(entry: Entry) -> dict[str, Any]:
  """Returns the columns of an entry."""
  return {
    **vars(entry),
    'status': entry.status.value,
    'seconds': float(entry.seconds),
    'files': json.dumps(dict(entry.files)),
    'stages': json.dumps(entry.stages),
  }


def discovery_of(row: Mapping[str, Any]) -> Discovery:
  """Returns the discovery of a checked row.

  Raises:
    RowError: the row is not as it was written.
  """
  cases = _parsed(row, 'cases')
  if isinstance(cases, list):  # from before there were demands: names
    cases = {name: {} for name in _texts(row, 'cases')}
  if not isinstance(cases, dict):
    raise RowError('its column cases holds no JSON of cases')
  try:
    found = {name: Resources.from_fields(fields) for name, fields in cases.items()}
  except (AttributeError, TypeError, ValueError, OverflowError, Tf2VerifyError) as error:
    raise RowError(f'its column cases holds no resources: {error!s:.80}') from error
  return Discovery(row['place'], _texts_by_name(row, 'files'), found)


def _parsed(row: Mapping[str, Any], name: str) -> Any:
  try:
    return json.loads(row[name])
  except (ValueError, RecursionError) as error:
    raise RowError(f'its column {name} holds no JSON: {error!s:.80}') from error


def _texts(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
  found = _parsed(row, name)
  if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
    raise RowError(f'its column {name} holds no list of texts')
  return tuple(found)


def _texts_by_name(row: Mapping[str, Any], name: str) -> dict[str, str]:
  found = _parsed(row, name)
  if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
    raise RowError(f'its column {name} holds no texts by name')
  return found
