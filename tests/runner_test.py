import json
import os
import unittest
import xml.etree.ElementTree
from unittest import mock

import pytest
from absl.testing import absltest

import tf2verify
from tests import console, small_case, tensorboard_events
from tf2verify.commands import runner
from tf2verify.stages import STAGES

pytestmark = pytest.mark.starts_processes

_TESTS = [f'test_{number + 1:02}_{stage.name}' for number, stage in enumerate(STAGES)]


class ProgramTest(absltest.TestCase):
  """`python cases_test.py`, as a user runs it."""

  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)
    console.write_files(self.folder, cases_test=console.CASES)

  def test_all_cases_with_xml_and_reports(self) -> None:
    done = console.run(
      'cases_test.py', '--xml_output_file=out.xml', '--report_dir=report',
      '--tf2verify_html=page.html', folder=self.folder,
    )  # fmt: skip
    self.assertEqual(done.returncode, 1, done.stderr)
    suites = xml.etree.ElementTree.parse(self.folder / 'out.xml').getroot()
    self.assertEqual((suites.get('tests'), suites.get('failures')), (str(2 * len(STAGES)), '1'))
    ran = [(test.get('classname'), test.get('name')) for test in suites.iter('testcase')]
    for case in ('RightCase', 'WrongCase'):
      self.assertEqual([test for name, test in ran if name == f'__main__.{case}'], _TESTS)
    self.assertIn("stage 'zero_randomness' FAILED", done.stderr)
    self.assertIn('run again: python cases_test.py WrongCase.test_03_zero_randomness', done.stderr)
    self.assertIn('FAILED (failures=1, skipped=9)', done.stderr)
    skipped = '[  SKIPPED ] WrongCase.test_04_seeded_constant - blocked: zero_randomness FAILED'
    self.assertIn(skipped, done.stderr)
    self.assertIn('RightCase: PASSED, 9 of 9 stages passed, 2 not applicable', done.stdout)
    self.assertIn('WrongCase: FAILED, 3 of 11 stages passed', done.stdout)
    self.assertIn('WrongCase', (self.folder / 'page.html').read_text())
    self.assertNotIn('Traceback', done.stderr)  # through frames of tf2verify
    self._check_reports('report')

  @tensorboard_events.needs_tensorboard
  def test_help_lists_the_flags(self) -> None:
    done = console.run('cases_test.py', '--help', folder=self.folder)
    self.assertEqual(done.returncode, 1)  # as of absl
    for flag in ('--report_dir', '--tf2verify_html', '--tensorboard_dir', '--test_filter'):
      self.assertIn(flag, done.stdout + done.stderr)

  def test_tensorboard(self) -> None:
    done = console.run(
      'cases_test.py', '--tensorboard_dir=events', 'RightCase.test_03_zero_randomness',
      folder=self.folder,
    )  # fmt: skip
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertEndsWith(done.stdout, 'TensorBoard: tensorboard --logdir events\n')
    [found] = tensorboard_events.read(self.folder / 'events').values()
    self.assertEqual(found['zero_randomness/greatest_absolute'], {1: 0.0})
    self.assertNotIn('gradients/greatest_absolute', found)

  def test_tensorboard_folder_that_cannot_be(self) -> None:
    done = console.run('cases_test.py', '--tensorboard_dir=cases_test.py', folder=self.folder)
    self.assertEqual((done.returncode, done.stdout), (2, ''))
    self.assertIn('tf2verify: could not make the folder cases_test.py: File exists', done.stderr)
    self.assertNotIn('Traceback', done.stderr)

  def _check_reports(self, folder: str) -> None:
    names = sorted(os.listdir(self.folder / folder))
    self.assertEqual(
      names, ['cases_test.RightCase.json', 'cases_test.WrongCase.json', 'summary.md']
    )
    wrong = json.loads((self.folder / folder / names[1]).read_text())
    self.assertEqual((wrong['schema_version'], wrong['status']), (2, 'FAILED'))
    names = [stage.name for stage in STAGES]
    self.assertEqual([stage['stage'] for stage in wrong['stages']], names)
    summary = (self.folder / folder / 'summary.md').read_text()
    self.assertIn('1 of 2 cases passed.', summary)
    self.assertIn('| WrongCase | ✅ passed, 3 calls |', summary)
    self.assertIn("## WrongCase\n\n```text\nWrongCase: stage 'zero_randomness' FAILED", summary)

  def test_one_test_runs_what_it_needs(self) -> None:
    done = console.run('cases_test.py', 'RightCase.test_06_gradients', folder=self.folder)
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('Ran 1 test', done.stderr)
    self.assertIn('6 gradients               PASSED', done.stdout)
    self.assertIn('RightCase: PASSED', done.stdout)
    self.assertNotIn('WrongCase', done.stdout)

  def test_filter_and_shards(self) -> None:
    done = console.run(
      'cases_test.py',
      '--test_filter=test_02_variable_inventory',
      folder=self.folder,
      TEST_TOTAL_SHARDS='2',
      TEST_SHARD_INDEX='1',
      TEST_SHARD_STATUS_FILE='sharded',
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('Ran 1 test', done.stderr)
    self.assertIn('WrongCase: PASSED, 1 of 1 stages passed', done.stdout)
    self.assertTrue((self.folder / 'sharded').exists())

  def test_filter_that_nothing_matches_is_no_pass(self) -> None:
    done = console.run('cases_test.py', '--test_filter=Leftcase', folder=self.folder)
    self.assertEqual(done.returncode, 5, done.stderr)
    self.assertIn("the main module has none whose name contains 'Leftcase'", done.stdout)

  def test_shard_without_a_case(self) -> None:
    done = console.run(
      'cases_test.py', folder=self.folder, TEST_TOTAL_SHARDS='3', TEST_SHARD_INDEX='2'
    )
    self.assertEqual(done.returncode, 0, done.stderr)
    self.assertIn('Ran 0 tests', done.stderr)

  def test_under_pytest(self) -> None:
    done = console.run(
      '-m', 'pytest', '-v', '-rs', '-p', 'no:cacheprovider', 'cases_test.py',
      folder=self.folder, TF2VERIFY_REPORT_DIR='report',
    )  # fmt: skip
    self.assertEqual(done.returncode, 1, done.stdout)
    self.assertIn('1 failed, 12 passed, 9 skipped', done.stdout)
    self.assertNotIn('BaseCase::', done.stdout)
    self.assertNotIn('EquivalenceCase::', done.stdout)
    self.assertIn('blocked: zero_randomness FAILED', done.stdout)
    lines = [line for line in done.stdout.splitlines() if line.startswith('cases_test.py::Right')]
    self.assertEqual([line.split('::')[2].split(' ')[0] for line in lines], _TESTS)
    self._check_reports('report')


class ShardTest(absltest.TestCase):
  def _load(self, shard: int, shards: int) -> list[str]:
    loader = runner.CaseLoader(shard, shards)
    suites = [loader.loadTestsFromTestCase(case) for case in (_First, _Plain, _Second, _Third)]
    self.assertTrue(loader.seen)
    return [f'{type(test).__name__}.{test._testMethodName}' for suite in suites for test in suite]

  def test_every_test_is_in_one_shard_and_cases_are_whole(self) -> None:
    everything = self._load(0, 1)
    self.assertLen(everything, 3 * len(STAGES) + 2)
    for shards in range(1, 8):
      parts = [self._load(shard, shards) for shard in range(shards)]
      self.assertCountEqual([name for part in parts for name in part], everything)
      for case in ('_First', '_Second', '_Third'):
        counts = [sum(name.startswith(f'{case}.') for name in part) for part in parts]
        self.assertEqual(sorted(counts)[-1], len(STAGES))
        self.assertEqual(sum(counts), len(STAGES))

  def test_variables_are_taken_over(self) -> None:
    with mock.patch.dict(os.environ, TEST_TOTAL_SHARDS='4', TEST_SHARD_INDEX='3'):
      self.assertEqual(runner._shard(), (3, 4))
      self.assertNotIn('TEST_TOTAL_SHARDS', os.environ)
    self.assertEqual(runner._shard(), (0, 1))

  def test_impossible_shard(self) -> None:
    for total, index in (('2', '2'), ('2', ''), ('two', '0'), ('2', '-1')):
      with (
        mock.patch.dict(os.environ, TEST_TOTAL_SHARDS=total, TEST_SHARD_INDEX=index),
        self.assertRaisesRegex(tf2verify.Tf2VerifyError, 'the index must be a number from 0'),
      ):
        runner._shard()

  def test_impossible_shard_is_a_usage_error(self) -> None:
    with (
      mock.patch.dict(os.environ, TEST_TOTAL_SHARDS='2', TEST_SHARD_INDEX='2'),
      self.assertRaises(SystemExit) as ended,
    ):
      runner.main([])
    self.assertEqual(ended.exception.code, 2)


class _First(small_case.SmallCase):
  __test__ = False


class _Second(small_case.SmallCase):
  __test__ = False


class _Third(small_case.SmallCase):
  __test__ = False


class _Plain(unittest.TestCase):
  __test__ = False

  def test_one(self) -> None:
    pass

  def test_other(self) -> None:
    pass


if __name__ == '__main__':
  absltest.main()
