"""Damages journals and reports in every way that it knows, and looks at what comes of it.

`python -m tests.fleet.damage 600` does so many times and counts; tests do it less often.
"""

import collections
import contextlib
import copy
import io
import json
import os
import pathlib
import random
import shutil
import sqlite3
import sys
import tempfile
import traceback

from tests.fleet import made_results
from tf2verify.commands import cli
from tf2verify.errors import Tf2VerifyError
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.results import Discovery
from tf2verify.records.resources import Resources
from tf2verify.records.status import Status

VERSIONS = {'python': '3.11.7', 'tensorflow': '2.21.0'}
CASES = {
  'a.py::Right': (Status.PASSED, 0.5),
  'a.py::Wrong': (Status.FAILED, 3.0),
  'b.py::Error': (Status.ERROR, 0.0),
  'b.py::Blocked': (Status.BLOCKED, 0.0),
}
_WRONG_VALUES = (
  None,
  7,
  -1,
  2**62,
  1.5,
  'PASSED',
  'FAILED',
  '',
  '[]',
  '{}',
  'null',
  '[' * 5000,
  b'\xff\x00',
)
_ODD_VALUES = (
  None, True, -1, 0, 10**400, 2**63, 1.5, -1e308, 'nan', 'inf', '', 'x', '\ud800', '\x1b[31m',
  '\u202e',
  [], {}, [[]], [None], {'a': 1}, [1, 'a', None], 'a' * 100_000, [0.5] * 50, 'PASSED', 'FAILED',
)  # fmt: skip


def make_journal(path):
  """Writes two runs, of which the second keeps a result of the first."""
  with Journal(path, writable=True) as journal:
    journal.write_discovery(Discovery('a.py', {'/x/a.py': 'd'}, {'Right': Resources()}))
    for run in (1, 2):
      journal.begin_run(['.'], VERSIONS, '', list(CASES))
      for target, found in CASES.items():
        if run == 2 and target == 'a.py::Right':
          journal.keep(journal.entries(1)[0], 2)
        else:
          journal.write(made_results.result(run, target, *found, files={'/x/a.py': 'd' * 64}))
      journal.end_run(run)


def verdicts_of(path):
  """Returns what the last run of a journal says, as its reader sees it."""
  with Journal(path) as journal:
    run = journal.runs()[-1].number
    return {
      entry.target: journal.verdict(entry, deviations=True).to_json()
      for entry in journal.entries(run)
    }


def flip_bits(path, chance):
  data = bytearray(pathlib.Path(path).read_bytes())
  for _ in range(chance.choice((1, 1, 2, 16, 200))):
    # Most of a small SQLite file is empty.
    place = chance.randrange(len(data))
    while not data[place] and chance.random() < 0.9:
      place = chance.randrange(len(data))
    data[place] ^= 1 << chance.randrange(8)
  pathlib.Path(path).write_bytes(data)


def truncate(path, chance):
  os.truncate(path, chance.randrange(1, os.path.getsize(path)))


def overwrite(path, chance):
  data = bytearray(pathlib.Path(path).read_bytes())
  start = chance.randrange(len(data))
  end = min(len(data), start + chance.choice((16, 512, 4096)))
  data[start:end] = chance.choice((bytes(end - start), chance.randbytes(end - start)))
  pathlib.Path(path).write_bytes(data)


def _changing(change):
  def damage(path, chance):
    connection = sqlite3.connect(path)
    with contextlib.closing(connection), connection, contextlib.suppress(sqlite3.Error):
      change(connection, chance)

  damage.__name__ = change.__name__
  return damage


@_changing
def set_a_column(connection, chance):
  table = chance.choice(('runs', 'results', 'results', 'results', 'discoveries', 'journal'))
  names = [row[1] for row in connection.execute(f'pragma table_info({table})')]
  rows = [row[0] for row in connection.execute(f'select rowid from {table}')]
  value = chance.choice(_WRONG_VALUES)
  name = chance.choice(names)
  connection.execute(
    f'update or replace {table} set {name} = ? where rowid = ?', (value, chance.choice(rows))
  )


