import contextlib
import importlib.util
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from unittest import mock

import numpy as np
import pytest
from absl.testing import absltest

from tests import console, tensorboard_events
from tf2verify.commands import cli
from tf2verify.numerics.tolerance import VALUE_TOLERANCES
from tf2verify.records.status import Status
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.stages.comparison.comparing import Comparison

pytestmark = pytest.mark.starts_processes


_RAISING = """
class ARaisingCase(BaseCase):
  def make_tf2_layer(self):
    raise ValueError('planted')


class IncompleteCase(EquivalenceCase):
  pass


if __name__"""


class InterruptedTest(absltest.TestCase):
  def test_what_is_known_is_written(self) -> None:
    folder = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory())).resolve()
    pressed = (
      'class YPressedCase(BaseCase):\n  def make_inputs(self):\n    raise KeyboardInterrupt\n\n\n'
    )
    console.write_files(
      folder, cases_test=console.CASES.replace('class WrongCase', f'{pressed}class WrongCase')
    )
    files = [str(folder / name) for name in ('page.html', 'junit.xml', 'reports')]
    with (
      contextlib.redirect_stdout(io.StringIO()) as said,
      contextlib.redirect_stderr(io.StringIO()),
      self.assertRaises(KeyboardInterrupt),
    ):
      options = zip(('--html', '--junit', '--report_dir'), files, strict=True)
      arguments = [word for option in options for word in option]
      cli.main(['run', str(folder / 'cases_test.py'), '--stages', '1', *arguments])
    self.assertIn('interrupted: 1 of 3 cases have a verdict', said.getvalue())
    for file in files:
      self.assertTrue(os.path.exists(file), file)


def _called(*arguments: str) -> tuple[int, str, str]:
  """Returns the status of a command, and what it has printed."""
  said, complained = io.StringIO(), io.StringIO()
  with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
    try:
      status = cli.main([*arguments])
    except SystemExit as ended:
      status = int(ended.code or 0)
  return status, said.getvalue(), complained.getvalue()


class ProveTest(absltest.TestCase):
  def test_exit_status(self) -> None:
    folder = console.own_folder(self)
    console.write_files(folder, cases_test=console.CASES)
    file, reports = folder / 'cases_test.py', folder / 'reports'
    status, said, _ = _called('prove', f'{file}::RightCase', '--report_dir', str(reports))
    self.assertEqual(status, 0)
    self.assertIn('RightCase: 4 of 4 operations of the port proven for all inputs\n', said)
    self.assertIn('nothing was run', said)
    (report,) = reports.iterdir()
    self.assertEndsWith(report.name, 'RightCase.proof.json')
    self.assertTrue(json.loads(report.read_text())['proven'])
    status, said, _ = _called('prove', f'{file}::WrongCase')
    self.assertEqual(status, 1)
    self.assertIn('not proven, to be tested by a run: output (the output)', said)
    status, _, complained = _called('prove', f'{file}::NoCase')
    self.assertEqual(status, 2)
    self.assertIn('has no case NoCase', complained)
    self.assertEqual(
      _called(
        'prove',
      )[0],
      2,
    )

  def test_a_case_that_raises_keeps_no_other_from_being_proven(self) -> None:
    console.wide(self)
    folder = console.own_folder(self)
    console.write_files(folder, raising_test=console.CASES.replace('if __name__', _RAISING))
    status, said, complained = _called(
      'prove', str(folder / 'raising_test.py'), '--report_dir', str(folder / 'reports')
    )
    self.assertEqual((status, complained), (1, ''))
    self.assertIn('ARaisingCase: ERROR on the tf2 side: make_tf2_layer raised ValueError: ', said)
    self.assertIn('  | ValueError: planted\n', said)
    self.assertIn('IncompleteCase: ERROR on the case side: ', said)
    self.assertIn('RightCase: 4 of 4 operations of the port proven for all inputs\n', said)
    self.assertIn('WrongCase: ', said)
    self.assertLen(list((folder / 'reports').iterdir()), 4)
    (report,) = (folder / 'reports').glob('*ARaisingCase.proof.json')
    self.assertEqual(json.loads(report.read_text())['error']['side'], 'tf2')


class RunTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    console.wide(self)
    self.folder = console.own_folder(self)
    console.write_files(self.folder, cases_test=console.CASES)
    self.file = str(self.folder / 'cases_test.py')

  def test_cases_of_one_name_are_told_apart_and_run_once(self) -> None:
    other = self.folder / 'other_test.py'
    console.write_files(self.folder, other_test=console.CASES)
    targets = f'{self.file}::RightCase', str(other), f'{other}::RightCase'
    for brief in ((), ('--brief',)):
      status, said, _ = _called('run', *targets, '--stages', '1-3', *brief)
      self.assertEqual(status, 1)
      self.assertIn('2 of 3 cases passed', said)
      for name in (f'{self.file}::RightCase', f'{other}::RightCase'):
        self.assertEqual(said.count(f'{name}: PASSED, '), 1, said)
      self.assertIn('\nWrongCase: FAILED, ', said)

  def test_all_passed(self) -> None:
    status, said, _ = _called('run', f'{self.file}::RightCase')
    self.assertEqual(status, 0)
    self.assertRegex(said, r'RightCase\n  1 no_new_variables +PASSED +3 calls  \(\d\.\d s\)\n')
    self.assertRegex(said, r'\n  6 gradients +PASSED ')
    self.assertEndsWith(said, '1 of 1 cases passed\n')

  def test_some_failed(self) -> None:
    report = self.folder / 'report'
    junit, markdown = report / 'junit.xml', report / 'page.md'
    sarif = report / 'found.sarif'
    status, said, _ = _called('run', 
      self.file, '--report_dir', str(report), '--junit', str(junit), '--markdown', str(markdown),
      '--sarif', str(sarif),
      '--github_annotations', 'on',
    )  # fmt: skip
    self.assertEqual(status, 1)
    self.assertIn("WrongCase: stage 'zero_randomness' FAILED", said)
    [annotation] = [line for line in said.splitlines() if line.startswith('::error ')]
    self.assertIn('title=WrongCase%3A zero_randomness FAILED::', annotation)
    self.assertIn('failures="1"', junit.read_text())
    self.assertLen(json.loads(sarif.read_text())['runs'][0]['results'], 1)
    self.assertEqual(markdown.read_text(), (report / 'summary.md').read_text())
    self.assertRegex(said, r'\n  4 to 10 +BLOCKED +7 stages blocked: zero_randomness FAILED')
    self.assertEndsWith(said, '1 of 2 cases passed\n')
    verdict = json.loads(next(report.glob('*WrongCase.json')).read_text())
    self.assertEqual((verdict['schema_version'], verdict['status']), (2, 'FAILED'))
    self.assertIn('1 of 2 cases passed.', (report / 'summary.md').read_text())

  @tensorboard_events.needs_tensorboard
  def test_tensorboard(self) -> None:
    folder = self.folder / 'events'
    status, said, _ = _called(
      'run', self.file, '--tensorboard_dir', str(folder), '--stages', 'zero_randomness'
    )
    self.assertEqual(status, 1)
    self.assertIn(f'TensorBoard: tensorboard --logdir {folder}\n1 of 2 cases passed\n', said)
    found = tensorboard_events.read(folder)
    shares = [
      found[next(name for name in found if case in name)]['zero_randomness/greatest_relative']
      for case in ('RightCase', 'WrongCase')
    ]
    self.assertEqual(shares, [{1: 0.0}, {1: 1.0}])  # the factor is 2 instead of 1

  def test_tensorboard_is_missing(self) -> None:
    absent = mock.patch.object(importlib.util, 'find_spec', return_value=None)
    with absent, mock.patch('tf2verify.case.verify', side_effect=AssertionError('a case was run')):
      status, said, complained = _called(
        'run', self.file, '--tensorboard_dir', str(self.folder / 'new')
      )
    self.assertEqual((status, said), (2, ''))
    self.assertEqual(
      complained,
      'tf2verify: --tensorboard_dir needs tensorboard, which this Python does not have: '
      "pip install 'tf2verify[tensorboard]'\n",
    )

  def test_a_case_with_a_wrong_hook_does_not_keep_the_others_from_running(self) -> None:
    wrong = (
      console.ONE_CASE.format(name='BrokenCase') + '\n  def make_inputs(self, batch):\n    1\n'
    )
    console.write_files(self.folder, broken_test=wrong, model=console.MODEL.format(offset=0.0))
    status, said, complained = _called(
      'run', str(self.folder / 'broken_test.py'), f'{self.file}::RightCase'
    )
    self.assertEqual((status, complained), (1, ''))
    self.assertIn('BrokenCase.make_inputs cannot be called: missing a required argument', said)
    self.assertEndsWith(said, '1 of 2 cases passed\n')

  def test_stages(self) -> None:
    status, said, _ = _called(
      'run', self.file, '--stages', 'variable_inventory', 'no_new_variables'
    )
    self.assertEqual(status, 0)
    self.assertNotIn('zero_randomness', said)
    self.assertIn('WrongCase: PASSED, 2 of 2 stages passed', said)

  def test_two_folders_with_modules_of_the_same_names(self) -> None:
    for name, offset in (('OneCase', 1.0), ('OtherCase', 2.0)):
      console.write_files(
        self.folder / name,
        model=console.MODEL.format(offset=offset),
        lazily=f'OFFSET = {offset}',
        equivalence_test=console.ONE_CASE.format(name=name),
      )
    status, said, _ = _called('run', str(self.folder / 'OneCase'), str(self.folder / 'OtherCase'))
    self.assertEqual(status, 0, said)
    self.assertIn('OneCase: PASSED', said)
    self.assertIn('OtherCase: PASSED', said)

  def test_stages_by_number(self) -> None:
    status, said, _ = _called('run', f'{self.file}::RightCase', '--stages', '1-2')
    self.assertEqual(status, 0, said)
    self.assertIn('RightCase: PASSED, 2 of 2 stages passed', said)
    self.assertIn('variable_inventory', said)
    self.assertNotIn('zero_randomness', said)

  def test_unknown_things(self) -> None:
    for arguments, text in (
      (['absent_test.py'], 'tf2verify: absent_test.py does not exist'),
      (['absent_module'], 'tf2verify: absent_module is neither a file or folder nor a module'),
      ([f'{self.file}::LeftCase'], 'has no case LeftCase; it has RightCase, WrongCase'),
      (
        [self.file, '--stages', 'gradient'],
        "'gradient' is not a stage (did you mean 'gradients'?)",
      ),
      (
        [self.file, '--stages', '12'],
        "'12' is not the number of a stage; the stages are 1 no_new_variables",
      ),
      ([self.file, '--report', '--nonsense'], 'error: '),
      ([self.file, '--html_page', 'x'], 'arguments: --html_page x (did you mean --html?)'),
      ([self.file, '--jobs'], 'usage: python -m tf2verify run [-h] [--stages STAGE'),
      ([], 'the following arguments are required: PATH[::Case]'),
    ):
      with self.subTest(text):
        status, said, complained = _called('run', *arguments)
        self.assertEqual(status, 2)
        self.assertIn(text, complained)
        self.assertEqual(said, '')

  def test_misspelled_case_beside_others_is_an_error(self) -> None:
    misspelled = f"""{console.CASES}

class MisspelledCase(EquivalenceCase):
  def build_tf1_grph(self, inputs, training):
    return inputs
"""
    console.write_files(self.folder, cases_test=misspelled.replace('class Wrong', 'class _Wrong'))
    status, said, _ = _called('run', self.file, '--stages', 'no_new_variables')
    self.assertEqual(status, 1)
    self.assertIn('RightCase: PASSED', said)
    self.assertIn(
      "MisspelledCase: stage 'no_new_variables' ERROR on the case side: MisspelledCase defines "
      'build_tf1_grph: did you mean build_tf1_graph?',
      said,
    )
    self.assertEndsWith(said, '2 of 3 cases passed\n')

  def test_file_that_fails_to_import_shows_its_traceback(self) -> None:
    console.write_files(self.folder, broken_test="OPTIONS = {}\nBATCH = OPTIONS['batch']\n")
    status, _, complained = _called('run', str(self.folder / 'broken_test.py'))
    self.assertEqual(status, 2)
    self.assertRegex(complained, r"importing .*broken_test\.py raised KeyError: 'batch'")
    self.assertRegex(complained, r"broken_test\.py\", line 2, in <module>\n +BATCH = OPTIONS\['bat")
    self.assertNotIn('importlib', complained)

  def test_report_folder_that_cannot_be_made(self) -> None:
    status, _, complained = _called(
      'run', self.file, '--stages', 'variable_inventory', '--report_dir', f'{self.file}/report'
    )
    self.assertEqual(status, 2)
    self.assertIn('could not write the report', complained)


class ReportTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    console.wide(self)
    self.folder = console.own_folder(self)
    tf1 = np.array([1.0, 2.0])
    for name, tf2 in (('Near', [1.0, 2.001]), ('Far', [1.0, 3.0])):
      comparison = Comparison()
      comparison.tensors(
        TensorKey('gradient', 'kernel', 'training'), tf1, np.array(tf2), VALUE_TOLERANCES
      )
      found = comparison.findings()
      stage = StageVerdict(
        'gradients',
        6,
        Status.FAILED,
        found.compared,
        found.differences,
        deviations=found.deviations,
      )
      (self.folder / f'{name}.json').write_text(CaseVerdict(name, 'x.py', (stage,)).to_json())

  def _report(self, *arguments: str) -> tuple[int, str, str]:
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
      paths = [str(self.folder / word) if '.json' in word else word for word in arguments]
      status = cli.main(['report', *paths])
    return status, said.getvalue(), complained.getvalue()

  def test_as_it_was(self) -> None:
    status, said, _ = self._report('Near.json', 'Far.json')
    self.assertEqual(status, 1)
    self.assertStartsWith(said, 'Near\n  6 gradients               FAILED         1 of 1 tensors')
    self.assertIn("Far: stage 'gradients' FAILED: 1 of 1 tensors differ", said)
    self.assertIn('would pass with atol 1.01 or rtol 0.501', said)
    self.assertEndsWith(said, '0 of 2 cases passed\n')

  def test_judged_again(self) -> None:
    status, said, _ = self._report('Near.json', 'Far.json', '--rtol', '1e-3')
    self.assertEqual(status, 1)
    self.assertIn('  gradients: FAILED -> PASSED at rtol 0.001\n', said)
    self.assertEndsWith(said, '1 of 2 cases passed\n')
    status, said, _ = self._report('Near.json', '--rtol', '0', '--atol', '0.01')
    self.assertEqual(status, 0, said)

  def test_a_folder_and_a_page(self) -> None:
    (self.folder / 'Near.adequacy.json').write_text('{}')
    page = self.folder / 'pages' / 'page.html'
    if any(importlib.util.find_spec(name) is None for name in ('jinja2', 'matplotlib')):
      status, said, complained = self._report('.', '--html', str(page))
      self.assertEqual((status, said), (2, ''))
      self.assertIn("pip install 'tf2verify[report]'", complained)
      return
    status, said, _ = self._report(str(self.folder), '--html', str(page), '--rtol', '1e-3')
    self.assertEqual(status, 1)
    self.assertEndsWith(said, f'page: {page}\n1 of 2 cases passed\n')
    self.assertIn('gradients: FAILED -&gt; PASSED at rtol 0.001', page.read_text())

  def test_a_folder_without_reports(self) -> None:
    empty = self.folder / 'empty'
    empty.mkdir()
    status, said, complained = self._report(str(empty))
    self.assertEqual((status, said), (2, ''))
    self.assertIn('empty has no JSON report of a case', complained)

  def test_what_is_no_report(self) -> None:
    whole = (self.folder / 'Near.json').read_text()
    (self.folder / 'cut.json').write_text(whole[:300])
    (self.folder / 'old.json').write_text(whole.replace('_version": 2', '_version": 1'))
    (self.folder / 'binary.json').write_bytes(b'\xff\x00')
    for arguments, text in (
      (['absent.json'], 'absent.json: No such file or directory; --report_dir writes one JSON'),
      (['binary.json'], 'could not read the report'),
      (['Near.json', 'cut.json'], 'cut.json is not JSON'),
      (['old.json'], 'old.json has schema_version 1; this tf2verify reads 2: run the case again'),
      (['Near.json', '--atol', '-1'], 'atol = -1.0; it must be finite and not negative'),
    ):
      with self.subTest(text):
        status, said, complained = self._report(*arguments)
        self.assertEqual((status, said), (2, ''))
        self.assertIn(text, complained)

  def test_it_takes_no_tensorflow(self) -> None:
    console.write_files(self.folder, tensorflow='raise ImportError("it was imported")\n')
    report = console.run('-m', 'tf2verify', 'report', 'Near.json', folder=self.folder)
    self.assertEqual(report.returncode, 1, report.stderr)
    self.assertIn('0 of 1 cases passed', report.stdout)


class AdequacyTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    console.wide(self)
    self.folder = console.own_folder(self)
    console.write_files(self.folder, cases_test=console.CASES)
    self.file = str(self.folder / 'cases_test.py')

  def test_a_right_port(self) -> None:
    status, said, _ = _called('adequacy', f'{self.file}::RightCase')
    self.assertEqual(status, 0)
    self.assertStartsWith(said, 'RightCase: ')
    self.assertRegex(said, r'\d+ of \d+ planted faults caught \(\d+ %\)\n  run 1: inference, dist')
    self.assertRegex(said, r'\n  operation left out   \d+ of \d+ \(')
    self.assertRegex(said, r'drawn: \d+ of \d+ possible faults, seed 0; 0 left out')

  def test_limit_seed_and_report(self) -> None:
    report = self.folder / 'reports'
    arguments = ('--limit', '1', '--seed', '7', '--report_dir', str(report))
    status, said, _ = _called('adequacy', f'{self.file}::RightCase', *arguments)
    self.assertEqual(status, 0)
    [path] = report.iterdir()
    self.assertEndsWith(path.name, '.RightCase.adequacy.json')
    self.assertEndsWith(said, f'report: {path}\n')
    found = json.loads(path.read_text())
    self.assertEqual((found['seed'], len(found['faults'])), (7, 1))

  def test_what_cannot_be_asked(self) -> None:
    for arguments, text in (
      ([f'{self.file}::WrongCase'], 'WrongCase does not pass zero_randomness: FAILED; adequacy'),
      ([f'{self.file}::LeftCase'], 'has no case LeftCase; it has RightCase, WrongCase'),
      (['absent_test.py'], 'absent_test.py does not exist'),
      ([self.file, '--limit', '0'], "argument --limit: '0' is not a whole number of at least 1"),
      (
        [self.file, '--limit', 'all'],
        "argument --limit: 'all' is not a whole number of at least 1",
      ),
      ([self.file, '--seed', 'x'], "argument --seed: invalid int value: 'x'"),
      ([], 'the following arguments are required: PATH[::Case]'),
    ):
      with self.subTest(text):
        status, said, complained = _called('adequacy', *arguments)
        self.assertEqual((status, said), (2, ''))
        self.assertIn(text, complained)


