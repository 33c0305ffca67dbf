import os
from unittest import mock

import pytest
from absl.testing import absltest

from tests import console
from tests.fleet import made_results
from tf2verify.errors import UsageError
from tf2verify.fleet import content, fleet
from tf2verify.fleet.fleet import Options, run_fleet
from tf2verify.fleet.journal import Journal, Unstorable
from tf2verify.fleet.local_engine import Limits, LocalEngine
from tf2verify.fleet.sharding import Shard
from tf2verify.records.status import Status

pytestmark = pytest.mark.starts_processes

SERVER = 'tests.fleet.stand_in_server'
TWO = "CASES = {'A': lambda *_: 'PASSED', 'B': lambda *_: 'FAILED'}\n"
ONE = "CASES = {'C': lambda *_: 'PASSED'}\n"
NONE = 'CASES = {}\n'
BROKEN = 'CASES = {\n'
ERROR = 'import os\nCASES = {"E": lambda *_: os._exit(3)}\n'


class Watched:
  """Notes what a run tells."""

  def __init__(self):
    self.ran, self.begun, self.changes = [], [], []
    self.plan = self.kept = None
    self.why = {}
    self.damages = []

  def planned(self, plan, to_run, kept):
    self.plan, self.kept = plan, kept

  def damaged(self, how):
    self.damages.append(how)

  def not_kept(self, changes):
    self.changes = changes

  def again(self, why):
    self.why = why

  def started(self, target):
    self.begun.append(target)

  def ended(self, result):
    self.ran.append(os.path.basename(result.entry.target))


class FleetTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    (self.folder / '.git').mkdir()
    self.models = self.folder / 'models'
    self.models.mkdir()
    self.journal = str(self.folder / 'run.sqlite')
    self.write(one_case=ONE, two_case=TWO)

  def write(self, **texts):
    for name, text in texts.items():
      (self.models / f'{name}.py').write_text(text)

  def run_fleet(self, *targets, stop_after=None, seconds=None, **options):
    """Returns the outcome and what was told; stops as if killed after some verdicts."""
    watched = Watched()
    targets = targets or (str(self.models),)
    with (
      Journal(self.journal, writable=True) as journal,
      LocalEngine(1, Limits(seconds), SERVER) as engine,
    ):
      if stop_after is not None:
        engine = _Stopping(engine, stop_after)
      try:
        outcome = run_fleet(Options(targets, **options), journal, engine, watched)
      except _Killed:
        outcome = None
    return outcome, watched

  def runs(self):
    with Journal(self.journal) as journal:
      return [
        (run, {os.path.basename(entry.target): entry for entry in journal.entries(run.number)})
        for run in journal.runs()
      ]

  def test_all_cases_of_a_folder(self):
    self.write(empty_case=NONE, broken_case=BROKEN, dies_case=ERROR)
    outcome, watched = self.run_fleet()
    self.assertEqual(
      {target: status.value for target, status in outcome.statuses.items()},
      {
        'models/broken_case.py': 'ERROR',
        'models/dies_case.py::E': 'ERROR',
        'models/one_case.py::C': 'PASSED',
        'models/two_case.py::A': 'PASSED',
        'models/two_case.py::B': 'FAILED',
      },
    )
    self.assertEqual(outcome.passed, 2)
    self.assertEqual(watched.plan.empty, ('models/empty_case.py',))
    self.assertLen(watched.plan.files, 5)
    self.assertNotEmpty(self.runs()[0][0].ended)
    with Journal(self.journal) as journal:
      broken = journal.verdict(journal.entries(1)[0])
    self.assertIn('never closed', broken.stages[0].error.summary)
    self.assertEqual(broken.run_again, f'python -m tf2verify run {self.models}/broken_case.py')

  def test_a_damaged_verdict_runs_again(self):
    self.run_fleet()
    with Journal(self.journal, writable=True) as journal:
      execute = journal._file.connection.execute
      execute("update results set verdict = replace(verdict, 'FAILED', 'PASSED')")
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['two_case.py::B'])
    self.assertRegex(watched.damages[0], 'run 1, models/two_case.py::B: its verdict is not what')
    self.assertEqual(outcome.statuses['models/two_case.py::B'], Status.FAILED)
    self.assertEqual(outcome.kept, 2)
    _, watched = self.run_fleet(resume=True)
    self.assertEqual((watched.ran, watched.damages), ([], []))

  def test_a_verdict_that_cannot_be_stored_says_so(self):
    write = Journal.write

    def refuse(journal, result):
      if result.verdict.case == 'A' and result.verdict.status is Status.PASSED:
        raise Unstorable('it takes 900 MiB')
      write(journal, result)

    with mock.patch.object(Journal, 'write', refuse):
      outcome, watched = self.run_fleet()
    self.assertLen(watched.ran, 3)
    self.assertIs(outcome.statuses['models/two_case.py::A'], Status.ERROR)
    with Journal(self.journal) as journal:
      (verdict,) = (journal.verdict(e) for e in journal.entries(1) if e.target.endswith('::A'))
    said = 'its verdict (PASSED) could not be stored: it takes 900 MiB'
    self.assertIn(said, verdict.to_text())

  def test_a_case_that_tells_rubbish(self):
    tells = (
      'def tells(*fields):\n'
      '  def case(events, job):\n'
      '    import os\n'
      '    events.tell("done", **dict(fields))\n'
      '    os._exit(0)\n'
      '  return case\n'
      'CASES = {"A": tells(), "B": tells(("verdict", []), ("files", 3)),\n'
      '  "C": tells(("verdict", {"stages": 7}), ("files", {})),\n'
      '  "D": tells(("verdict", {"stages": [{"stage": []}]}), ("files", {}))}\n'
    )
    self.write(tells_case=tells)
    outcome, _ = self.run_fleet()
    for name in 'ABCD':
      self.assertIs(outcome.statuses[f'models/tells_case.py::{name}'], Status.ERROR)
    self.assertEqual(outcome.passed, 2)

  @pytest.mark.runs_alone
  def test_files_whose_import_hangs_or_crashes(self):
    self.write(hangs_case='import time\ntime.sleep(1000)\n', sinks_case='import os\nos.abort()\n')
    outcome, _ = self.run_fleet(seconds=1.5)
    self.assertEqual(outcome.passed, 2)
    with Journal(self.journal) as journal:
      found = {
        os.path.basename(entry.target): journal.verdict(entry).to_text()
        for entry in journal.entries(1)
        if entry.status is Status.ERROR
      }
    self.assertCountEqual(found, ['hangs_case.py', 'sinks_case.py'])
    self.assertIn('no verdict after 1.5 s', found['hangs_case.py'])
    self.assertIn('time.sleep(1000)', found['hangs_case.py'])
    self.assertIn('SIGABRT', found['sinks_case.py'])
    self.write(hangs_case=ONE, sinks_case=NONE)
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['hangs_case.py::C'])
    self.assertEqual(outcome.passed, 3)

  def test_resuming_a_finished_run_keeps_what_is_unchanged(self):
    self.run_fleet()
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual((watched.ran, watched.kept, outcome.passed), ([], 3, 2))
    self.write(one_case=ONE + '# changed\n')
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual((watched.ran, watched.kept), (['one_case.py::C'], 2))
    (_, first), _, (_, third) = self.runs()
    self.assertEqual(third['one_case.py::C'].kept_from, 3)
    self.assertEqual(third['two_case.py::A'].kept_from, 1)
    self.assertEqual(first['two_case.py::A'].kept_from, 1)

  def test_why_a_case_runs_again(self):
    self.write(bad_case=ERROR)
    self.run_fleet()
    _, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.why, {})
    self.write(one_case=ONE + '# changed\n')
    _, watched = self.run_fleet(resume=True, retry=True)
    (target,) = (target for target in watched.why if 'one_case' in target)
    self.assertEndsWith(watched.why.pop(target), 'models/one_case.py changed')
    self.assertEqual([*watched.why.values()], ['it ended with ERROR'])
    _, watched = self.run_fleet(resume=True, stages=('loss',))
    self.assertIn('--stages was not given', watched.why.values())

  def test_without_resuming_all_run_again(self):
    self.run_fleet()
    _, watched = self.run_fleet()
    self.assertLen(watched.ran, 3)

  def test_resuming_a_run_that_was_cut_off_goes_on_with_it(self):
    outcome, _ = self.run_fleet(stop_after=1)
    self.assertIsNone(outcome)
    ((run, there),) = self.runs()
    self.assertEqual((run.ended, list(there)), ('', ['one_case.py::C']))
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['two_case.py::A', 'two_case.py::B'])
    self.assertLen(outcome.statuses, 3)
    ((run, there),) = self.runs()
    self.assertNotEmpty(run.ended)
    self.assertEqual({entry.attempt for entry in there.values()}, {1})

  def test_resuming_with_fewer_targets_leaves_the_others(self):
    self.run_fleet(stop_after=2)  # C and A
    outcome, watched = self.run_fleet(f'{self.models}/two_case.py::A', resume=True)
    self.assertEqual((watched.ran, len(outcome.statuses)), ([], 1))
    ((run, there),) = self.runs()
    self.assertEqual(run.ended, '')
    self.assertCountEqual(there, ['one_case.py::C', 'two_case.py::A'])
    _, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['two_case.py::B'])

  def test_what_is_gone_is_let_go(self):
    self.run_fleet(stop_after=2)
    self.write(two_case=ONE, one_case=BROKEN)
    outcome, _ = self.run_fleet(resume=True)
    self.assertCountEqual(outcome.statuses, ['models/one_case.py', 'models/two_case.py::C'])
    ((_, there),) = self.runs()
    self.assertCountEqual(there, ['one_case.py', 'two_case.py::C'])
    self.write(one_case=ONE)
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['one_case.py::C'])
    self.assertCountEqual(self.runs()[-1][1], ['one_case.py::C', 'two_case.py::C'])

  def test_other_versions_keep_nothing(self):
    self.run_fleet()
    other = {**content.versions(), 'tensorflow': '2.99.0'}
    with mock.patch.object(fleet, 'versions', lambda: other):
      _, watched = self.run_fleet(resume=True)
    self.assertLen(watched.ran, 3)
    self.assertLen(watched.changes, 1)
    self.assertRegex(watched.changes[0], r'tensorflow .* -> 2\.99\.0')

  def test_other_stages_keep_nothing(self):
    self.run_fleet()
    _, watched = self.run_fleet(resume=True, stages=('loss',))
    self.assertLen(watched.ran, 3)
    with self.assertRaisesRegex(UsageError, "'absent' is not a stage"):
      self.run_fleet(stages=('absent',))

  def test_another_copy_of_the_repository_keeps_nothing(self):
    self.run_fleet()
    other = self.folder / 'copy'
    (other / '.git').mkdir(parents=True)
    os.rename(self.models, other / 'models')
    outcome, watched = self.run_fleet(str(other / 'models'), resume=True)
    self.assertLen(watched.ran, 3)
    self.assertIn('models/two_case.py::A', outcome.statuses)
    self.assertLen(self.runs()[-1][1], 3)

  def test_retrying_errors(self):
    self.write(dies_case=ERROR)
    self.run_fleet()
    _, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, [])
    _, watched = self.run_fleet(resume=True, retry=True)
    self.assertEqual(watched.ran, ['dies_case.py::E'])
    (self.models / 'dies_case.py').write_text(ERROR.replace('os._exit(3)', '"PASSED"'))
    outcome, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['dies_case.py::E'])
    self.assertEqual(outcome.passed, 3)

  def test_an_error_counts_the_files_beside_it(self):
    self.write(dies_case=ERROR, model='x = 1\n')
    self.run_fleet()
    self.write(model='x = 2\n')
    _, watched = self.run_fleet(resume=True)
    self.assertEqual(watched.ran, ['dies_case.py::E'])

  def test_a_target_is_named_alike_from_every_folder(self):
    self.run_fleet()
    before = os.getcwd()
    self.addCleanup(os.chdir, before)
    os.chdir(self.models)
    os.symlink(self.models / 'one_case.py', self.folder / 'link_case.py')
    targets = ('one_case.py', '.', './two_case.py::A', str(self.models / 'one_case.py'))
    outcome, watched = self.run_fleet(*targets, '../link_case.py', resume=True)
    self.assertEqual((watched.ran, len(outcome.statuses)), ([], 3))

  def test_unusable_targets(self):
    self.write(empty_case=NONE)
    for target, text in (
      (f'{self.models}/absent_case.py', 'does not exist'),
      (f'{self.models}/one_case.py::D', 'models/one_case.py has no case D; it has C'),
      (f'{self.models}/empty_case.py', 'declares no complete EquivalenceCase'),
      (str(self.folder / '.git'), 'has no file named'),
    ):
      with self.subTest(text), self.assertRaisesRegex(UsageError, text):
        self.run_fleet(target)
    self.assertEmpty(self.runs())

  def test_shards(self):
    seen = []
    for index in range(3):
      outcome, _ = self.run_fleet(shard=Shard(index, 3), resume=True)
      seen += outcome.statuses
    self.assertCountEqual(
      seen, ['models/one_case.py::C', 'models/two_case.py::A', 'models/two_case.py::B']
    )
    self.assertEqual([run.shard for run, _ in self.runs()], ['1/3', '2/3', '3/3'])
    outcome, _ = self.run_fleet(shard=Shard(4, 5))
    self.assertEmpty(outcome.statuses)

  def test_a_journal_that_cannot_be_written_ends_the_run(self):
    with Journal(self.journal, writable=True) as journal:
      journal.begin_run([], content.versions(), '', ['x.py::X'])
      journal.write(made_results.result(1, 'x.py::X', Status.PASSED))
      full = mock.patch.object(journal, 'write', side_effect=UsageError('the disk is full'))
      with (
        LocalEngine(1, Limits(), SERVER) as engine,
        full,
        self.assertRaisesRegex(UsageError, 'the disk is full'),
      ):
        run_fleet(Options((str(self.models),)), journal, engine, Watched())
    self.assertEqual(self.runs()[-1][0].ended, '')


class WhyAgainTest(absltest.TestCase):
  def test_how_many_files_changed(self):
    entry = mock.Mock(status=Status.PASSED, stages=(), files=('a.py',))
    unit = mock.Mock(failed=None, place=mock.Mock(is_file=False))
    for number, words in (
      (1, 'a0 changed'),
      (2, 'a0 and 1 more file changed'),
      (3, '2 more files'),
    ):
      digests = mock.Mock(**{'changed.return_value': [f'a{n}' for n in range(number)]})
      said = fleet._why_again(entry, unit, Options((), (), True, False, Shard()), digests)
      self.assertIn(words, said.replace(os.sep, ''))


class _Killed(Exception):
  pass


class _Stopping:
  def __init__(self, engine, after):
    self._engine, self._left = engine, after

  def run(self, requests, started):
    for request, ended in self._engine.run(requests, started):
      if request.kind == 'verify':
        if not self._left:
          raise _Killed
        self._left -= 1
      yield request, ended


if __name__ == '__main__':
  absltest.main()