@_changing
def change_a_verdict(connection, chance):
  one, other = chance.choice(
    (('FAILED', 'PASSED'), ('ERROR', 'PASSED'), ('1', '2'), ('kernel', 'bias'))
  )
  rows = connection.execute(
    'select rowid, verdict from results where verdict is not null'
  ).fetchall()
  row, text = chance.choice(rows)
  connection.execute(
    'update results set verdict = ? where rowid = ?', (text.replace(one, other), row)
  )
  if chance.random() < 0.5:
    connection.execute("update results set status = 'PASSED' where rowid = ?", (row,))


@_changing
def swap_rows(connection, chance):
  names = chance.choice((
    ('target',), ('run',), ('verdict',), ('verdict', 'verdict_sha256'), ('digest',),
    ('status', 'verdict', 'digest'),
    ('status', 'verdict', 'verdict_sha256', 'digest', 'deviations', 'deviations_sha256'),
  ))  # fmt: skip
  rows = connection.execute('select rowid from results').fetchall()
  (one,), (other,) = chance.sample(rows, 2)
  columns = ', '.join(names)
  found = [
    connection.execute(f'select {columns} from results where rowid = ?', (n,)).fetchone()
    for n in (one, other)
  ]
  setting = ', '.join(f'{name} = ?' for name in names)
  if names[0] in ('target', 'run'):
    connection.execute(f'update results set {names[0]} = {names[0]} || 9 where rowid = ?', (one,))
  connection.execute(f'update results set {setting} where rowid = ?', (*found[0], other))
  connection.execute(f'update results set {setting} where rowid = ?', (*found[1], one))


@_changing
def lose_rows(connection, chance):
  table = chance.choice(('runs', 'results', 'results', 'journal'))
  rows = connection.execute(f'select rowid from {table}').fetchall()
  connection.executemany(
    f'delete from {table} where rowid = ?', chance.sample(rows, chance.choice((1, len(rows))))
  )


@_changing
def copy_rows(connection, chance):
  names = [row[1] for row in connection.execute('pragma table_info(results)')]
  rest = ', '.join(name for name in names if name not in ('run', 'target'))
  run, target = chance.choice((1, 2, 3)), chance.choice((*CASES, 'c.py::New'))
  connection.execute(
    f'insert or replace into results (run, target, {rest}) '
    f'select ?, ?, {rest} from results limit 1 offset ?',
    (run, target, chance.randrange(6)),
  )


@_changing
def change_the_schema(connection, chance):
  connection.execute(chance.choice((
    'create table extra (x)', 'drop table runs', 'drop table results', 'drop table journal',
    'drop table discoveries', 'pragma user_version = 1', 'pragma user_version = 0',
    'pragma user_version = 3',
    'pragma application_id = 5', 'alter table results rename column verdict to told',
    'alter table results drop column digest', 'alter table results add column more',
    'create view extra as select * from results', 'alter table runs rename to results2',
  )))  # fmt: skip


DAMAGES = (
  flip_bits, flip_bits, truncate, overwrite, set_a_column, set_a_column, change_a_verdict,
  swap_rows, lose_rows, copy_rows, change_the_schema,
)  # fmt: skip


def run_command(*arguments):
  """Returns status and output of a command; what it raises beyond its own errors, it raises."""
  said = io.StringIO()
  with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    status = cli.main([str(word) for word in arguments])
  return status, said.getvalue()


def outcome_of_journal(path, before, shown):
  """Returns how readers take a damaged journal: `refused`, or `unchanged`.

  Raises:
    AssertionError: a verdict is another than before, or is missing without a word.
    Exception: one that is not the project's own.
  """
  run_command('history', path)
  status, said = run_command('report', path)
  try:
    found = verdicts_of(path)
  except Tf2VerifyError:
    # What it does not show, it does not read: deviations.
    assert status == 2 or said == shown, f'report ended with {status}: {said}'
    outcome = 'refused'
  else:
    for target, verdict in found.items():
      assert before.get(target) == verdict, f'{target} has another verdict'
    lost = set(before) - set(found)
    assert not lost or 'no verdict' in said, f'{lost} are lost: {said}'
    outcome = 'lost, and told' if lost else 'unchanged'
  with contextlib.suppress(Tf2VerifyError), Journal(path, writable=True) as journal:
    told = journal.mend()
    kept = {
      entry.target: journal.verdict(entry, True).to_json()
      for entry in journal.entries(len(journal.runs()))
    }
    assert kept.items() <= before.items(), 'mended into another verdict'
    assert told or set(kept) == set(before), 'mended without a word'
  return outcome


