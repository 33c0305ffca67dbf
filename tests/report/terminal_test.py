"""Tests of tf2verify.report.terminal."""

import contextlib
import dataclasses
import io
import os
import re
from unittest import mock

from absl.testing import absltest

from tf2verify.records.diagnosis import Cause, Diagnosis, Source, Statistics
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.observation import SourceLine
from tf2verify.records.status import Status
from tf2verify.records.table import Table
from tf2verify.records.text_line import Role, TextLine
from tf2verify.records.verdict import CaseVerdict, Compared, ErrorRecord, StageVerdict
from tf2verify.report import terminal

_ESCAPE = '\x1b['
_STATISTICS = Statistics((4,), 'float32', -1.0, 2.0, 0.5, 0.0, 0)
_SOURCE = Source(
  'net/norm',
  'net/norm',
  'Norm',
  'Norm',
  SourceLine('model.py', 12, 'net', 'net = norm(net)'),
  SourceLine('port.py', 34, 'call', 'net = self.norm(net)'),
  ('Norm',),
  ('Norm',),
  0.0625,
  0.5,
  False,
  _STATISTICS,
  _STATISTICS,
  (),
)
_ARRAY = ArrayDifference((4,), 'float32', 4, 4, (2,), 0.125, 0.0625, 0.0625, 0.5, 1e-6, 1e-5)
_KNOWN = Difference('output', 'logits', Aspect.VALUES, run='inference', array=_ARRAY)
_DIAGNOSIS = Diagnosis(
  'inference',
  (
    Cause('the epsilon of the batch norm is 0.001 in tf1 and 1e-05 in the port', 'Norm', 'epsilon'),
  ),
  (_SOURCE,),
)


def _stage(name, number, status=Status.PASSED, **fields):
  return StageVerdict(name, number, status, Compared(9, 1234), seconds=0.3, **fields)


def _blocked(name, number, by='zero_randomness FAILED'):
  return _stage(name, number, Status.BLOCKED, reason=f'blocked: {by}')


_FIRST = _stage(
  'no_new_variables',
  1,
  notes=('a note', 'a blind spot'),
  blind_spots=('a blind spot',),
  tables=(Table('a table', ('column',), (('cell',),)),),
)
_FAILED = _stage('zero_randomness', 3, Status.FAILED, differences=(_KNOWN,), diagnosis=_DIAGNOSIS)
_ERROR = _stage('determinism', 11, Status.ERROR, error=ErrorRecord('tf2', 'call raised', 'Trace'))
PASSING = CaseVerdict('RightCase', 'right_test.py', (_FIRST,))
FAILING = CaseVerdict(
  'WrongCase',
  'wrong_test.py',
  (
    _FIRST,
    _FAILED,
    _blocked('seeded_constant', 4),
    _blocked('gradients', 6),
    _blocked('loss', 7),
    _ERROR,
  ),
  run_again='python wrong_test.py WrongCase.test_03_zero_randomness --and --a --very --long --tail',
)


class _Terminal(io.StringIO):
  encoding = 'utf-8'

  def isatty(self):
    return True


def _shown(verdict, detail=terminal.Detail.NORMAL, stream=None, **environment):
  """Returns what is printed of a case; wide, unless COLUMNS says otherwise."""
  stream = stream or io.StringIO()
  clean = {name: value for name, value in os.environ.items() if name not in ('NO_COLOR', 'TERM')}
  environment = {**clean, 'COLUMNS': '1000', 'TERM': 'xterm-256color', **environment}
  with mock.patch.dict(os.environ, environment, clear=True), contextlib.redirect_stdout(stream):
    shown = terminal.CaseShown(verdict.case, terminal.StageProgress(), detail)
    for stage in verdict.stages:
      shown.stage(stage)
    shown.outcome(verdict)
  return stream.getvalue()


class NameTest(absltest.TestCase):
  def test_the_file_is_named_where_the_class_is_not_enough(self):
    name = 'a/x_test.py::NetCase'
    verdict = dataclasses.replace(FAILING, case='NetCase', run_again='')
    for detail in terminal.Detail:
      with contextlib.redirect_stdout(io.StringIO()) as said:
        shown = terminal.CaseShown(name, terminal.StageProgress(), detail)
        for stage in verdict.stages:
          shown.stage(stage)
        shown.outcome(verdict)
      text = said.getvalue()
      self.assertGreater(text.count('NetCase'), 0)
      self.assertEqual(text.count('NetCase'), text.count(name), text)


