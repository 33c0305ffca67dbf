import contextlib
import os
import pwd
import sqlite3
import subprocess
import sys
from unittest import mock

import pytest
from absl.testing import absltest

from tests import console
from tests.fleet import made_results
from tf2verify.errors import UsageError
from tf2verify.fleet import journal_file
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.journal_file import is_journal
from tf2verify.fleet.results import Discovery
from tf2verify.records.resources import Resources
from tf2verify.records.status import Status

pytestmark = pytest.mark.starts_processes

VERSIONS = {'python': '3.11.7', 'tensorflow': '2.21.0'}


@contextlib.contextmanager
def without_the_rights_of_root(*own):
  """Makes this process the user nobody, who owns some files, where it is root's."""
  if os.geteuid() != 0:
    yield
    return
  nobody = pwd.getpwnam('nobody').pw_uid
  for path in own:
    os.chown(path, nobody, -1)
  os.setresuid(nobody, nobody, 0)
  try:
    yield
  finally:
    os.setresuid(0, 0, 0)


class JournalTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.path = str(self.folder / 'run.sqlite')

  def begin(self, journal, *planned):
    return journal.begin_run(['models'], VERSIONS, '', planned)

  def test_what_is_written_is_read(self):
    result = made_results.result(1, 'a.py::A', Status.FAILED, share=2.0)
    with Journal(self.path, writable=True) as journal:
      run = self.begin(journal, 'a.py::A')
      journal.write(result)
      cases = {'A': Resources(), 'B': Resources(cpus=2, gpus=1, memory_gib=1.5)}
      journal.write_discovery(Discovery('a.py', {'/x/a.py': 'd'}, cases))
      self.assertEqual(journal.discovery('a.py').cases, cases)
      self.assertIsNone(journal.discovery('b.py'))
      self.assertEqual(journal.runs()[0].ended, '')
      journal.end_run(run)
    self.assertTrue(is_journal(self.path))
    self.assertCountEqual(os.listdir(self.folder), ['run.sqlite'])
    with Journal(self.path) as journal:
      (read,) = journal.runs()
      self.assertEqual((read.number, read.versions, read.planned), (1, VERSIONS, ('a.py::A',)))
      self.assertNotEmpty(read.ended)
      (entry,) = journal.entries(run)
      self.assertEqual(entry, result.entry)
      self.assertEqual(journal.verdict(entry).to_json(), result.verdict.to_json())
      self.assertEqual(journal.deviations(entry), result.deviations)
      (deviation,) = journal.verdict(entry, deviations=True).stages[0].deviations
      self.assertEqual(deviation.subject, 'kernel')

  def test_a_verdict_is_replaced_in_its_run_only(self):
    with Journal(self.path, writable=True) as journal:
      for run, status in ((1, Status.ERROR), (2, Status.PASSED)):
        self.begin(journal, 'a.py::A')
        journal.write(made_results.result(run, 'a.py::A', status))
      journal.write(made_results.result(2, 'a.py::A', Status.FAILED, attempt=2))
      self.assertIs(journal.entries(1)[0].status, Status.ERROR)
      (entry,) = journal.entries(2)
      self.assertEqual((entry.status, entry.attempt), (Status.FAILED, 2))

  def test_a_verdict_that_is_kept_is_stored_once(self):
    with Journal(self.path, writable=True) as journal:
      self.begin(journal, 'a.py::A')
      journal.write(made_results.result(1, 'a.py::A', Status.PASSED))
      for run in (2, 3):
        self.begin(journal, 'a.py::A')
        journal.keep(journal.entries(run - 1)[0], run)
      (entry,) = journal.entries(3)
      self.assertEqual((entry.run, entry.kept_from), (3, 1))
      self.assertIs(journal.verdict(entry).status, Status.PASSED)
    rows = sqlite3.connect(self.path).execute('select count(verdict) from results').fetchone()
    self.assertEqual(rows, (1,))

  def test_a_plan_lets_go_of_what_is_not_in_it(self):
    with Journal(self.path, writable=True) as journal:
      self.begin(journal, 'a.py::A', 'a.py::B')
      for name in 'AB':
        journal.write(made_results.result(1, f'a.py::{name}', Status.PASSED))
      journal.plan(1, ['a.py::B', 'a.py::C'])
      self.assertEqual([entry.target for entry in journal.entries(1)], ['a.py::B'])
      self.assertEqual(journal.runs()[0].planned, ('a.py::B', 'a.py::C'))

  def test_what_is_no_journal(self):
    (self.folder / 'text').write_text('hello' * 1000)
    other = sqlite3.connect(self.folder / 'other.sqlite')
    other.execute('create table x (y)')
    other.commit()
    with Journal(str(self.folder / 'old.sqlite'), writable=True):
      pass
    old = sqlite3.connect(self.folder / 'old.sqlite')
    old.execute('pragma user_version = 7')
    old.commit()
    for name, text in (
      ('text', 'file is not a database'),
      ('other.sqlite', 'is an SQLite file, but no journal of tf2verify'),
      ('old.sqlite', 'has schema version 7; this tf2verify reads 2, and 1'),
    ):
      for writable in (True, False):
        subtest = self.subTest(name, writable=writable)
        with subtest, self.assertRaisesRegex(UsageError, text):
          Journal(str(self.folder / name), writable)
    with self.assertRaisesRegex(UsageError, 'does not exist; `python -m tf2verify fleet` writes'):
      Journal(str(self.folder / 'absent.sqlite'))
    with self.assertRaisesRegex(UsageError, 'cannot be written: .*No such file'):
      Journal(str(self.folder / 'no' / 'folder.sqlite'), writable=True)
    self.assertFalse(is_journal(str(self.folder / 'text')))
    self.assertFalse(is_journal(str(self.folder)))

  def test_a_report_of_another_version_is_named(self):
    with Journal(self.path, writable=True) as journal:
      self.begin(journal, 'a.py::A')
      journal.write(made_results.result(1, 'a.py::A', Status.PASSED))
      change = """update results set verdict = replace(verdict, '_version": ', '_version": 9')"""
      journal._file.connection.execute(change)
      with self.assertRaisesRegex(UsageError, r'run 1, a\.py::A: its verdict is not what was'):
        journal.verdict(journal.entries(1)[0])
      journal._file.identity = None  # as of one from before there were digests
      with self.assertRaisesRegex(UsageError, r'run 1, a\.py::A: has schema_version 9'):
        journal.verdict(journal.entries(1)[0])

  def test_a_full_disk_loses_the_last_verdict_only(self):
    with Journal(self.path, writable=True) as journal:
      self.begin(journal, 'a.py::A', 'b.py::B')
      journal.write(made_results.result(1, 'a.py::A', Status.PASSED))
      (pages,) = journal._file.connection.execute('pragma page_count').fetchone()
      journal._file.connection.execute(f'pragma max_page_count = {pages}')
      with self.assertRaisesRegex(UsageError, 'disk is full; the verdicts before are in it'):
        for _ in range(100):
          journal.write(made_results.result(1, f'b.py::{"B" * 5000}{_}', Status.PASSED))
    with Journal(self.path) as journal:
      self.assertIn('a.py::A', [entry.target for entry in journal.entries(1)])

  def test_one_that_is_locked(self):
    with Journal(self.path, writable=True) as journal:
      self.begin(journal)
    impatient = mock.patch.object(journal_file, '_WAIT_SECONDS', 0.1)
    with impatient, Journal(self.path, writable=True) as journal:
      other = sqlite3.connect(self.path, isolation_level=None)
      other.execute('begin immediate')
      with self.assertRaisesRegex(UsageError, 'could not be written: database is locked'):
        journal.write(made_results.result(1, 'a.py::A', Status.PASSED))
      other.execute('rollback')
      journal.write(made_results.result(1, 'a.py::A', Status.PASSED))

  def test_two_fleets_do_not_share_one(self):
    with Journal(self.path, writable=True) as journal:
      with self.assertRaisesRegex(UsageError, f'use by another fleet .process {os.getpid()}.'):
        Journal(self.path, writable=True)
      with Journal(self.path) as reading:
        self.assertEmpty(reading.runs())
      journal.begin_run([], VERSIONS, '', [])
    with Journal(self.path, writable=True) as journal:
      self.assertLen(journal.runs(), 1)

  def test_the_lock_of_a_killed_fleet_is_free(self):
    program = (
      "import sys, os; sys.orig_argv = ['', '-m', 'tf2verify', 'fleet', '']; "
      'from tf2verify.fleet.journal import Journal; '
      'Journal(sys.argv[1], writable=True); os.kill(os.getpid(), 9)'
    )
    with contextlib.suppress(subprocess.CalledProcessError):
      subprocess.run([sys.executable, '-c', program, self.path], cwd=console.REPOSITORY, check=True)
    with Journal(self.path, writable=True):
      pass

  def test_one_that_cannot_be_written(self):
    with Journal(self.path, writable=True) as journal:
      self.begin(journal, 'a.py::A')
      journal.write(made_results.result(1, 'a.py::A', Status.PASSED))
    self.addCleanup(os.chmod, self.folder, 0o700)
    with without_the_rights_of_root(self.folder, self.path):
      os.chmod(self.path, 0o400)
      with self.assertRaisesRegex(UsageError, 'readonly database'):
        Journal(self.path, writable=True)
      os.chmod(self.folder, 0o500)
      with self.assertRaisesRegex(UsageError, 'readonly database'):
        Journal(self.path, writable=True)
      with Journal(self.path) as journal:
        self.assertIs(journal.verdict(journal.entries(1)[0]).status, Status.PASSED)


if __name__ == '__main__':
  absltest.main()
