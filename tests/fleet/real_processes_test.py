import json
import pathlib

import pytest
from absl.testing import absltest

from tests import console
from tf2verify.fleet.journal import Journal

pytestmark = pytest.mark.starts_processes

BASE = console.CASES.partition('class RightCase')[0]
FATAL = (
  BASE
  + """
class CrashCase(BaseCase):
  def make_tf2_layer(self):
    import ctypes
    ctypes.string_at(0)
"""
)
MISSPELLED = (
  BASE
  + """
class MisspelledCase(EquivalenceCase):
  def build_tf1_grph(self, inputs, training):
    return inputs
"""
)
READING = (
  BASE
  + """
class ReadingCase(BaseCase):
  def make_inputs(self):
    return np.load(os.path.join(os.path.dirname(__file__), 'inputs.npy'))

  def tf1_checkpoint(self):
    return 'model.ckpt'
"""
)
# A copy of a process has none of its threads: what they hold would be held for ever.
NO_THREADS = """
import os
from tf2verify.fleet import job_run
job_run.prepare()
assert os.listdir('/proc/self/task') == [str(os.getpid())], os.listdir('/proc/self/task')
"""
NO_TENSORFLOW = """
import sys
sys.orig_argv = ['python', '-m', 'tf2verify', 'fleet', '']
from tf2verify.commands import cli
assert cli.main(['fleet', 'absent_test.py', '--journal', 'other.sqlite']) == 2
assert 'tensorflow' not in sys.modules
"""


class RealProcessesTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    (self.folder / '.git').mkdir()

  def fleet(self, *arguments):
    return console.run(
      '-m', 'tf2verify', 'fleet', *arguments, '--journal', 'run.sqlite', folder=self.folder
    )

  def entries(self):
    with Journal(str(self.folder / 'run.sqlite')) as journal:
      run = journal.runs()[-1].number
      return {
        entry.target: (entry, journal.verdict(entry, deviations=True))
        for entry in journal.entries(run)
      }

  @pytest.mark.runs_alone
  def test_verdicts_are_those_of_run(self):
    console.write_files(
      self.folder, cases_test=console.CASES, crash_case=FATAL, mistyped_case=MISSPELLED
    )
    alone = console.run(
      '-m', 'tf2verify', 'run', 'cases_test.py', '--report_dir', 'alone', folder=self.folder
    )
    self.assertEqual(alone.returncode, 1, alone.stderr)
    done = self.fleet('.', '--report_dir', 'fleet')
    self.assertEqual(done.returncode, 1, done.stderr)
    self.assertEndsWith(done.stdout, '1 of 4 cases passed\n')
    for name in ('RightCase', 'WrongCase'):
      one, other = (
        json.loads((self.folder / folder / f'cases_test.{name}.json').read_text())
        for folder in ('alone', 'fleet')
      )
      self.assertEqual(_without_times(one), _without_times(other))
    self.assertIn('0 to run', self.fleet('.', '--resume').stdout)
    _, misspelled = self.entries()['mistyped_case.py::MisspelledCase']
    self.assertIn('defines build_tf1_grph: did you mean build_tf1_graph?', misspelled.to_text())
    _, crash = self.entries()['crash_case.py::CrashCase']
    text = crash.to_text()
    self.assertIn('SIGSEGV', text)
    self.assertIn('in make_tf2_layer', text)
    self.assertNotIn(str(console.REPOSITORY / 'tf2verify'), text)

  def test_what_a_verdict_depends_on(self):
    import numpy as np

    console.write_files(self.folder, reading_case=READING)
    np.save(self.folder / 'inputs.npy', np.ones((2, 3), np.float32))
    (self.folder / 'model.ckpt.index').write_text('an index')
    chosen = ('--stages', 'variable_inventory', 'checkpoint')
    self.fleet('reading_case', *chosen)  # a module
    ((entry, verdict),) = self.entries().values()
    self.assertEqual(entry.target, 'reading_case::ReadingCase')
    names = {pathlib.Path(path).name for path in entry.files}
    self.assertContainsSubset({'reading_case.py', 'inputs.npy', 'model.ckpt.index'}, names)
    self.assertIn('checkpoint', [stage.stage for stage in verdict.stages])
    self.assertIn('0 to run', self.fleet('reading_case', *chosen, '--resume').stdout)
    np.save(self.folder / 'inputs.npy', np.zeros((2, 3), np.float32))
    self.assertIn('1 to run', self.fleet('reading_case', *chosen, '--resume').stdout)
    done = self.fleet('absent_module')
    self.assertEqual(done.returncode, 2)
    self.assertIn('absent_module is neither a file or folder nor a module', done.stderr)
    done = self.fleet('reading_case.py', '--stages', 'gradient')
    self.assertEqual(done.returncode, 2)
    self.assertIn("'gradient' is not a stage (did you mean 'gradients'?)", done.stderr)

  def test_the_process_that_is_copied_has_no_threads_but_those_of_openblas(self):
    done = console.run('-c', NO_THREADS, folder=self.folder, OPENBLAS_NUM_THREADS='1')
    self.assertEqual(done.returncode, 0, done.stderr)

  def test_the_supervisor_imports_no_tensorflow(self):
    done = console.run('-c', NO_TENSORFLOW, folder=self.folder)
    self.assertEqual(done.returncode, 0, done.stderr)


def _without_times(value):
  if isinstance(value, dict):
    return {
      key: _without_times(item)
      for key, item in value.items()
      if key not in ('seconds', 'environment')
    }
  if isinstance(value, list):
    return [_without_times(item) for item in value]
  return value


if __name__ == '__main__':
  absltest.main()
