import os

from absl.testing import absltest

from tests import console
from tests.fleet import made_results
from tf2verify.errors import UsageError
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.merging import merge
from tf2verify.records.status import Status


class MergingTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.out = str(self.folder / 'all.sqlite')

  def journal(self, shard, *cases, planned=(), tensorflow='2.21.0', status=Status.PASSED):
    path = str(self.folder / f'{shard.replace("/", "of") or "whole"}{len(cases)}.sqlite')
    with Journal(path, writable=True) as journal:
      targets = [f'x.py::{case}' for case in cases]
      run = journal.begin_run([], {'tensorflow': tensorflow}, shard, [*targets, *planned])
      for target in targets:
        journal.write(made_results.result(run, target, status, share=0.5))
    return path

  def test_shards(self):
    notes = merge(self.out, [self.journal('2/2', 'B'), self.journal('1/2', 'A', 'C')])
    self.assertEmpty(notes)
    with Journal(self.out) as journal:
      (run,) = journal.runs()
      self.assertNotEmpty(run.ended)
      self.assertEqual(run.shard, '')
      entries = journal.entries(1)
      self.assertEqual([entry.target for entry in entries], [f'x.py::{name}' for name in 'ABC'])
      for entry in entries:
        self.assertLen(journal.verdict(entry, deviations=True).stages[0].deviations, 1)

  def test_a_case_in_two_journals_counts_once(self):
    one = self.journal('', 'A')
    two = self.journal('', 'A', 'B', status=Status.FAILED)
    notes = merge(self.out, [two, one])
    self.assertEqual(notes, ['x.py::A is in several journals: its last verdict counts'])
    with Journal(self.out) as journal:
      self.assertIs(journal.entries(1)[0].status, Status.FAILED)
      self.assertLen(journal.entries(1), 2)

  def test_a_run_that_was_cut_off_stays_so(self):
    merge(self.out, [self.journal('1/1', 'A', planned=['x.py::Z'])])
    with Journal(self.out) as journal:
      (run,) = journal.runs()
      self.assertEqual((run.ended, run.planned), ('', ('x.py::A', 'x.py::Z')))

  def test_what_is_no_one_run(self):
    one = self.journal('1/3', 'A')
    for paths, text in (
      ([one], 'shard 2/3, 3/3 is in none of'),
      (
        [one, self.journal('2/3', 'B', tensorflow='2.20.0')],
        'was run with tensorflow 2.20.0, .* with 2.21.0: that is not one run; .* history',
      ),
      ([one, str(self.folder / 'absent')], 'absent does not exist'),
    ):
      with self.subTest(text), self.assertRaisesRegex(UsageError, text):
        merge(self.out, paths)
      self.assertFalse(os.path.exists(self.out))
    with self.assertRaisesRegex(UsageError, 'is there already'):
      merge(one, [one])
    self.assertFalse([name for name in os.listdir(self.folder) if name.startswith('.merging')])


if __name__ == '__main__':
  absltest.main()
