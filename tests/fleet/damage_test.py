"""Damaged journals and reports are refused, or say what they said; 600 of each: `damage`."""

import contextlib
import os
import pathlib
import sqlite3
import tempfile

import pytest
from absl.testing import absltest

from tests.fleet import damage, made_results
from tests.report.html import made_up
from tf2verify.errors import UsageError
from tf2verify.fleet.journal import Journal

pytestmark = pytest.mark.starts_processes

_OLD = (
  'drop table journal',
  'alter table runs drop column digest',
  'alter table results drop column digest',
  'alter table results drop column verdict_sha256',
  'alter table results drop column deviations_sha256',
  'alter table discoveries drop column digest',
  'pragma user_version = 1',
)


class DamageTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.path = os.path.join(folder.name, 'run.sqlite')
    damage.make_journal(self.path)
    self.before = damage.verdicts_of(self.path)

  def change(self, *statements):
    with contextlib.closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
      for statement in statements:
        connection.execute(statement)

  def test_journals(self):
    counts, foreign = damage.damage_journals(60)
    self.assertEqual(foreign, [])
    self.assertGreater(counts['refused'], 20)
    self.assertGreater(counts['unchanged'], 5)

  def test_reports(self):
    texts = [case.to_json() for case in (made_up.passed(), made_up.failed(), made_up.error())]
    texts += [made_results.verdict(key, *found).to_json() for key, found in damage.CASES.items()]
    counts, foreign = damage.damage_reports(texts, 60)
    self.assertEqual(foreign, [])
    self.assertGreater(counts[2], 20)

  def test_a_changed_verdict_is_named_and_runs_again(self):
    self.change("update results set verdict = replace(verdict, 'FAILED', 'PASSED') where run = 2")
    with self.assertRaisesRegex(UsageError, r'is damaged: run 2, a\.py::Wrong: its verdict is not'):
      damage.verdicts_of(self.path)
    with Journal(self.path, writable=True) as journal:
      first, second = journal.mend()
      self.assertIn('run 2, a.py::Wrong: its verdict is not what was written', first)
      self.assertEqual(second, 'run 2 no longer has a verdict of: a.py::Wrong')
      self.assertEqual(journal.mend(), [])
      self.assertEqual(journal.runs()[1].ended, '')
      self.assertLen(journal.entries(2), 3)

  def test_a_verdict_in_the_place_of_another(self):
    columns = ('status', 'verdict', 'verdict_sha256', 'deviations', 'deviations_sha256', 'digest')
    source = 'select {} from results where run = 1 and target = "a.py::Right"'
    sets = ', '.join(f'{name} = ({source.format(name)})' for name in columns)
    self.change(f"update results set {sets} where run = 2 and target = 'a.py::Wrong'")
    with self.assertRaisesRegex(
      UsageError, r'run 2, a\.py::Wrong: its digest is that of different'
    ):
      damage.verdicts_of(self.path)

  def test_a_lost_run_and_a_lost_row(self):
    self.change("delete from results where run = 2 and target = 'a.py::Wrong'")
    with self.assertRaisesRegex(UsageError, r'run 2, a\.py::Wrong: no row'):
      damage.verdicts_of(self.path)
    self.change('delete from runs where run = 2')
    with self.assertRaisesRegex(UsageError, 'it had 2 runs, and has 1'):
      damage.verdicts_of(self.path)

  def test_rows_of_another_journal(self):
    other = f'{self.path}.other'
    damage.make_journal(other)
    self.change(
      f"attach '{other}' as other",
      'delete from results',
      'insert into results select * from other.results',
    )
    with self.assertRaisesRegex(UsageError, 'its digest is that of different contents'):
      damage.verdicts_of(self.path)

  def test_one_from_before_there_were_digests(self):
    self.change(*_OLD)
    self.assertEqual(damage.verdicts_of(self.path), self.before)
    with Journal(self.path, writable=True) as journal:
      self.assertEqual(journal.mend(), [])
    self.assertEqual(damage.verdicts_of(self.path), self.before)
    self.change("update results set verdict = replace(verdict, 'FAILED', 'PASSED')")
    with self.assertRaisesRegex(UsageError, 'the digest differs'):
      damage.verdicts_of(self.path)

  def test_a_damaged_one_from_before_there_were_digests(self):
    self.change(*_OLD, "update results set verdict = 'null' where target = 'a.py::Wrong'")
    with self.assertRaisesRegex(UsageError, r'run 2, a\.py::Wrong: it cannot be read'):
      damage.verdicts_of(self.path)
    with Journal(self.path, writable=True) as journal:
      self.assertLen(journal.mend(), 4)  # of both runs: the row, and that it is gone
      self.assertLen(journal.entries(2), 3)

  def test_one_journal_has_one_fleet_whatever_it_is_called(self):
    folder = pathlib.Path(self.path).parent
    (folder / 'symbolic.sqlite').symlink_to(self.path)
    (folder / 'hard.sqlite').hardlink_to(self.path)
    with Journal(self.path, writable=True):
      for name in ('run', 'symbolic', 'hard'):
        with self.assertRaisesRegex(UsageError, f'use by another fleet .process {os.getpid()}.'):
          Journal(str(folder / f'{name}.sqlite'), writable=True)
    for name in ('symbolic', 'hard'):
      with Journal(str(folder / f'{name}.sqlite'), writable=True):
        pass


if __name__ == '__main__':
  absltest.main()
