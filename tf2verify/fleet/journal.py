"""The journal of a fleet: an SQLite file to which a verdict goes the moment its case ends."""

import contextlib
import datetime
import json
import os
import sqlite3
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf2verify.errors import UsageError
from tf2verify.fleet.journal_lock import JournalLock
from tf2verify.fleet.results import Deviations, Discovery, Entry, Result, Run, with_deviations
from tf2verify.records.resources import Resources
from tf2verify.records.verdict import CaseVerdict, Status
from tf2verify.records.verdict_json import case_from_fields

SCHEMA_VERSION = 1
# What tells a journal from any other SQLite file: 'tf2v'.
_APPLICATION_ID = 0x74663276
_WAIT_SECONDS = 60.0
_MAGIC = b'SQLite format 3\0'
_TABLES = """
create table runs (
  run integer primary key,
  started text not null,
  ended text,
  arguments text not null,
  versions text not null,
  shard text not null,
  planned text not null
);
create table results (
  run integer not null references runs,
  target text not null,
  status text not null,
  attempt integer not null,
  ended text not null,
  seconds real not null,
  memory integer not null,
  files text not null,
  stages text not null,
  kept_from integer not null,
  verdict text,
  deviations blob,
  primary key (run, target)
);
create table discoveries (
  place text primary key,
  files text not null,
  cases text not null
);
"""
_ENTRY = 'run, target, status, attempt, ended, seconds, memory, files, stages, kept_from'


def is_journal(path: str) -> bool:
  """Tells whether a file looks like an SQLite file."""
  try:
    with open(path, 'rb') as file:
      return file.read(len(_MAGIC)) == _MAGIC
  except OSError:
    return False


def now() -> str:
  """Returns the time, ISO 8601 in UTC, to the millisecond."""
  return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='milliseconds')


