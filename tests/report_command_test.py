import contextlib
import importlib.util
import io
from xml.etree import ElementTree

import pytest
from absl.testing import absltest

from tests import console, tensorboard_events
from tests.fleet import made_results
from tf2verify.commands import cli
from tf2verify.fleet.journal import Journal
from tf2verify.records.status import Status
from tf2verify.report.report_dir import write_case

pytestmark = pytest.mark.starts_processes


class ReportCommandTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    console.wide(self)
    self.folder = console.own_folder(self)
    self.journal('run.sqlite', {'A': (Status.PASSED, 0.5), 'B': (Status.FAILED, 3.0)})

  def journal(self, name, *runs, planned=(), shard=''):
    with Journal(str(self.folder / name), writable=True) as journal:
      for cases in runs:
        targets = [f'x.py::{case}' for case in cases]
        run = journal.begin_run([], {'tensorflow': '2.21.0'}, shard, [*targets, *planned])
        for target, found in zip(targets, cases.values(), strict=True):
          journal.write(made_results.result(run, target, *found))

  def run_command(self, *arguments):
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
      words = [str(self.folder / word) if '.' in word[1:] else word for word in arguments]
      status = cli.main(words)
    return status, said.getvalue(), complained.getvalue()

  def test_a_journal(self):
    status, said, _ = self.run_command('report', 'run.sqlite')
    self.assertEqual(status, 1)
    self.assertIn("B: stage 'gradients' FAILED", said)
    self.assertEndsWith(said, '1 of 2 cases passed\n')

  def test_its_last_run(self):
    self.journal('two.sqlite', {'A': (Status.FAILED,)}, {'A': (Status.PASSED,)})
    self.assertEqual(self.run_command('report', 'two.sqlite')[0], 0)

  def test_its_last_run_of_some_cases(self):
    self.journal(
      'part.sqlite', {'A': (Status.PASSED,), 'B': (Status.PASSED,)}, {'A': (Status.PASSED,)}
    )
    _, said, _ = self.run_command('report', 'part.sqlite')
    self.assertIn(
      f'the last run of {self.folder}/part.sqlite: 1 of the 2 cases of this journal', said
    )
    self.assertEndsWith(said, '1 of 1 cases passed\n')
    _, said, _ = self.run_command('report', 'run.sqlite')
    self.assertNotIn('the last run', said)

  def test_a_line_a_case(self):
    _, said, _ = self.run_command('report', 'run.sqlite', '--brief')
    self.assertRegex(
      said,
      r'\AA: PASSED, .*\nB: FAILED, .*\n  gradients FAILED: .*differ.*\n1 of 2 cases passed\n\Z',
    )

  def test_quiet_shows_a_failure_once(self):
    _, said, _ = self.run_command('report', 'run.sqlite', '-q')
    self.assertEqual(said.count('FAILED: '), 1, said)

  def test_judged_again(self):
    status, said, _ = self.run_command('report', 'run.sqlite', '--atol', '1e-3')
    self.assertEqual(status, 0, said)
    self.assertIn('gradients: FAILED -> PASSED at atol 0.001', said)
    status, said, _ = self.run_command('report', 'run.sqlite', '--rtol', '0', '--atol', '0')
    self.assertEndsWith(said, '0 of 2 cases passed\n')

  def test_pages(self):
    status, said, _ = self.run_command(
      'report', 'run.sqlite', '--junit', 'junit.xml', '--markdown', 'new/summary.md'
    )
    self.assertEqual(status, 1)
    self.assertIn(
      f'\nJUnit: {self.folder}/junit.xml\nsummary: {self.folder}/new/summary.md\n', said
    )
    self.assertLen(ElementTree.parse(self.folder / 'junit.xml').getroot(), 2)
    self.assertIn('1 of 2 cases passed.', (self.folder / 'new' / 'summary.md').read_text())
    (self.folder / 'file').touch()
    status, _, complained = self.run_command('report', 'run.sqlite', '--junit', 'file/x.xml')
    self.assertEqual(status, 2)
    self.assertIn('could not write the report', complained)

  def test_the_page_of_a_journal(self):
    if any(importlib.util.find_spec(name) is None for name in ('jinja2', 'matplotlib')):
      self.skipTest("the extra 'report' is not installed")
    status, said, _ = self.run_command('report', 'run.sqlite', '--html', 'page.html')
    self.assertEqual(status, 1)
    self.assertIn(f'page: {self.folder}/page.html\n1 of 2 cases passed', said)
    self.assertIn('gradients', (self.folder / 'page.html').read_text())

  def test_a_run_that_was_cut_off_has_not_passed(self):
    self.journal('cut.sqlite', {'A': (Status.PASSED,)}, planned=['x.py::Z'])
    status, said, _ = self.run_command('report', 'cut.sqlite')
    self.assertEqual(status, 1)
    self.assertIn(
      'x.py::Z: no verdict, the run was interrupted before it\n1 of 2 cases passed', said
    )

  def test_merged(self):
    self.journal('1.sqlite', {'A': (Status.PASSED,)}, shard='1/2')
    self.journal('2.sqlite', {'B': (Status.PASSED,)}, shard='2/2')
    status, said, _ = self.run_command('report', '--merge', 'all.sqlite', '1.sqlite', '2.sqlite')
    self.assertEqual(status, 0)
    self.assertEndsWith(said, '2 of 2 cases passed\n')
    self.assertEqual(self.run_command('report', 'all.sqlite')[1], said)
    status, _, complained = self.run_command('report', '--merge', 'other.sqlite', '1.sqlite')
    self.assertEqual(status, 2)
    self.assertIn('shard 2/2 is in none of', complained)

  def test_history(self):
    self.journal('two.sqlite', {'A': (Status.PASSED,)}, {'A': (Status.FAILED,)})
    status, said, _ = self.run_command('history', 'two.sqlite')
    self.assertEqual(status, 1)
    self.assertIn('gradients FAILED', said)
    status, said, _ = self.run_command('history', 'run.sqlite')
    self.assertEqual(status, 0)
    self.assertStartsWith(said, '2 of 2 cases: no verdict or first failing stage changed')
    status, _, complained = self.run_command('history', 'absent.sqlite')
    self.assertEqual(status, 2)
    self.assertIn('does not exist', complained)

  @tensorboard_events.needs_tensorboard
  def test_tensorboard(self):
    runs = [{'A': (Status.PASSED, share)} for share in (0.25, 0.5)]
    last = {'A': (Status.FAILED, 2.0), 'B': (Status.PASSED, 0.5)}
    self.journal('more.sqlite', {**runs[0], 'Gone': (Status.PASSED, 0.5)}, runs[1], last)
    self.run_command('report', 'more.sqlite', '--tensorboard_dir', str(self.folder / 'events'))
    found = tensorboard_events.read(self.folder / 'events')
    self.assertCountEqual(found, ['x.A', 'x.B'])
    quantity = 'gradients/share_of_tolerance'
    self.assertEqual(found['x.A'][quantity], {1: 0.25, 2: 0.5, 3: 2.0})
    self.assertEqual(found['x.B'][quantity], {3: 0.5})
    self.assertEqual(list(found['x.A']['gradients/tensors_by_share']), [1, 2, 3])
    self.assertIn('**FAILED**', found['x.A']['summary'][3])
    # By another tolerance, of two journals, and in place of what was there.
    _, said, _ = self.run_command(
      'report', 'run.sqlite', 'more.sqlite', '--rtol', '0', '--atol', '8e-5',
      '--tensorboard_dir', str(self.folder / 'events'),
    )  # fmt: skip
    self.assertIn('4 of 4 cases passed', said)
    found = tensorboard_events.read(self.folder / 'events')
    self.assertEqual(found['x.A'][quantity], {1: 0.125, 2: 0.0625, 3: 0.125, 4: 0.5})

  @tensorboard_events.needs_tensorboard
  def test_tensorboard_of_json_reports(self):
    for number, share in enumerate((0.25, 0.5)):
      verdict = made_results.verdict('x.py::A', Status.PASSED, share)
      write_case(verdict, str(self.folder / str(number)))
    folders = [str(self.folder / name) for name in '01']
    cli.main(['report', *folders, '--tensorboard_dir', str(self.folder / 'events')])
    [found] = tensorboard_events.read(self.folder / 'events').values()
    self.assertEqual(found['gradients/share_of_tolerance'], {1: 0.25, 2: 0.5})

  def test_it_takes_no_tensorflow(self):
    console.write_files(self.folder, tensorflow='raise ImportError("it was imported")\n')
    for command in ('report', 'history'):
      done = console.run('-m', 'tf2verify', command, 'run.sqlite', folder=self.folder)
      self.assertEqual(done.stderr, '')
      self.assertIn('2 cases', done.stdout)


if __name__ == '__main__':
  absltest.main()
