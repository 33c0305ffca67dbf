"""The journal of a fleet: an SQLite file to which a verdict goes the moment its case ends."""

import contextlib
import dataclasses
import datetime
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from tf2verify.errors import UsageError
from tf2verify.records.verdict import CaseVerdict
from tf2verify.records.verdict_json import case_from_json

SCHEMA_VERSION = 1
# What tells a journal from any other SQLite file: 'tf2v'.
_APPLICATION_ID = 0x74663276
_WAIT_SECONDS = 60.0
_TABLES = """
create table runs (
  run integer primary key,
  started text not null,
  ended text,
  arguments text not null,
  versions text not null
);
create table results (
  run integer not null references runs,
  target text not null,
  status text not null,
  attempt integer not null,
  ended text not null,
  seconds real not null,
  files text not null,
  stages text not null,
  verdict text not null,
  primary key (run, target)
);
create table discoveries (
  target text primary key,
  files text not null,
  cases text not null
);
"""


@dataclasses.dataclass(frozen=True)
class Run:
  """One run of a fleet.

  Attributes:
    number: from 1.
    started: ISO 8601, UTC.
    ended: the same; '' while it goes on, or where it was killed.
    versions: of what it ran on.
  """

  number: int
  started: str
  ended: str
  versions: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Result:
  """One case's result.

  Attributes:
    run: the number of the run.
    target: `path::Case`.
    attempt: 1 for the first in this run.
    ended: ISO 8601, UTC.
    seconds: of wall time, with the start of its process.
    files: path and SHA-256 of what the verdict depends on.
    stages: the stages asked for; empty for all.
    verdict: what was found.
  """

  run: int
  target: str
  attempt: int
  ended: str
  seconds: float
  files: Mapping[str, str]
  stages: tuple[str, ...]
  verdict: CaseVerdict


@dataclasses.dataclass(frozen=True)
class Discovery:
  """The cases of a target.

  Attributes:
    target: as given.
    files: path and SHA-256 of what was imported to find them.
    cases: their names.
  """

  target: str
  files: Mapping[str, str]
  cases: tuple[str, ...]


def now() -> str:
  """Returns the time, ISO 8601 in UTC, to the millisecond."""
  return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='milliseconds')


class Journal:
  """Reads and writes a journal; every write is there for good when the call returns."""

  def __init__(self, path: str, must_exist: bool = False) -> None:
    """Opens a journal, or makes one.

    Args:
      path: the file.
      must_exist: whether one that is not there is an error.

    Raises:
      UsageError: the file is no journal, of another schema version, or cannot be used.
    """
    self.path = path
    if must_exist and not os.path.isfile(path):
      raise UsageError(f'{path} does not exist; `python -m tf2verify fleet` writes journals')
    try:
      self._connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
      self._prepare()
    except sqlite3.Error as error:
      raise UsageError(
        f'{path} cannot be used as a journal: {error}; --journal names an SQLite file that '
        '`python -m tf2verify fleet` has written, or one that is not there yet'
      ) from error

  def __enter__(self) -> 'Journal':
    return self

  def __exit__(self, *_: object) -> None:
    self._connection.close()

  def _prepare(self) -> None:
    execute = self._connection.execute
    (application,) = execute('pragma application_id').fetchone()
    (version,) = execute('pragma user_version').fetchone()
    (tables,) = execute('select count(*) from sqlite_master').fetchone()
    if not tables:
      execute('pragma journal_mode = wal')
      with self._transaction():
        for statement in filter(str.strip, _TABLES.split(';')):
          execute(statement)
        execute(f'pragma application_id = {_APPLICATION_ID}')
        execute(f'pragma user_version = {SCHEMA_VERSION}')
    elif application != _APPLICATION_ID:
      raise UsageError(f'{self.path} is an SQLite file, but no journal of tf2verify')
    elif version != SCHEMA_VERSION:
      raise UsageError(
        f'{self.path} has schema version {version}; this tf2verify reads {SCHEMA_VERSION}: use '
        'the version that wrote it, or start another journal'
      )
    # A verdict must outlive a loss of power as well.
    execute('pragma synchronous = full')

  @contextlib.contextmanager
  def _transaction(self) -> Iterator[None]:
    self._connection.execute('begin immediate')
    try:
      yield
    except BaseException:
      self._connection.execute('rollback')
      raise
    self._connection.execute('commit')

  def begin_run(self, arguments: Sequence[str], versions: Mapping[str, str]) -> int:
    """Returns the number of a new run."""
    with self._transaction():
      cursor = self._connection.execute(
        'insert into runs (started, arguments, versions) values (?, ?, ?)',
        (now(), json.dumps(list(arguments)), json.dumps(dict(versions))),
      )
    return int(cursor.lastrowid or 0)

  def end_run(self, run: int) -> None:
    """Notes that all cases of a run have a result."""
    with self._transaction():
      self._connection.execute('update runs set ended = ? where run = ?', (now(), run))

  def go_on(self, run: int) -> None:
    """Notes that a run goes on after all."""
    with self._transaction():
      self._connection.execute('update runs set ended = null where run = ?', (run,))

  def write(self, result: Result) -> None:
    """Writes a result, in place of an earlier one of the same case in the same run."""
    with self._transaction():
      self._connection.execute(
        'insert or replace into results values (?, ?, ?, ?, ?, ?, ?, ?, ?)',
        (
          result.run,
          result.target,
          result.verdict.status.value,
          result.attempt,
          result.ended,
          result.seconds,
          json.dumps(dict(result.files)),
          json.dumps(result.stages),
          result.verdict.to_json(),
        ),
      )

  def runs(self) -> list[Run]:
    """Returns all runs in order."""
    rows = self._connection.execute('select run, started, ended, versions from runs order by run')
    return [Run(run, started, ended or '', json.loads(text)) for run, started, ended, text in rows]

  def results(self, run: int) -> list[Result]:
    """Returns the results of a run, in the order of their targets."""
    rows = self._connection.execute(
      'select run, target, attempt, ended, seconds, files, stages, verdict from results '
      'where run = ? order by target',
      (run,),
    )
    return [
      Result(
        number,
        target,
        attempt,
        ended,
        seconds,
        json.loads(files),
        tuple(json.loads(stages)),
        case_from_json(verdict),
      )
      for number, target, attempt, ended, seconds, files, stages, verdict in rows
    ]

  def discovery(self, target: str) -> Discovery | None:
    """Returns what was found in a target before; None if it was never looked into."""
    row = self._connection.execute(
      'select files, cases from discoveries where target = ?', (target,)
    ).fetchone()
    return None if row is None else Discovery(target, json.loads(row[0]), tuple(json.loads(row[1])))

  def write_discovery(self, found: Discovery) -> None:
    """Keeps what was found in a target."""
    with self._transaction():
      self._connection.execute(
        'insert or replace into discoveries values (?, ?, ?)',
        (found.target, json.dumps(dict(found.files)), json.dumps(found.cases)),
      )