def damage_journals(count, seed=0):
  """Returns how many journals had each outcome, and what was foreign."""
  chance = random.Random(seed)
  counts, foreign = collections.Counter(), []
  with tempfile.TemporaryDirectory() as folder:
    whole, path = os.path.join(folder, 'whole.sqlite'), os.path.join(folder, 'run.sqlite')
    make_journal(whole)
    before, (_, shown) = verdicts_of(whole), run_command('report', whole)
    for number in range(count):
      for name in os.listdir(folder):
        if name.startswith('run.sqlite'):
          os.remove(os.path.join(folder, name))
      shutil.copy(whole, path)
      damage = chance.choice(DAMAGES)
      damage(path, chance)
      try:
        counts[outcome_of_journal(path, before, shown)] += 1
      except Exception:  # noqa: BLE001 - any is what is looked for
        foreign.append(f'{number} {damage.__name__}: {traceback.format_exc()}')
  return counts, foreign


def _paths(value, path=()):
  yield path
  items = (
    value.items()
    if isinstance(value, dict)
    else enumerate(value)
    if isinstance(value, list)
    else ()
  )
  for key, item in items:
    yield from _paths(item, (*path, key))


def damage_report(text, chance):
  """Returns a report with a few values changed, removed, repeated, or its text damaged."""
  if chance.random() < 0.15:
    place = chance.randrange(len(text))
    return chance.choice(
      (text[:place], text[:place] + chance.choice('{}[]",:0x\x00é') + text[place + 1 :])
    )
  report = json.loads(text)
  for _ in range(chance.choice((1, 1, 1, 2, 5))):
    path = chance.choice([path for path in _paths(report) if path] or [()])
    if not path:
      break
    home = report
    for key in path[:-1]:
      home = home[key]
    change = chance.random()
    if change < 0.1:
      del home[path[-1]]
    elif change < 0.2 and isinstance(home, list):
      home.extend(home[: chance.choice((1, 50))])
    elif change < 0.4 and isinstance(home[path[-1]], (int, float)):
      home[path[-1]] = chance.choice(
        (10**400, -(10**400), 1e308, -1e308, 5e-324, 2**64, -1, 'nan', 'inf', '-inf')
      )
    else:
      home[path[-1]] = copy.deepcopy(chance.choice(_ODD_VALUES))
  return json.dumps(report)


def damage_reports(texts, count, seed=0, pages=('--junit', '--markdown')):
  """Returns how many reports ended with each status, and what was foreign."""
  chance = random.Random(seed)
  counts, foreign = collections.Counter(), []
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, 'report.json')
    for number in range(count):
      text = damage_report(chance.choice(texts), chance)
      pathlib.Path(path).write_text(text, errors='surrogatepass')
      options = [word for page in pages for word in (page, os.path.join(folder, page.strip('-')))]
      if chance.random() < 0.3:
        options += ['--rtol', '1e-3']
      try:
        counts[run_command('report', path, *options)[0]] += 1
      except Exception:  # noqa: BLE001 - any is what is looked for
        foreign.append(f'{number}: {traceback.format_exc()}')
  return counts, foreign


def main(count):
  """Damages so many journals and reports, and counts."""
  from tests.report.html import made_up

  texts = [case.to_json() for case in (made_up.passed(), made_up.failed())]
  texts += [made_results.verdict(target, *found).to_json() for target, found in CASES.items()]
  for counts, foreign in (
    damage_journals(count),
    damage_reports(texts, count, pages=('--junit', '--markdown', '--html', '--tensorboard_dir')),
  ):
    print('\n'.join(foreign[:20]))
    print(dict(counts), f'{len(foreign)} foreign', flush=True)


if __name__ == '__main__':
  main(int(sys.argv[1]))
