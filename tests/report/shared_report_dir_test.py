import json
import os
import unittest.mock

import pytest
from absl.testing import absltest

from tests import console
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.report import shared_report_dir
from tf2verify.report.report_dir import read_case

# A stage that is left out has a test and a verdict as any other.
_CASES = console.CASES.replace(
  '  factor = 1.0\n',
  '  factor = 1.0\n'
  "  stages = tf2verify.all_stages_except(execution_modes='slow', determinism='slow')\n",
)
STAGES = ('no_new_variables', 'variable_inventory', 'zero_randomness', 'seeded_constant')


def verdict(case, *stages, failed=()):
  found = tuple(
    StageVerdict(
      name,
      STAGES.index(name) + 1,
      Status.ERROR if name in failed else Status.PASSED,
      Compared(1, 1),
    )
    for name in stages
  )
  again = f'python x.py {failed[0]}' if failed else ''
  return CaseVerdict(case, 'x.py', found, (('python', '3'),), again)


class SharedReportDirTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    self.reports = self.folder / 'reports'

  def write(self, run, one):
    with unittest.mock.patch.object(shared_report_dir, 'run_of_workers', return_value=run):
      shared_report_dir.write_reports(one, [one], str(self.reports))

  def summary(self):
    return (self.reports / 'summary.md').read_text()

  def test_workers_add_to_each_other(self):
    self.write('r1', verdict('A', *STAGES[1:3]))
    self.write('r1', verdict('B', STAGES[0]))
    self.write('r1', verdict('A', STAGES[0], STAGES[3], failed=[STAGES[3]]))
    found = read_case(str(self.reports / 'x.A.json'))
    self.assertEqual([stage.stage for stage in found.stages], list(STAGES))
    self.assertEqual(found.run_again, 'python x.py seeded_constant')
    self.assertIn('1 of 2 cases passed', self.summary())
    self.assertIn('| A |', self.summary())
    # The failure of the stage before is the one to run again.
    self.write('r1', verdict('A', STAGES[2], failed=[STAGES[2]]))
    found = read_case(str(self.reports / 'x.A.json'))
    self.assertEqual(found.run_again, 'python x.py zero_randomness')

  def test_another_run_starts_anew(self):
    self.write('r1', verdict('A', *STAGES))
    self.write('r1', verdict('B', *STAGES))
    self.write('r2', verdict('A', STAGES[0]))
    found = read_case(str(self.reports / 'x.A.json'))
    self.assertEqual([stage.stage for stage in found.stages], [STAGES[0]])
    self.assertIn('1 of 1 cases passed', self.summary())
    self.assertLen(list(self.reports.glob('.xdist-*')), 1)

  def test_without_workers_nothing_is_added(self):
    self.write('', verdict('A', *STAGES[1:]))
    self.write('', verdict('A', STAGES[0]))
    self.assertLen(read_case(str(self.reports / 'x.A.json')).stages, 1)

  def test_a_process_that_a_worker_has_started_is_none(self):
    with unittest.mock.patch.dict(os.environ, PYTEST_XDIST_TESTRUNUID='r1'):
      for modules, run in (({}, ''), ({'xdist': None}, 'r1')):
        with unittest.mock.patch.object(shared_report_dir.sys, 'modules', modules):
          self.assertEqual(shared_report_dir.run_of_workers(), run)


@pytest.mark.runs_alone
class XdistTest(absltest.TestCase):
  """Real workers."""

  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)
    climbed = self.folder / 'climbed'
    noted = f"""
def setUpModule():
  import os
  from tf2verify import case
  new_ladder = case.new_ladder
  def noting(cls, *arguments):
    with open({str(climbed)!r}, 'a') as file:
      file.write(cls.__name__ + ' ' + os.environ.get('PYTEST_XDIST_WORKER', '') + '\\n')
    return new_ladder(cls, *arguments)
  case.new_ladder = noting
"""
    console.write_files(self.folder, cases_test=_CASES + noted)

  def run_pytest(self, reports, *options):
    """Returns the numbers of tests by outcome, and the climbs of the ladder."""
    climbed = self.folder / 'climbed'
    climbed.write_text('')
    done = console.run(
      '-m',
      'pytest',
      'cases_test.py',
      '-q',
      '-p',
      'no:cacheprovider',
      f'--junitxml={reports}.xml',
      *options,
      folder=self.folder,
      TF2VERIFY_REPORT_DIR=reports,
    )
    self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
    text = (self.folder / f'{reports}.xml').read_text()
    counts = [text.count(word) for word in ('<testcase ', '<failure ', '<skipped ')]
    return counts, climbed.read_text().split('\n')[:-1]

  def found(self, reports):
    folder = self.folder / reports
    return {
      path.name: [(one['stage'], one['status']) for one in json.loads(path.read_text())['stages']]
      for path in folder.glob('*.json')
    }

  def test_outcomes_and_reports_are_those_of_one_process(self):
    counts, climbs = self.run_pytest('alone', '-p', 'no:xdist')
    self.assertLen(climbs, 2)
    wanted = self.found('alone')
    self.assertEqual({name: len(stages) for name, stages in wanted.items()}, self.of_each(11))
    for reports, options in (('spread', ('-n', '2')), ('scoped', ('-n2', '--dist=loadscope'))):
      with self.subTest(reports):
        spread, climbs = self.run_pytest(reports, *options)
        self.assertEqual(spread, counts)
        self.assertEqual(self.found(reports), wanted)
        summary = (self.folder / reports / 'summary.md').read_text()
        self.assertIn('1 of 2 cases passed', summary)
        self.assertLessEqual(len(climbs), 4)  # at most once per case and worker
        self.assertLen(set(climbs), len(climbs))
        if reports == 'scoped':
          self.assertLen(climbs, 2)

  def of_each(self, count):
    return {f'cases_test.{name}Case.json': count for name in ('Right', 'Wrong')}


if __name__ == '__main__':
  absltest.main()
