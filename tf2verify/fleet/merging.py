"""The journals of several machines as one."""

import os
import tempfile
from collections.abc import Sequence

from tf2verify.errors import UsageError
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.results import Entry, Result, Run
from tf2verify.fleet.sharding import missing_shards


def merge(out: str, paths: Sequence[str]) -> list[str]:
  """Writes the last runs of some journals into a new one, as one run.

  Args:
    out: the new journal; there whole or not at all.
    paths: the journals, one of each shard.

  Returns:
    What a reader has to know: what was in several of them.

  Raises:
    UsageError: `out` is there, shards are missing or were run with different versions, or
      a journal cannot be read.
  """
  if os.path.exists(out):
    raise UsageError(f'{out} is there already; --merge writes a new journal')
  runs = [_last_run(path) for path in paths]
  _check_versions(paths, runs)
  missing = missing_shards([run.shard for run in runs])
  if missing:
    raise UsageError(
      f'shard {", ".join(missing)} is in none of {", ".join(paths)}: its cases would be left out; '
      'give its journal, too'
    )
  folder = os.path.dirname(os.path.abspath(out))
  try:
    with tempfile.TemporaryDirectory(prefix='.merging-', dir=folder) as scratch:
      whole = os.path.join(scratch, 'journal')
      notes = _write(whole, paths, runs)
      os.replace(whole, out)
  except OSError as error:
    raise UsageError(f'{out} could not be written: {error}') from error
  return notes


def _last_run(path: str) -> Run:
  with Journal(path) as journal:
    runs = journal.runs()
  if not runs:
    raise UsageError(f'{path} has no run')
  return runs[-1]


def _check_versions(paths: Sequence[str], runs: Sequence[Run]) -> None:
  for path, run in zip(paths[1:], runs[1:], strict=True):
    names = {*runs[0].versions, *run.versions}
    for name in sorted(names):
      first, other = runs[0].versions.get(name, '-'), run.versions.get(name, '-')
      if first != other:
        raise UsageError(
          f'{path} was run with {name} {other}, {paths[0]} with {first}: that is not one run; '
          '`python -m tf2verify history` shows them side by side'
        )


def _write(out: str, paths: Sequence[str], runs: Sequence[Run]) -> list[str]:
  planned = list(dict.fromkeys(target for run in runs for target in run.planned))
  newest: dict[str, tuple[Entry, str]] = {}
  twice = set()
  for path, run in zip(paths, runs, strict=True):
    with Journal(path) as journal:
      for entry in journal.entries(run.number):
        known = newest.get(entry.target)
        if known is not None:
          twice.add(entry.target)
        if known is None or entry.ended > known[0].ended:
          newest[entry.target] = entry, path
  with Journal(out, writable=True) as merged:
    number = merged.begin_run(list(paths), runs[0].versions, '', planned)
    for path in paths:
      with Journal(path) as journal:
        for entry, home in newest.values():
          if home == path:
            verdict, deviations = journal.verdict(entry), journal.deviations(entry)
            own = Entry(**{**vars(entry), 'run': number, 'kept_from': number})
            merged.write(Result(own, verdict, deviations))
    if newest.keys() >= set(planned):
      merged.end_run(number)
  return [f'{target} is in several journals: its last verdict counts' for target in sorted(twice)]