class OrderTest(absltest.TestCase):
  def test_first_the_cause_then_the_lines_then_the_numbers(self):
    text = _shown(FAILING)
    marks = (
      "stage 'zero_randomness' FAILED",
      'likely cause: the epsilon',
      'model.py:12',
      'port.py:34',
      'max absolute difference 0.0625 at',
      'passed before',
      'run again',
    )
    places = [text.index(mark) for mark in marks]
    self.assertEqual(places, sorted(places), text)

  def test_the_hint_of_a_stage_is_first_as_well(self):
    hinted = dataclasses.replace(_KNOWN, hint='the hint')
    failed = dataclasses.replace(_FAILED, differences=(hinted,))
    text = _shown(dataclasses.replace(FAILING, stages=(failed,)))
    self.assertLess(text.index('likely cause: the hint'), text.index('model.py:12'))

  def test_that_no_mistake_is_known_is_said_first(self):
    failed = dataclasses.replace(_FAILED, diagnosis=Diagnosis(sources=(_SOURCE,)))
    text = _shown(dataclasses.replace(FAILING, stages=(failed,)))
    self.assertLess(text.index('no known mistake matches'), text.index('model.py:12'))

  def test_a_failure_is_shown_before_the_next_stage_ends(self):
    stream = io.StringIO()
    with mock.patch.dict(os.environ, COLUMNS='1000'), contextlib.redirect_stdout(stream):
      shown = terminal.CaseShown('WrongCase', terminal.StageProgress())
      for stage in (_FIRST, _FAILED):
        shown.stage(stage)
      early = stream.getvalue()
      shown.stage(dataclasses.replace(_FIRST, stage='checkpoint', number=9))
      shown.outcome(FAILING)
    self.assertIn('likely cause: the epsilon', early)
    self.assertIn('passed before: no_new_variables', early)
    later = stream.getvalue().removeprefix(early)
    # The report is above; what did not come back is shown with the outcome.
    self.assertRegex(later, r'checkpoint +PASSED')
    self.assertNotIn("stage 'zero_randomness'", later)
    self.assertIn("WrongCase: stage 'determinism' ERROR", later)
    self.assertRegex(later, r'\n  zero_randomness FAILED: the epsilon')
    self.assertRegex(later, r'\n  run again: .*\nWrongCase: ERROR')

  def test_the_last_line_says_how_many_more_causes_there_are(self):
    hinted = dataclasses.replace(_KNOWN, hint='a hint'), dataclasses.replace(_KNOWN, hint='another')
    for differences, words in (
      (hinted, ' (and 2 more causes)\n'),
      (hinted[:1], ' (and 1 more cause)\n'),
    ):
      failed = dataclasses.replace(_FAILED, differences=differences)
      after = dataclasses.replace(_FIRST, stage='checkpoint', number=9)
      text = _shown(dataclasses.replace(FAILING, stages=(_FIRST, failed, after)))
      self.assertRegex(text, r'\n  zero_randomness FAILED: the epsilon')
      self.assertIn(words, text)

  def test_no_reminder_right_below_a_report(self):
    text = _shown(dataclasses.replace(FAILING, stages=(_FIRST, _FAILED)))
    self.assertNotIn('zero_randomness FAILED:', text)

  def test_an_error_of_the_case_is_said_once(self):
    error = ErrorRecord('case', f'{"what is wrong, " * 12}and the fix', '')
    first = _stage('no_new_variables', 1, Status.ERROR, error=error)
    blocked = [_blocked(f'stage {n}', n, 'no_new_variables ERROR') for n in range(2, 12)]
    text = _shown(dataclasses.replace(FAILING, stages=(first, *blocked)))
    self.assertEqual(text.count('what is wrong'), 12)
    self.assertEqual(text.count('and the fix'), 1)
    self.assertRegex(text, r'no_new_variables +ERROR +on the case side  \(0\.3 s\)')

  def test_an_error_of_two_stages_has_one_traceback(self):
    error = ErrorRecord('tf1', 'tf1_loss raised', 'Trace')
    ones = (
      _stage('loss', 7, Status.ERROR, error=error),
      _stage('checkpoint', 9, Status.ERROR, error=error),
      _stage('determinism', 11),
    )
    text = _shown(dataclasses.replace(FAILING, stages=ones))
    self.assertEqual(text.count('| Trace'), 1)
    self.assertIn("stage 'checkpoint' ERROR, the same as in 'loss': tf1_loss raised", text)
    self.assertEqual(text.count('\n  checkpoint ERROR: '), 0)  # reminded of by that of the loss
    self.assertEqual(text.count('\n  loss ERROR: '), 1)

  def test_a_word_longer_than_a_line_keeps_its_indentation(self):
    name = f'Momentum/update_{"very_" * 20}long'
    source = dataclasses.replace(_SOURCE, tf1_op=name, tf2_op=name)
    failed = dataclasses.replace(_FAILED, diagnosis=Diagnosis(sources=(source,)))
    text = _shown(dataclasses.replace(FAILING, stages=(failed,)), COLUMNS='60')
    self.assertRegex(text, rf'\n +{name}')
    self.assertNotIn(f'\n{name}', text)

  def test_independent_failures_are_all_shown(self):
    text = _shown(FAILING)
    self.assertIn("WrongCase: stage 'zero_randomness' FAILED", text)
    self.assertIn("WrongCase: stage 'determinism' ERROR on the tf2 side: call raised", text)
    self.assertEqual(text.count('run again'), 1)
    self.assertIn('determinism', FAILING.to_text().split("stage 'zero_randomness'")[1])


