"""Every writer makes every text safe: names, messages, notes, tables, paths."""

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import tempfile
from xml.etree import ElementTree

import pytest
from absl.testing import absltest

import tf2verify
from tests import tensorboard_events
from tests.fleet import made_results
from tests.nasty import LONG, NASTY, UNSAFE, nasty
from tests.report.html import made_up
from tf2verify.commands import cli
from tf2verify.fleet.journal import Journal
from tf2verify.fleet.results import without_deviations
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict
from tf2verify.records.verdict_json import case_from_fields, case_from_json
from tf2verify.report import terminal
from tf2verify.report.html.page import page
from tf2verify.report.junit import junit_text
from tf2verify.report.report_dir import case_files, read_case, summary_text, write_case, write_whole
from tf2verify.report.tensorboard import writing

pytestmark = pytest.mark.starts_processes

CASES = tuple(nasty(case) for case in (made_up.passed(), made_up.failed(), made_up.error()))
ENDLESS = CaseVerdict(
  'Long', 'long.py', (StageVerdict('a', 1, Status.ERROR, error=ErrorRecord('tf1', LONG, LONG)),)
)


class WritersTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = folder.name

  def assert_safe(self, text):
    self.assertEqual(UNSAFE.findall(text), [])
    text.encode()

  def test_terminal(self):
    for encoding in ('ascii', 'utf-8'):
      stream = io.TextIOWrapper(io.BytesIO(), encoding)
      with contextlib.redirect_stdout(stream):
        for case in (*CASES, ENDLESS):
          for detail in terminal.Detail:
            shown = terminal.CaseShown('Case', terminal.StageProgress(), detail)
            for stage in case.stages:
              shown.stage(stage)
            shown.outcome(case)
      shown = stream.buffer.getvalue().decode(encoding)
      self.assert_safe(shown)
      self.assertIn(r'\ud800caf\xe9\x1b[2J\x9b2J', shown)
      self.assertLess(len(shown), 10**6)

  def test_texts_of_verdicts(self):
    for case in CASES:
      self.assert_safe(case.to_text())
      for stage in case.stages:
        self.assert_safe(stage.to_text())

  def test_json(self):
    for case in (*CASES, ENDLESS):
      text = case.to_json()
      self.assert_safe(text)
      self.assertLess(len(text), 10**6)
      self.assertEqual(case_from_json(text).to_json(), text)
      written = write_case(case, self.folder)
      self.assertEqual(read_case(written).to_json(), text)

  def test_files_with_nasty_names_are_read(self):
    name = os.path.join(self.folder, os.fsdecode(b'caf\xe9\x1b.json'))
    write_whole(name, made_up.passed().to_json())
    self.assertEqual(case_files([self.folder]), [name])
    said = io.TextIOWrapper(io.BytesIO(), 'ascii')
    with contextlib.redirect_stdout(said):
      self.assertEqual(cli.main(['report', name]), 0)

  def test_markdown_and_junit(self):
    for cases in (CASES, (ENDLESS,)):
      text = summary_text(cases)
      self.assert_safe(text)
      rows = [line for line in text.splitlines() if line.startswith('|')]
      self.assertLen({row.replace('\\|', '').count('|') for row in rows}, 1)
      text = junit_text(cases)
      self.assert_safe(text)
      ElementTree.fromstring(text)
      self.assertLess(len(text), 10**6)

  @made_up.needs_report_extra
  def test_page(self):
    for cases in (CASES, (ENDLESS,)):
      text = page(cases, [[NASTY]] * len(cases))
      self.assert_safe(text)
      self.assertNotIn('<b>&"', text)

  @tensorboard_events.needs_tensorboard
  def test_tensorboard(self):
    writing.write_cases(self.folder, [*CASES, ENDLESS])
    found = tensorboard_events.read(pathlib.Path(self.folder))
    self.assertLen({name.split('/')[0] for name in found}, 4)
    self.assert_safe(str(found).replace('\\\\', ''))

  def test_journal(self):
    path = os.path.join(self.folder, 'run.sqlite')
    with Journal(path, writable=True) as journal:
      keys = [f'{number}.py::A' for number in range(len(CASES) + 1)]
      run = journal.begin_run([NASTY], {'python': NASTY}, '', keys)
      for key, case in zip(keys, (*CASES, ENDLESS), strict=True):
        entry = made_results.result(run, key, case.status).entry
        entry = dataclasses.replace(entry, files={NASTY: 'd'})
        fields, deviations = without_deviations(json.loads(case.to_json()))
        result = made_results.Result(entry, case_from_fields(fields), deviations)
        journal.write(result)
      journal.end_run(run)
    with Journal(path) as journal:
      self.assertLen([journal.verdict(e, deviations=True) for e in journal.entries(run)], len(keys))
    said = io.TextIOWrapper(io.BytesIO(), 'ascii')
    with contextlib.redirect_stdout(said):
      self.assertEqual(cli.main(['report', path]), 1)
      self.assertEqual(cli.main(['history', path]), 0)


def _raising():
  class RaisingCase(tf2verify.EquivalenceCase):
    def build_tf1_graph(self, inputs, training):
      raise ValueError(LONG)

    def make_tf2_layer(self):
      raise KeyError(NASTY)

    def make_inputs(self):
      return tf2verify.normal_inputs((2, 3))

  RaisingCase.__name__ = 'Raising\x1b[31m\u202e|'  # Python takes no surrogates there
  return RaisingCase


class LadderTest(absltest.TestCase):
  def test_what_a_case_raises(self):
    verdict = tf2verify.verify(_raising())
    self.assertIs(verdict.status, Status.ERROR)
    self.assertEqual(UNSAFE.findall(repr(verdict)), [])
    self.assertEqual(UNSAFE.findall(verdict.case + verdict.to_text()), [])
    self.assertLess(len(verdict.to_json()), 10**6)


if __name__ == '__main__':
  absltest.main()
