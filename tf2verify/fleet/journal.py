"""The journal of a fleet: an SQLite file to which a verdict goes the moment its case ends."""

import contextlib
import datetime
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf2verify.errors import Tf2VerifyError, UsageError
from tf2verify.fleet.journal_file import JournalFile
from tf2verify.fleet.journal_rows import (
  RowError,
  check_row,
  content_digest,
  discovery_of,
  entry_of,
  row_of,
  run_of,
)
from tf2verify.fleet.results import Deviations, Discovery, Entry, Result, Run, with_deviations
from tf2verify.records.verdict import CaseVerdict
from tf2verify.records.verdict_json import case_from_fields, check_deviations

# SQLite takes a billion bytes; what is larger by far than any real verdict has no use.
LARGEST_VERDICT = 256 * 2**20
_AGAIN = 'run the fleet with --resume, which runs such cases again'


class Unstorable(Tf2VerifyError):
  """A result that no journal can hold; the message is why."""


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
      UsageError: the file is not a journal, of another schema version, in use by another
        fleet, damaged, or cannot be read or written.
    """
    self.path = path
    self._file = JournalFile(path, writable)
    if writable and self._file.identity is None:
      try:
        self._seal()
      except BaseException:
        self._file.close()
        raise

  def __enter__(self) -> 'Journal':
    return self

  def __exit__(self, *_: object) -> None:
    self._file.close()

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
    (head,) = self._file.select('journal')
    number = int(head['runs']) + 1
    row = {
      'run': number,
      'started': now(),
      'ended': None,
      'arguments': json.dumps(list(arguments)),
      'versions': json.dumps(dict(versions)),
      'shard': shard,
      'planned': json.dumps(planned),
    }
    with self._file.transaction():
      self._file.insert('runs', row)
      self._file.connection.execute('delete from journal')
      self._file.insert('journal', {**head, 'runs': number})
    return number

  def plan(self, run: int, planned: Sequence[str]) -> None:
    """Sets what a run is to have results for, and lets go of results for anything else."""
    with self._file.transaction():
      self._change_run(run, ended=None, planned=json.dumps(planned))
      execute = self._file.connection.execute
      for (target,) in execute('select target from results where run = ?', (run,)).fetchall():
        if target not in planned:
          execute('delete from results where run = ? and target = ?', (run, target))

  def end_run(self, run: int) -> None:
    """Notes that all targets of a run have a result."""
    with self._file.transaction():
      self._change_run(run, ended=now())

  def _change_run(self, run: int, **values: Any) -> None:
    for row in self._file.select('runs', 'where run = ?', run):
      self._file.insert('runs', {**row, **values})

  def write(self, result: Result) -> None:
    """Writes a result, in place of an earlier one of the same target in the same run.

    Raises:
      Unstorable: it cannot be written, whatever the journal.
      UsageError: the journal cannot be written.
    """
    try:
      verdict = result.verdict.to_json()
      found = result.deviations
      packed = zlib.compress(json.dumps(found).encode()) if found else None
      row = row_of(result.entry)
      size = len(verdict.encode()) + len(packed or b'')
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
      raise Unstorable(f'{type(error).__name__}: {error!s:.200}') from error
    if size > LARGEST_VERDICT:
      most = LARGEST_VERDICT // 2**20
      raise Unstorable(
        f'it takes {size // 2**20} MiB, and a journal stores at most {most} of one case'
      )
    row |= {'verdict_sha256': content_digest(verdict), 'deviations_sha256': content_digest(packed)}
    with self._file.transaction():
      self._file.insert('results', row, verdict=verdict, deviations=packed)

  def keep(self, entry: Entry, run: int) -> None:
    """Takes a result of an earlier run over into a run; the verdict stays where it is."""
    row = self._entry_row(entry.kept_from, entry.target)
    kept = {**row_of(entry), 'run': run}
    kept |= {name: row[name] for name in ('verdict_sha256', 'deviations_sha256')}
    with self._file.transaction():
      self._file.insert('results', kept)

  def runs(self) -> list[Run]:
    """Returns all runs in order.

    Raises:
      UsageError: one is damaged, or missing.
    """
    found = []
    for row in self._file.select('runs', 'order by run'):
      with self._named(f'run {row["run"]}', 'start a new journal'):
        check_row('runs', row, self._file.identity)
        found.append(run_of(row))
    if self._file.identity is not None:
      (head,) = self._file.select('journal')
      if [run.number for run in found] != list(range(1, head['runs'] + 1)):
        raise UsageError(
          f'{self.path} is damaged: it had {head["runs"]} runs, and has {len(found)}; start '
          'a new journal'
        )
    return found

  def entries(self, run: int) -> list[Entry]:
    """Returns the results of a run without their verdicts, in the order of their targets.

    Raises:
      UsageError: one is damaged, or one of a run that had all is missing.
    """
    found = []
    for row in self._file.select('results', 'where run = ? order by target', run):
      with self._named(_name_of(row)):
        check_row('results', row, self._file.identity)
        found.append(entry_of(row))
    missing = self._missing(run, {entry.target for entry in found})
    if missing:
      raise UsageError(f'{self.path} is damaged: run {run}, {missing[0]}: no row; {_AGAIN}')
    return found

  def _missing(self, run: int, there: set[str]) -> list[str]:
    """Returns what a sealed run had a result for when it ended, and has none now."""
    ended = [row for row in self._file.select('runs', 'where run = ?', run) if row['ended']]
    if self._file.identity is None or not ended:
      return []
    with self._named(f'run {run}', 'start a new journal'):
      return [target for target in run_of(ended[0]).planned if target not in there]

  def verdict(self, entry: Entry, deviations: bool = False) -> CaseVerdict:
    """Returns the verdict of a result.

    Args:
      entry: the result.
      deviations: whether with those: they take memory and time.

    Raises:
      UsageError: it is of another schema version, or damaged.
    """
    text = self._content(entry, 'verdict')
    with self._named(f'run {entry.run}, {entry.target}'):
      if text is None:
        raise RowError('it has no verdict')
      report = json.loads(text)
      if deviations:
        report = with_deviations(report, self.deviations(entry))
      found = case_from_fields(report)
      if found.status is not entry.status:
        raise RowError(f'its verdict is {found.status.value}, and its row {entry.status.value}')
      named = (f'{found.module}::{found.case}', found.module)
      if self._file.identity is None and entry.target not in named:
        raise RowError(f'its verdict is that of {named[0]}')
    return found

  def deviations(self, entry: Entry) -> Deviations:
    """Returns the deviations of a result, as their fields.

    Raises:
      UsageError: they are damaged.
    """
    packed = self._content(entry, 'deviations')
    with self._named(f'run {entry.run}, {entry.target}'):
      found: Deviations = json.loads(zlib.decompress(packed)) if packed else {}
      if self._file.identity is None:
        check_deviations(found)
    return found

  def _content(self, entry: Entry, column: str) -> Any:
    """Returns a column of the row that holds the verdict of a result, and is as it was."""
    with self._file.explained():
      row = self._file.connection.execute(
        f'select {column} from results where run = ? and target = ?',
        (entry.kept_from, entry.target),
      ).fetchone()
    content = None if row is None else row[0]
    with self._named(f'run {entry.run}, {entry.target}'):
      if content is not None and not isinstance(content, str if column == 'verdict' else bytes):
        raise RowError(f'its column {column} holds {content!r:.40}')
      if self._file.identity is not None:
        digests = {
          self._entry_row(run, entry.target)[f'{column}_sha256']
          for run in {entry.run, entry.kept_from}
        }
        if digests != {content_digest(content)}:
          raise RowError(f'its {column} is not what was written: the digest differs')
    return content

  def _entry_row(self, run: int, target: str) -> dict[str, Any]:
    rows = self._file.select('results', 'where run = ? and target = ?', run, target)
    with self._named(f'run {run}, {target}'):
      if not rows:
        raise RowError('it has no row')
      check_row('results', rows[0], self._file.identity)
    return rows[0]

  @contextlib.contextmanager
  def _named(self, what: str, remedy: str = _AGAIN) -> Iterator[None]:
    """Turns whatever a damaged row leads to into a `UsageError` that names it."""
    try:
      yield
    except (RowError, UsageError, ValueError, TypeError, LookupError, AttributeError) as error:
      raise self._damage(what, error, remedy) from error
    except (ArithmeticError, RecursionError, MemoryError, zlib.error) as error:
      raise self._damage(what, error, remedy) from error

  def _damage(self, what: str, error: BaseException, remedy: str) -> UsageError:
    if isinstance(error, UsageError) and str(error).startswith(self.path):
      return error  # named already
    own = isinstance(error, (RowError, UsageError))
    how = str(error) if own else f'it cannot be read ({type(error).__name__}: {error!s:.80})'
    return UsageError(f'{self.path} is damaged: {what}: {how}; {remedy}')

  def discovery(self, place: str) -> Discovery | None:
    """Returns what was found in a file before; None if that is not known, or damaged."""
    for row in self._file.select('discoveries', 'where place = ?', place):
      with contextlib.suppress(RowError):
        check_row('discoveries', row, self._file.identity)
        return discovery_of(row)
    return None

  def write_discovery(self, found: Discovery) -> None:
    """Keeps what was found in a file."""
    cases = {name: resources.to_fields() for name, resources in found.cases.items()}
    row = {
      'place': found.place,
      'files': json.dumps(dict(found.files)),
      'cases': json.dumps(cases),
    }
    with self._file.transaction():
      self._file.insert('discoveries', row)

  def mend(self) -> list[str]:
    """Lets go of damaged results, so that their cases run again.

    Returns:
      What was damaged, and how.

    Raises:
      UsageError: a run itself is damaged.
    """
    damaged: list[str] = []
    for run in self.runs():
      rows = self._file.select('results', 'where run = ? order by target', run.number)
      there = set()
      for row in rows:
        try:
          with self._named(_name_of(row)):
            check_row('results', row, self._file.identity)
            entry = entry_of(row)
            self._content(entry, 'deviations')
          self.verdict(entry)
          there.add(entry.target)
        except UsageError as error:
          damaged.append(str(error))
          with self._file.transaction():
            self._file.connection.execute('delete from results where rowid = ?', (row['rowid'],))
      missing = self._missing(run.number, there)
      if missing:
        names = ', '.join(missing[:5]) + (', …' if len(missing) > 5 else '')
        damaged.append(f'run {run.number} no longer has a verdict of: {names}')
        with self._file.transaction():
          self._change_run(run.number, ended=None)
    return damaged

  def _seal(self) -> None:
    """Gives the rows of a journal from before there were digests those that can be read."""
    runs = self.runs()
    whole = []
    for run in runs:
      for row in self._file.select('results', 'where run = ?', run.number):
        with contextlib.suppress(UsageError), self._named(_name_of(row)):
          check_row('results', row, None)
          entry = entry_of(row)
          self.verdict(entry, deviations=True)
          contents = (self._content(entry, name) for name in ('verdict', 'deviations'))
          digests = map(content_digest, contents)
          names = ('verdict_sha256', 'deviations_sha256')
          whole.append({**row, **dict(zip(names, digests, strict=True))})
    rows = self._file.select('runs')
    with self._file.transaction():
      self._file.connection.execute('delete from discoveries')
      self._file.identity = self._file.add_digest_columns()
      for row in rows:
        self._file.reseal('runs', row)
      for row in whole:
        self._file.reseal('results', row)


def _name_of(row: Mapping[str, Any]) -> str:
  return f'run {row["run"]!s:.20}, {row["target"]!s:.200}'


__all__ = ['LARGEST_VERDICT', 'Journal', 'Unstorable', 'now']
