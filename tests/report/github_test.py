import dataclasses
import os
import tempfile
from unittest import mock

from absl.testing import absltest, parameterized

from tests.report.html import made_up
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, ErrorRecord, StageVerdict
from tf2verify.report import github, headline

_TRACEBACK = """Traceback (most recent call last):
  File "{folder}/port.py", line 12, in call
    return dense(inputs)
  File "/usr/lib/python3/site-packages/tf_keras/engine.py", line 70, in error_handler
    raise e
KeyError: 'x'"""


def _error(folder: str = '/home/me/project') -> CaseVerdict:
  record = ErrorRecord('tf2', "KeyError: 'x', 50%", _TRACEBACK.format(folder=folder))
  stage = StageVerdict('zero_randomness', 3, Status.ERROR, error=record)
  return CaseVerdict('ACase', 'a_case.py', (stage,), run_again='python a_case.py')


class AnnotationTest(parameterized.TestCase):
  def test_a_failure_is_at_the_line_of_the_port(self):
    case = made_up.failed()
    lines = github.annotation_lines([made_up.passed(), case])
    failed = [s for s in case.stages if s.status in (Status.FAILED, Status.INCONCLUSIVE)]
    self.assertLen(lines, len(failed))
    self.assertStartsWith(
      lines[0], '::error file=tf2.py,line=7,title=WrongCase%3A gradients FAILED::'
    )
    self.assertEqual(headline.place(case.first_failure), headline.Place('tf2.py', 7))
    self.assertIn(
      '::the cause is dense/kernel%0Aa hint on dense/kernel%0Atf1: tf1.py:7%0A', lines[0]
    )

  def test_each_line_of_the_port_has_an_annotation(self):
    case = made_up.failed_at_two_places()
    first, then = github.annotation_lines([case])
    # The first one has all causes.
    self.assertIn('::the cause is dense/kernel%0Aa hint on bias%0Atf1: tf1.py:7%0Arun again', first)
    self.assertEqual(
      then,
      '::error file=tf2.py,line=9,title=WrongCase%3A gradients FAILED (2)::'
      'a hint on bias%0Atf1: tf1.py:8',
    )
    [stage] = case.stages
    unknown = dataclasses.replace(stage, differences=stage.differences[:1])
    _, then = github.annotation_lines([dataclasses.replace(case, stages=(unknown,))])
    self.assertIn('::then: bias', then)

  def test_an_error_is_at_the_users_last_line_below_the_repository(self):
    folder = tempfile.gettempdir()
    with mock.patch.dict(os.environ, GITHUB_WORKSPACE=folder):
      [line] = github.annotation_lines([_error(f'{folder}/models')])
    self.assertStartsWith(line, '::error file=models/port.py,line=12,title=ACase%3A zero_')
    # Nothing of a case begins another command.
    self.assertEndsWith(line, "::tf2 side: KeyError: 'x', 50%25%0Arun again: python a_case.py")

  def test_without_a_line_the_file_of_the_case_is_named(self):
    stage = StageVerdict('loss', 7, Status.INCONCLUSIVE, reason='all labels\nare ignored')
    [line] = github.annotation_lines([CaseVerdict('A', 'a,b_case.py', (stage,))])
    self.assertEqual(
      line,
      '::error file=a%2Cb_case.py,title=A%3A loss INCONCLUSIVE::all labels are ignored',
    )

  @parameterized.parameters(
    ('on', '', True), ('off', 'true', False), ('auto', 'true', True), ('auto', '', False)
  )
  def test_when(self, when, variable, expected):
    with mock.patch.dict(os.environ, GITHUB_ACTIONS=variable):
      self.assertIs(github.is_wanted(when), expected)


class HeadlineTest(absltest.TestCase):
  def test_the_cause_where_one_is_known_else_what_differs(self):
    failed = made_up.failed().first_failure
    self.assertEqual(headline.headline(failed), failed.diagnosis.causes[0].text)
    bare = StageVerdict(
      'gradients', 6, Status.FAILED, differences=(made_up.difference('kernel'),) * 2
    )
    self.assertStartsWith(headline.headline(bare), '2 of ')
    hinted = StageVerdict(
      'gradients', 6, Status.FAILED, differences=(made_up.difference('kernel', hint='the sum'),)
    )
    self.assertEqual(headline.headline(hinted), 'the sum')


class MessageTest(absltest.TestCase):
  def test_the_causes_alone_where_some_are_known(self):
    failed = made_up.failed().first_failure
    self.assertEqual(
      headline.message(failed), 'the cause is dense/kernel; also: a hint on dense/kernel'
    )
    long = dataclasses.replace(failed.diagnosis.causes[0], text='word ' * 100 + '\nend')
    known = dataclasses.replace(
      failed, diagnosis=dataclasses.replace(failed.diagnosis, causes=(long,))
    )
    self.assertLessEqual(len(headline.message(known)), 300)
    self.assertEndsWith(headline.message(known), ' …')

  def test_what_differs_and_where_it_begins_elsewhere(self):
    failed = made_up.failed().first_failure
    found = (made_up.difference('kernel'), made_up.difference('bias'))
    unknown = dataclasses.replace(
      failed,
      differences=found,
      diagnosis=dataclasses.replace(failed.diagnosis, causes=()),
    )
    message = headline.message(unknown)
    self.assertStartsWith(message, headline.headline(unknown) + ': ')
    self.assertIn(' kernel', message)
    self.assertEndsWith(message, '; first at tf2.py:7')
    self.assertNotIn('\n', message)
    nowhere = dataclasses.replace(unknown, diagnosis=None)
    self.assertEndsWith(headline.message(nowhere), ' kernel')


if __name__ == '__main__':
  absltest.main()
