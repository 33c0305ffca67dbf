"""The pytest plugin, in processes of pytest as a user starts them."""

import json
import re

import pytest
from absl.testing import absltest

import pytest_tf2verify
from tests import console
from tests.repo import pages
from tf2verify.stages import STAGES

pytestmark = pytest.mark.starts_processes

# Keras comes first, and the two files are collected in this order.
_CASES = """
from tensorflow.keras import layers
import tensorflow as tf
import tf2verify


class RightCase(tf2verify.EquivalenceCase):
  slope = 0.2

  def build_tf1_graph(self, inputs, training):
    return tf.nn.leaky_relu(tf.compat.v1.layers.dense(inputs, 4, name='hidden'))

  def make_tf2_layer(self):
    dense = layers.Dense(4, name='hidden')
    return tf.keras.Sequential([dense, layers.LeakyReLU(self.slope)])

  def make_inputs(self):
    return tf2verify.normal_inputs((4, 8))


class WrongCase(RightCase):
  slope = 0.3


class RaisingCase(RightCase):
  def make_tf2_layer(self):
    raise KeyError('the port')
"""
_PLAIN = """
import os
import sys


def test_nothing_is_imported():
  assert not {'tensorflow', 'tf2verify', 'numpy'} & set(sys.modules)
  assert not os.environ.get('TF_USE_LEGACY_KERAS')
"""