class DetailTest(absltest.TestCase):
  def test_blocked_stages_share_a_line(self):
    for text in (_shown(FAILING), FAILING.to_text()):
      self.assertRegex(text, r'\n  4 to 7 +BLOCKED +3 stages blocked: zero_randomness FAILED')
      self.assertEqual(text.count('BLOCKED'), 1)
      self.assertNotIn('gradients', text)

  def test_stages_blocked_by_different_failures_do_not(self):
    stages = (_blocked('gradients', 6), _blocked('loss', 7, 'gradients ERROR'))
    text = _shown(dataclasses.replace(FAILING, stages=stages))
    self.assertEqual(text.count('BLOCKED  '), 2)

  def test_blocked_at_the_end(self):
    stages = (_FAILED, _blocked('seeded_constant', 4), _blocked('gradients', 6))
    text = _shown(dataclasses.replace(FAILING, stages=stages))
    self.assertLess(text.index('likely cause'), text.index('4 to 6'))

  def test_verbose(self):
    text = _shown(FAILING, terminal.Detail.VERBOSE)
    self.assertEqual(text.count('BLOCKED '), 3)
    for said in ('      note: a note', '      blind spot: a blind spot', '      a table:'):
      self.assertIn(said, text)

  def test_notes_and_tables_of_passed_stages_only_if_asked_for(self):
    for verdict in (PASSING, FAILING):
      text = _shown(verdict)
      self.assertNotIn('a note', text)
      self.assertNotIn('a table', text)

  def test_blind_spots_of_a_case_that_passes_are_never_silent(self):
    self.assertIn('  blind spot, no_new_variables: a blind spot\n', _shown(PASSING))
    self.assertNotIn('a blind spot', _shown(FAILING))
    open_ended = _stage('loss', 7, Status.INCONCLUSIVE, reason='nothing was compared')
    text = _shown(dataclasses.replace(PASSING, stages=(_FIRST, open_ended)))
    self.assertIn('  blind spot, no_new_variables: a blind spot\n', text)

  def test_a_blind_spot_of_several_stages_is_said_once(self):
    other = dataclasses.replace(_FIRST, stage='loss')
    text = _shown(dataclasses.replace(PASSING, stages=(_FIRST, other)))
    self.assertIn('  blind spot, no_new_variables, loss: a blind spot\n', text)
    self.assertEqual(text.count('a blind spot'), 1)

  def test_brief_counts_blind_spots(self):
    self.assertIn(', 1 blind spot\n', _shown(PASSING, terminal.Detail.BRIEF))
    first, *others = PASSING.stages
    stages = (dataclasses.replace(first, blind_spots=('one', 'two')), *others)
    text = _shown(dataclasses.replace(PASSING, stages=stages), terminal.Detail.BRIEF)
    self.assertIn('PASSED', text)
    self.assertIn(', 2 blind spots', text)
    without = (dataclasses.replace(first, blind_spots=()), *others)
    shown = _shown(dataclasses.replace(PASSING, stages=without), terminal.Detail.BRIEF)
    self.assertNotIn('blind spot', shown)

  def test_quiet(self):
    self.assertEqual(_shown(PASSING, terminal.Detail.QUIET), '')
    text = _shown(FAILING, terminal.Detail.QUIET)
    self.assertStartsWith(text, "\nWrongCase: stage 'zero_randomness' FAILED")
    self.assertIn('WrongCase: ERROR, 1 of 6 stages passed', text)
    self.assertNotIn('PASSED', text)