class Journal:
  """Reads and writes a journal; every write is there for good when the call returns."""

  def __init__(self, path: str, writable: bool = False) -> None:
    """Opens a journal; makes one where it is to be written and is not there.

    Args:
      path: the file.
      writable: whether it is to be written; one that is, is nobody else's to write.

    Raises:
      UsageError: the file is no journal, of another schema version, in use by another
        fleet, or cannot be read or written.
    """
    self.path = path
    self._resources = contextlib.ExitStack()
    if not writable and not os.path.isfile(path):
      raise UsageError(f'{path} does not exist; `python -m tf2verify fleet` writes journals')
    with contextlib.ExitStack() as stack:
      if writable:
        stack.enter_context(JournalLock(path))
      with self._explained():
        self._connection = self._connected(writable)
        stack.callback(self._connection.close)
        self._prepare(writable)
      self._resources = stack.pop_all()

  def __enter__(self) -> 'Journal':
    return self

  def __exit__(self, *_: object) -> None:
    self._resources.close()

  def _connected(self, writable: bool) -> sqlite3.Connection:
    if writable:
      return sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
    # A journal that nobody has open has no -wal file; where its folder cannot be
    # written, SQLite reads it only if told that it will not change.
    alone = not os.path.exists(f'{self.path}-wal')
    immutable = alone and not os.access(os.path.dirname(os.path.abspath(self.path)), os.W_OK)
    name = urllib.parse.quote(os.path.abspath(self.path))
    uri = f'file:{name}?' + ('immutable=1' if immutable else 'mode=ro')
    return sqlite3.connect(uri, timeout=_WAIT_SECONDS, isolation_level=None, uri=True)

  @contextlib.contextmanager
  def _explained(self) -> Iterator[None]:
    try:
      yield
    except sqlite3.Error as error:
      raise UsageError(
        f'{self.path} cannot be used as a journal: {error}; --journal names an SQLite file that '
        '`python -m tf2verify fleet` has written, or one that is not there yet'
      ) from error

  def _prepare(self, writable: bool) -> None:
    execute = self._connection.execute
    (application,) = execute('pragma application_id').fetchone()
    (version,) = execute('pragma user_version').fetchone()
    (tables,) = execute('select count(*) from sqlite_master').fetchone()
    if writable and not tables:
      execute('pragma journal_mode = wal')
      execute('begin immediate')
      for statement in filter(str.strip, _TABLES.split(';')):
        execute(statement)
      execute(f'pragma application_id = {_APPLICATION_ID}')
      execute(f'pragma user_version = {SCHEMA_VERSION}')
      execute('commit')
    elif application != _APPLICATION_ID:
      raise UsageError(f'{self.path} is an SQLite file, but no journal of tf2verify')
    elif version != SCHEMA_VERSION:
      raise UsageError(
        f'{self.path} has schema version {version}; this tf2verify reads {SCHEMA_VERSION}: use '
        'the version that wrote it, or start another journal'
      )
    if writable:
      # A verdict must outlive a loss of power as well.
      execute('pragma synchronous = full')
      # A file that cannot be written is told of now; to begin a transaction would not do.
      execute(f'pragma user_version = {SCHEMA_VERSION}')

  @contextlib.contextmanager
  def _transaction(self) -> Iterator[None]:
    try:
      self._connection.execute('begin immediate')
      try:
        yield
        self._connection.execute('commit')
      except BaseException:
        if self._connection.in_transaction:
          self._connection.execute('rollback')
        raise
    except sqlite3.Error as error:
      raise UsageError(
        f'{self.path} could not be written: {error}; the verdicts before are in it: mend that, and '
        'go on with --resume'
      ) from error

  def begin_run(
    self, arguments: Sequence[str], versions: Mapping[str, str], shard: str, planned: Sequence[str]
  ) -> int:
    """Returns the number of a new run.

    Args:
      arguments: of the command.
      versions: of what it runs on.
      shard: as of `Run`.
      planned: the targets that it is to have results for.
    """
    with self._transaction():
      cursor = self._connection.execute(
        'insert into runs (started, arguments, versions, shard, planned) values (?, ?, ?, ?, ?)',
        (now(), *map(json.dumps, (list(arguments), dict(versions))), shard, json.dumps(planned)),
      )
    return int(cursor.lastrowid or 0)

  def plan(self, run: int, planned: Sequence[str]) -> None:
    """Sets what a run is to have results for, and lets go of results for anything else."""
    with self._transaction():
      execute = self._connection.execute
      execute('update runs set ended = null, planned = ? where run = ?', (json.dumps(planned), run))
      for (target,) in execute('select target from results where run = ?', (run,)).fetchall():
        if target not in planned:
          execute('delete from results where run = ? and target = ?', (run, target))

  def end_run(self, run: int) -> None:
    """Notes that all targets of a run have a result."""
    with self._transaction():
      self._connection.execute('update runs set ended = ? where run = ?', (now(), run))

  def write(self, result: Result) -> None:
    """Writes a result, in place of an earlier one of the same target in the same run."""
    entry = result.entry
    packed = zlib.compress(json.dumps(result.deviations).encode()) if result.deviations else None
    self._write(entry, result.verdict.to_json(), packed)

  def keep(self, entry: Entry, run: int) -> None:
    """Takes a result of an earlier run over into a run; the verdict stays where it is."""
    fields = {**vars(entry), 'run': run}
    self._write(Entry(**fields), None, None)

  def _write(self, entry: Entry, verdict: str | None, deviations: bytes | None) -> None:
    fields = {
      **vars(entry),
      'status': entry.status.value,
      'files': json.dumps(dict(entry.files)),
      'stages': json.dumps(entry.stages),
    }
    values = [fields[name] for name in _ENTRY.split(', ')]
    with self._transaction():
      self._connection.execute(
        f'insert or replace into results ({_ENTRY}, verdict, deviations) '
        f'values ({", ".join("?" * 12)})',
        (*values, verdict, deviations),
      )

  def runs(self) -> list[Run]:
    """Returns all runs in order."""
    with self._explained():
      rows = self._connection.execute(
        'select run, started, ended, versions, shard, planned from runs order by run'
      ).fetchall()
    return [
      Run(run, started, ended or '', json.loads(versions), shard, tuple(json.loads(planned)))
      for run, started, ended, versions, shard, planned in rows
    ]

  def entries(self, run: int) -> list[Entry]:
    """Returns the results of a run without their verdicts, in the order of their targets."""
    with self._explained():
      rows = self._connection.execute(
        f'select {_ENTRY} from results where run = ? order by target', (run,)
      ).fetchall()
    names = _ENTRY.split(', ')
    return [_entry(dict(zip(names, row, strict=True))) for row in rows]

  def verdict(self, entry: Entry, deviations: bool = False) -> CaseVerdict:
    """Returns the verdict of a result.

    Args:
      entry: the result.
      deviations: whether with those: they take memory and time.

    Raises:
      UsageError: it is of another schema version, or damaged.
    """
    report = json.loads(self._row(entry, 'verdict'))
    if deviations:
      report = with_deviations(report, self.deviations(entry))
    try:
      return case_from_fields(report)
    except UsageError as error:
      raise UsageError(f'{self.path}, run {entry.run}, {entry.target}: {error}') from error

  def deviations(self, entry: Entry) -> Deviations:
    """Returns the deviations of a result, as their fields."""
    packed = self._row(entry, 'deviations')
    found: Deviations = json.loads(zlib.decompress(packed)) if packed else {}
    return found

  def _row(self, entry: Entry, column: str) -> Any:
    with self._explained():
      row = self._connection.execute(
        f'select {column} from results where run = ? and target = ?',
        (entry.kept_from, entry.target),
      ).fetchone()
    return None if row is None else row[0]

  def discovery(self, place: str) -> Discovery | None:
    """Returns what was found in a file before; None if it was never looked into."""
    row = self._connection.execute(
      'select files, cases from discoveries where place = ?', (place,)
    ).fetchone()
    return None if row is None else Discovery(place, json.loads(row[0]), _cases(json.loads(row[1])))

  def write_discovery(self, found: Discovery) -> None:
    """Keeps what was found in a file."""
    cases = {name: resources.to_fields() for name, resources in found.cases.items()}
    with self._transaction():
      self._connection.execute(
        'insert or replace into discoveries values (?, ?, ?)',
        (found.place, json.dumps(dict(found.files)), json.dumps(cases)),
      )


def _cases(stored: Any) -> dict[str, Resources]:
  """Returns the cases of a file; a journal from before there were demands has their names."""
  if isinstance(stored, list):
    return {name: Resources() for name in stored}
  return {name: Resources.from_fields(fields) for name, fields in stored.items()}


def _entry(fields: dict[str, object]) -> Entry:
  known = {
    **fields,
    'status': Status(fields['status']),
    'files': json.loads(str(fields['files'])),
    'stages': tuple(json.loads(str(fields['stages']))),
  }
  return Entry(**known)