class ProgramTest(absltest.TestCase):
  def test_doctor_and_usage(self) -> None:
    here = pathlib.Path(os.getcwd())
    # As a user has it, who has not said what is to be logged: TensorFlow logs a lot as it starts.
    environment = {n: v for n, v in os.environ.items() if n != 'TF_CPP_MIN_LOG_LEVEL'}
    done = subprocess.run(
      [sys.executable, '-m', 'tf2verify', 'doctor'],
      cwd=here,
      env={**environment, 'PYTHONPATH': str(console.REPOSITORY)},
      capture_output=True,
      text=True,
      check=False,
    )
    self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
    self.assertIn('No problems: TF1-style code runs here.', done.stdout)
    done = console.run('-m', 'tf2verify', 'run', 'absent_test.py', folder=here)
    self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
    self.assertIn('tf2verify: absent_test.py does not exist', done.stderr)

  def test_environment_that_cannot_run(self) -> None:
    folder = pathlib.Path(os.getcwd())
    done = console.run(
      '-m', 'tf2verify', 'run', 'absent_test.py', folder=folder, TF_USE_LEGACY_KERAS='no'
    )
    self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
    self.assertIn('otherwise unset TF_USE_LEGACY_KERAS', done.stderr)


if __name__ == '__main__':
  absltest.main()