class WidthTest(absltest.TestCase):
  def _long(self, text):
    return [line for line in text.splitlines() if len(line) > 80]

  def test_80_columns_where_there_is_no_terminal(self):
    text = _shown(FAILING, COLUMNS='')
    self.assertEqual([line.split(':')[0] for line in self._long(text)], ['  run again'])

  def test_as_wide_as_columns_says(self):
    self.assertGreater(max(map(len, _shown(FAILING).splitlines())), 100)
    narrow = _shown(FAILING, COLUMNS='60')
    self.assertLess(max(map(len, narrow.splitlines()[:6])), 61)

  def test_nothing_is_lost(self):
    self.assertEqual(_shown(FAILING, COLUMNS='').split(), _shown(FAILING).split())

  def test_what_is_copied_stays_on_one_row(self):
    self.assertIn(FAILING.run_again, _shown(FAILING, COLUMNS='50'))

  def test_further_rows_hang(self):
    text = _shown(FAILING, COLUMNS='50')
    self.assertIn('  likely cause: the epsilon of the batch norm is\n    0.001 in tf1', text)

  def test_line_feeds_in_the_text_of_a_user(self):
    text = _shown(PASSING, terminal.Detail.VERBOSE)
    stage = dataclasses.replace(_FIRST, notes=('one\ntwo',))
    text = _shown(dataclasses.replace(PASSING, stages=(stage,)), terminal.Detail.VERBOSE)
    self.assertIn('      note: one\n        two\n', text)

  def test_a_number_stays_with_its_unit(self):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), mock.patch.dict(os.environ, COLUMNS='40'):
      for length in range(25, 40):
        terminal.say_lines([TextLine(f'{"x" * length} (0.3 s)')])
    self.assertNotRegex(stream.getvalue(), r'\(0\.3$')

  def test_what_copies_itself_still_wraps(self):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), mock.patch.dict(os.environ, COLUMNS='40'):
      terminal.say_lines([TextLine('a a a ' * 30, Role.CAUSE, start=4)])
    self.assertEqual(stream.getvalue().split(), ['a'] * 90)


class ColourTest(absltest.TestCase):
  def test_in_a_terminal(self):
    text = _shown(FAILING, stream=_Terminal())
    self.assertRegex(text, r'\x1b\[1;31mFAILED\x1b\[0m')
    self.assertRegex(text, r'\x1b\[32mPASSED\x1b\[0m')
    self.assertIn('\x1b[36mpython wrong_test.py', text)
    self.assertEqual(re.sub(r'\x1b\[[\d;]*m', '', text), _shown(FAILING))

  def test_wrapped_rows_are_coloured_as_well(self):
    text = _shown(FAILING, stream=_Terminal(), COLUMNS='50')
    self.assertIn('\x1b[1m0.001 in tf1', text.replace('    ', ''))

  def test_none_in_a_pipe(self):
    self.assertNotIn(_ESCAPE, _shown(FAILING))

  def test_none_where_it_is_not_wanted(self):
    for name, value in (('NO_COLOR', '1'), ('TERM', 'dumb')):
      self.assertNotIn(_ESCAPE, _shown(FAILING, stream=_Terminal(), **{name: value}))

  def test_a_pipe_where_it_is_forced(self):
    self.assertIn(_ESCAPE, _shown(FAILING, FORCE_COLOR='1'))


class ProgressTest(absltest.TestCase):
  def test_the_step_and_the_case_it_is_of(self):
    stream = _Terminal()
    with contextlib.redirect_stderr(stream), mock.patch.dict(os.environ, COLUMNS='60'):
      progress = terminal.StageProgress('WrongCase 2 of 3')
      progress('running the TF1 graph')
      progress('x' * 200)
      progress.clear()
    rows = stream.getvalue().split('\r\x1b[K')
    self.assertRegex(rows[1], r'^  … WrongCase 2 of 3: running the TF1 graph \(\d+ s\)$')
    self.assertLess(len(rows[2]), 60)
    self.assertEndsWith(rows[2], '…')
    self.assertEqual(rows[3], '')

  def test_silent_without_a_terminal(self):
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
      progress = terminal.StageProgress('WrongCase')
      progress('running')
      progress.clear()
    self.assertEqual(stream.getvalue(), '')


if __name__ == '__main__':
  absltest.main()