class PluginTest(absltest.TestCase):
  def setUp(self) -> None:
    super().setUp()
    self.folder = console.own_folder(self)

  def _pytest(self, *arguments: str, **environment: str) -> tuple[int, str]:
    done = console.run(
      *('-m', 'pytest', '-p', 'pytest_tf2verify', '-p', 'no:cacheprovider', *arguments),
      folder=self.folder,
      # As in a shell: what this process has chosen is not inherited.
      **{'COLUMNS': '400', 'TF_USE_LEGACY_KERAS': '', 'GITHUB_ACTIONS': '', **environment},
    )
    return done.returncode, done.stdout + done.stderr

  def test_a_misspelled_hook_is_said_once(self) -> None:
    text = _CASES.replace('def make_inputs', 'def make_input').partition('class WrongCase')[0]
    (self.folder / 'misspelled_test.py').write_text(text)
    status, said = self._pytest('misspelled_test.py')
    self.assertEqual(status, 1, said)
    self.assertIn('1 failed, 10 skipped', said)
    self.assertIn('RightCase defines make_input: did you mean make_inputs?', said)
    self.assertNotIn('_check_hooks', said)

  def test_cases_behave_as_in_run(self) -> None:
    console.write_files(self.folder, test_cases=_CASES)
    status, said = self._pytest(
      '--strict-markers', '-m', 'tf2verify and (zero_randomness or execution_modes)',
      '--tf2verify-report-dir=reports', '--tf2verify-github-annotations=on',
    )  # fmt: skip
    self.assertEqual(status, 1, said)
    # The order of imports does not matter, and the markers select. Where the test that fails is
    # not among them, the first of those that it blocks does.
    self.assertIn('2 failed, 2 passed, 2 skipped, 27 deselected', said)
    summary = said.partition('short test summary info')[2]
    self.assertRegex(
      summary, r'FAILED test_cases.py::WrongCase::test_03_zero_randomness - the slope of the leaky'
    )
    self.assertRegex(
      summary,
      r'FAILED test_cases.py::RaisingCase::test_03_\w+ - tf2 side: make_tf2_layer raised KeyError:',
    )
    self.assertIn("WrongCase: stage 'zero_randomness' FAILED", said)
    self.assertNotIn('case.py', said.replace('test_case', ''))  # the frames of tf2verify
    self.assertNotIn('is deprecated and will be removed', said)  # of tf.layers.dense
    self.assertRegex(said, r'(?m)^::error file=test_cases.py,line=\d+,title=RaisingCase%3A no_new')
    verdict = json.loads((self.folder / 'reports/test_cases.RightCase.json').read_text())
    [modes] = [stage for stage in verdict['stages'] if stage['stage'] == 'execution_modes']
    self.assertIn('two replicas', json.dumps(modes['tables']))
    self.assertNotIn('two replicas', json.dumps(modes['notes']))

  def test_what_a_worker_finds_is_written_where_it_was_started(self) -> None:
    console.write_files(self.folder, cases_test=console.CASES)
    status, said = self._pytest(
      '-n1', '-m', 'zero_randomness', 'cases_test.py',
      '--tf2verify-html=out/page.html', '--tf2verify-markdown=summary.md',
      '--tf2verify-sarif=found.sarif', GITHUB_ACTIONS='true',
    )  # fmt: skip
    self.assertEqual(status, 1, said)
    self.assertRegex(said, r'(?m)^::error file=cases_test.py,.*title=WrongCase%3A zero_randomness')
    self.assertRegex(said, r'(?m)^FAILED cases_test.py::WrongCase::test_03\w+ - \S+')
    self.assertIn('tf2verify: wrote out/page.html', said)
    self.assertIn('1 of 2 cases passed', (self.folder / 'summary.md').read_text())
    [result] = json.loads((self.folder / 'found.sarif').read_text())['runs'][0]['results']
    self.assertEqual(result['ruleId'], 'zero_randomness')
    page = (self.folder / 'out/page.html').read_text()
    for case in ('RightCase', 'WrongCase'):
      self.assertIn(case, page)

  def test_what_stages_that_passed_have_to_say(self) -> None:
    console.write_files(self.folder, test_cases=_CASES)
    told = 'the port was verified under Keras 2'
    told_later = 'of stages that passed: -v shows'
    hows = (('-q', ''), ('-v', told), ('-n1', told_later), ('-n0', told_later))
    for option, words in hows:
      chosen = ('-k', 'RightCase', '-m', 'no_new_variables')
      status, said = self._pytest(*chosen, option, '--junitxml=found.xml')
      self.assertEqual(status, 0, said)
      self.assertIn(words, said)
      self.assertEqual('tf2verify: ' in said, bool(words), said)
      found = (self.folder / 'found.xml').read_text()
      self.assertRegex(found, f'<property name="tf2verify" value="blind spot: {told}')

  def test_a_blocked_test_leaves_the_failure_to_the_test_of_its_stage(self) -> None:
    # As with a worker of pytest-xdist that has no test of zero_randomness, or has it later.
    console.write_files(self.folder, cases_test=console.CASES)
    case = 'cases_test.py::WrongCase::test_'
    status, said = self._pytest(
      f'{case}06_gradients', f'{case}07_loss', f'{case}03_zero_randomness', '--junitxml=junit.xml'
    )  # fmt: skip
    self.assertEqual(status, 1, said)
    self.assertIn('1 failed, 2 skipped', said)
    self.assertIn('FAILED cases_test.py::WrongCase::test_03_zero_randomness', said)
    junit = (self.folder / 'junit.xml').read_text()
    self.assertRegex(junit, r'>[^<]*cases_test.py:\d+: blocked: zero_randomness FAILED<')
    self.assertNotIn('/case.py', junit)

  def test_a_blocked_test_says_so_first(self) -> None:
    console.write_files(self.folder, cases_test=console.CASES)
    status, said = self._pytest('-m', 'gradients or loss', '-k', 'WrongCase')
    self.assertEqual(status, 1, said)
    self.assertIn('1 failed, 1 skipped', said)
    self.assertRegex(
      said,
      r'(?m)^gradients is blocked: zero_randomness FAILED\n'
      r"WrongCase: stage 'zero_randomness' FAILED",
    )

  def test_a_marker_that_is_no_stage(self) -> None:
    console.write_files(self.folder, cases_test=console.CASES)
    # As in a shell, where no level of the log is set.
    program = (
      "import os, sys, pytest; os.environ.pop('TF_CPP_MIN_LOG_LEVEL'); "
      'sys.exit(pytest.main(sys.argv[1:]))'
    )
    done = console.run(
      *('-c', program, '-p', 'pytest_tf2verify', '-m', 'gradient or slow'), folder=self.folder
    )
    said = done.stdout + done.stderr
    self.assertEqual(done.returncode, 5, said)
    self.assertIn('tf2verify: -m gradient: there is no such marker; did you mean gradients?', said)
    self.assertNotIn('-m slow', said)
    # TensorFlow has started, and its log is held back as in `run`.
    self.assertNotIn('oneDNN', said)
    self.assertNotIn('cuInit', said)

  def test_other_projects_notice_nothing(self) -> None:
    console.write_files(self.folder, test_plain=_PLAIN)
    status, said = self._pytest()
    self.assertEqual(status, 0, said)

  def test_cases_that_pytest_does_not_collect_are_named(self) -> None:
    console.write_files(self.folder, plain_test=_PLAIN, rating_case=_CASES, report_case='SIZE = 3')
    left_out = 'tf2verify: rating_case.py has cases and was not collected: set python_files = ['
    for arguments in ((), ('.',), ('-n1',)):
      status, said = self._pytest(*arguments)
      self.assertEqual(status, 0, said)
      self.assertEqual(said.count(left_out), 1, said)
      self.assertNotIn('report_case', said)
    asked = '-o', 'python_files=*_test.py *_case.py'
    for arguments in (('plain_test.py',), ('rating_case.py', '--collect-only'),
                      (*asked, '--collect-only')):  # fmt: skip
      status, said = self._pytest(*arguments)
      self.assertEqual(status, 0, said)
      self.assertNotIn('not collected', said)
    self.assertIn('RightCase', said)
    # What a test imports, it uses.
    using = 'import tf2verify\nimport rating_case\ndef test_it(): pass'
    console.write_files(self.folder, plain_test=using)
    status, said = self._pytest()
    self.assertEqual(status, 0, said)
    self.assertNotIn('not collected', said)

  def test_a_setting_that_makes_no_sense(self) -> None:
    console.write_files(self.folder, test_plain=_PLAIN)
    status, said = self._pytest('-o', 'tf2verify=yes')
    self.assertEqual(status, 4)
    self.assertIn("tf2verify is 'yes' in the settings; it must be one of auto, on, off", said)


class DeclarationTest(absltest.TestCase):
  def test_the_markers_are_the_ladder(self) -> None:
    self.assertEqual(pytest_tf2verify.STAGES, tuple(stage.name for stage in STAGES))

  def test_pytest_finds_it_by_the_name_of_its_module(self) -> None:
    # By any other name, `-p pytest_tf2verify` would be a second plugin.
    text = pages.text('pyproject.toml')
    self.assertIn('entry-points.pytest11]\npytest_tf2verify = "pytest_tf2verify"', text)

  def test_what_uses_tf2verify(self) -> None:
    found = pytest_tf2verify._IMPORTS_TF2VERIFY
    for text in (
      b'import tf2verify',
      b'x = 1\nfrom tf2verify import verify',
      b'  import tf2verify',
    ):
      self.assertRegex(text, found)
    for text in (b'# import tf2verify', b'import tf2verifying', b'print("tf2verify")'):
      self.assertIsNone(re.search(found, text))


if __name__ == '__main__':
  absltest.main()
