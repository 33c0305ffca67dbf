"""The SQLite file of a journal: opened, locked, made; its rows written and read."""

import contextlib
import os
import sqlite3
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

from tf2verify.errors import UsageError
from tf2verify.fleet.journal_lock import JournalLock
from tf2verify.fleet.journal_rows import (
  COLUMNS,
  DIGEST,
  RowError,
  check_row,
  digest_of,
  new_identity,
)

SCHEMA_VERSION = 2
# Without digests; read as it is, and sealed when it is to be written.
_UNSEALED = 1
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
  planned text not null,
  digest text
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
  verdict_sha256 text,
  deviations_sha256 text,
  digest text,
  verdict text,
  deviations blob,
  primary key (run, target)
);
create table discoveries (
  place text primary key,
  files text not null,
  cases text not null,
  digest text
);
create table journal (
  identity text not null,
  runs integer not null,
  digest text not null
);
"""


def is_journal(path: str) -> bool:
  """Returns whether a file looks like an SQLite file."""
  try:
    with open(path, 'rb') as file:
      return file.read(len(_MAGIC)) == _MAGIC
  except OSError:
    return False


def _reading_any_text(connection: sqlite3.Connection) -> sqlite3.Connection:
  # A text that is not UTF-8 any more is a damaged row, which is named, and no error of SQLite.
  connection.text_factory = lambda data: data.decode('utf-8', 'surrogateescape')
  return connection


class JournalFile:
  """Reads and writes the rows of a journal.

  Attributes:
    path: the file.
    identity: what the digests of its rows are made with; None where it has none.
  """

  def __init__(self, path: str, writable: bool) -> None:
    """Opens a journal, as `Journal` does."""
    self.path = path
    self.identity: str | None = None
    self._resources = contextlib.ExitStack()
    if not writable and not os.path.isfile(path):
      raise UsageError(f'{path} does not exist; `python -m tf2verify fleet` writes journals')
    with contextlib.ExitStack() as stack:
      if writable:
        stack.enter_context(JournalLock(path))
      with self.explained():
        self.connection = self._connected(writable)
        stack.callback(self.connection.close)
        self._prepare(writable)
      self._resources = stack.pop_all()

  def close(self) -> None:
    """Lets go of the file, and of its lock."""
    self._resources.close()

  def _connected(self, writable: bool) -> sqlite3.Connection:
    if writable:
      return _reading_any_text(
        sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
      )
    # A journal that nobody has open has no -wal file; where its folder cannot be
    # written, SQLite reads it only if told that it will not change.
    alone = not os.path.exists(f'{self.path}-wal')
    immutable = alone and not os.access(os.path.dirname(os.path.abspath(self.path)), os.W_OK)
    name = urllib.parse.quote(os.fsencode(os.path.abspath(self.path)))
    uri = f'file:{name}?' + ('immutable=1' if immutable else 'mode=ro')
    return _reading_any_text(
      sqlite3.connect(uri, timeout=_WAIT_SECONDS, isolation_level=None, uri=True)
    )

  @contextlib.contextmanager
  def explained(self) -> Iterator[None]:
    """Turns what SQLite raises into a `UsageError`."""
    try:
      yield
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
      raise UsageError(
        f'{self.path} cannot be used as a journal: {error}; --journal names an SQLite file that '
        '`python -m tf2verify fleet` has written, or one that is not there yet'
      ) from error

  def _prepare(self, writable: bool) -> None:
    execute = self.connection.execute
    (application,) = execute('pragma application_id').fetchone()
    (version,) = execute('pragma user_version').fetchone()
    (tables,) = execute('select count(*) from sqlite_master').fetchone()
    if writable and not tables:
      self._make()
    elif application != _APPLICATION_ID:
      raise UsageError(f'{self.path} is an SQLite file, but no journal of tf2verify')
    elif version not in (_UNSEALED, SCHEMA_VERSION):
      raise UsageError(
        f'{self.path} has schema version {version}; this tf2verify reads {SCHEMA_VERSION}, and '
        f'{_UNSEALED}: use the version that wrote it, or start a new journal'
      )
    elif version == SCHEMA_VERSION or self._has_digests():
      self.identity = self._read_identity()
    if writable:
      # A verdict must outlive a loss of power as well.
      execute('pragma synchronous = full')
      # A file that cannot be written is told of now; to begin a transaction would not do.
      execute(f'pragma user_version = {version or SCHEMA_VERSION}')

  def _make(self) -> None:
    execute = self.connection.execute
    execute('pragma journal_mode = wal')
    execute('begin immediate')
    for statement in filter(str.strip, _TABLES.split(';')):
      execute(statement)
    self.identity = new_identity()
    self.insert('journal', {'identity': self.identity, 'runs': 0})
    execute(f'pragma application_id = {_APPLICATION_ID}')
    execute(f'pragma user_version = {SCHEMA_VERSION}')
    execute('commit')

  def _has_digests(self) -> bool:
    names = [row[1] for row in self.connection.execute('pragma table_info(results)')]
    return DIGEST in names

  def _read_identity(self) -> str:
    rows = self.connection.execute('select identity, runs, digest from journal').fetchall()
    try:
      if len(rows) != 1:
        raise RowError(f'there are {len(rows)}')
      row = dict(zip(('identity', 'runs', DIGEST), rows[0], strict=True))
      check_row('journal', row, str(row['identity']))
    except RowError as error:
      raise UsageError(
        f'{self.path} is damaged: of its one row that names it, {error}; start a new journal'
      ) from error
    return str(row['identity'])

  def add_digest_columns(self) -> str:
    """Makes one from before there were digests such as is made now, within a transaction.

    Returns:
      Its new identity; no row has a digest yet.
    """
    execute = self.connection.execute
    for table, names in (
      ('runs', (DIGEST,)),
      ('results', ('verdict_sha256', 'deviations_sha256', DIGEST)),
      ('discoveries', (DIGEST,)),
    ):
      for name in names:
        execute(f'alter table {table} add column {name} text')
    execute(_TABLES[_TABLES.index('create table journal') :].strip().rstrip(';'))
    identity = new_identity()
    (runs,) = execute('select coalesce(max(run), 0) from runs').fetchone()
    row = {'identity': identity, 'runs': runs}
    row[DIGEST] = digest_of(identity, 'journal', row)
    execute('insert into journal values (:identity, :runs, :digest)', row)
    execute(f'pragma user_version = {SCHEMA_VERSION}')
    return identity

  @contextlib.contextmanager
  def transaction(self) -> Iterator[None]:
    """Writes all that is written inside, or nothing."""
    try:
      self.connection.execute('begin immediate')
      try:
        yield
        self.connection.execute('commit')
      except BaseException:
        if self.connection.in_transaction:
          self.connection.execute('rollback')
        raise
    except (sqlite3.Error, UnicodeError) as error:  # its message may be no text
      raise UsageError(
        f'{self.path} could not be written: {error}; the verdicts before are in it: fix that, and '
        'continue with --resume'
      ) from error

  def insert(self, table: str, row: Mapping[str, Any], **others: Any) -> None:
    """Writes a row with its digest, in place of one with the same key.

    Args:
      table: its table.
      row: the columns that the digest covers.
      **others: columns that it does not cover.
    """
    digest = digest_of(self.identity or '', table, row)
    values = {**{name: row[name] for name in COLUMNS[table]}, DIGEST: digest, **others}
    names = ', '.join(values)
    marks = ', '.join('?' * len(values))
    self.connection.execute(
      f'insert or replace into {table} ({names}) values ({marks})', tuple(values.values())
    )

  def reseal(self, table: str, row: Mapping[str, Any]) -> None:
    """Gives a row that `select` has returned its digests."""
    found = {**row, DIGEST: digest_of(self.identity or '', table, row)}
    names = [name for name in (*COLUMNS[table], DIGEST) if name.endswith(('_sha256', DIGEST))]
    self.connection.execute(
      f'update {table} set {", ".join(f"{name} = ?" for name in names)} where rowid = ?',
      (*(found[name] for name in names), row['rowid']),
    )

  def select(self, table: str, behind: str = '', *parameters: Any) -> list[dict[str, Any]]:
    """Returns rows of a table, unchecked.

    Args:
      table: its name.
      behind: what stands after the name in SQL.
      *parameters: of that.

    Returns:
      By name: `rowid`, what `COLUMNS` names, and digests where there are.
    """
    names = ['rowid', *COLUMNS[table], DIGEST]
    if self.identity is None:
      names = [name for name in names if not name.endswith('_sha256') and name != DIGEST]
    with self.explained():
      rows = self.connection.execute(
        f'select {", ".join(names)} from {table} {behind}', parameters
      ).fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]
