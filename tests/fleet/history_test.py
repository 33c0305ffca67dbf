import dataclasses

from absl.testing import absltest

from tests import console
from tests.fleet import made_results
from tf2verify.fleet.history import histories, history_lines
from tf2verify.fleet.journal import Journal
from tf2verify.records.status import Status

PASSED, FAILED, ERROR = Status.PASSED, Status.FAILED, Status.ERROR


class HistoryTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = console.own_folder(self)

  def journal(self, name, *runs):
    """Writes a run per dictionary: TensorFlow's version, then status and share by case."""
    path = str(self.folder / name)
    with Journal(path, writable=True) as journal:
      for tensorflow, cases in runs:
        run = journal.begin_run([], {'tensorflow': tensorflow}, '', list(cases))
        for case, found in cases.items():
          if found is None:
            (entry,) = (one for one in journal.entries(run - 1) if one.target == f'x.py::{case}')
            journal.keep(entry, run)
          else:
            journal.write(made_results.result(run, f'x.py::{case}', *found))
    return path

  def histories(self, *paths):
    journals = [Journal(path) for path in paths]
    try:
      return {case.target.removeprefix('x.py::'): case for case in histories(journals)}
    finally:
      for journal in journals:
        journal.__exit__()

  def test_verdicts_that_changed(self):
    path = self.journal(
      'run.sqlite',
      ('2.20.0', {'Same': (PASSED,), 'Worse': (PASSED,), 'Better': (ERROR,)}),
      ('2.21.0', {'Same': (PASSED,), 'Worse': (FAILED,), 'Better': (PASSED,)}),
    )
    found = self.histories(path)
    self.assertEqual(
      [name for name, case in found.items() if case.has_changed], ['Better', 'Worse']
    )
    self.assertEqual([name for name, case in found.items() if case.got_worse], ['Worse'])
    text = '\n'.join(history_lines(list(found.values())))
    self.assertRegex(
      text,
      r'x\.py::Worse\n'
      r'  \d{4}-\d\d-\d\d \d\d:\d\d  PASSED +tensorflow 2\.20\.0\n'
      r'  \d{4}-\d\d-\d\d \d\d:\d\d  FAILED +gradients FAILED; tensorflow 2\.20\.0 -> 2\.21\.0\n',
    )
    self.assertNotIn('Same', text)
    self.assertIn(
      '2 of 3 cases changed; in the other one no verdict or first failing stage changed, no '
      'difference grew',
      text,
    )

  def test_another_stage_that_fails_first_is_a_change(self):
    # The case is FAILED in both runs.
    path = self.journal('run.sqlite', ('2.21.0', {'A': (FAILED,)}), ('2.21.0', {'A': (FAILED,)}))
    [case] = self.histories(path).values()
    self.assertFalse(case.has_changed)
    last = dataclasses.replace(case.points[-1], first_failure='checkpoint FAILED')
    moved = dataclasses.replace(case, points=(case.points[0], last))
    self.assertTrue(moved.has_changed)
    self.assertFalse(moved.got_worse)
    self.assertIn('FAILED         checkpoint FAILED', '\n'.join(history_lines([moved])))

  def test_differences_that_grow(self):
    shares = {
      'Grows': (0.02, 0.3),
      'Beyond': (0.4, 1.5),
      'FromNothing': (0.0, 0.2),
      'Little': (0.001, 0.05),
      'Shrinks': (0.9, 0.1),
      'Steady': (0.5, 0.6),
    }
    runs = [
      (
        '2.21.0',
        {name: (FAILED if both[n] > 1 else PASSED, both[n]) for name, both in shares.items()},
      )
      for n in range(2)
    ]
    found = self.histories(self.journal('run.sqlite', *runs))
    grow = [name for name, case in found.items() if case.growing]
    self.assertCountEqual(grow, ['Grows', 'Beyond', 'FromNothing'])
    self.assertIn(
      '  gradients: its difference grows: 2 %, 30 % of the tolerance (gradient kernel, training)',
      list(history_lines([found['Grows']])),
    )

  def test_several_journals_by_time(self):
    one = self.journal('one.sqlite', ('2.16.0', {'A': (PASSED,)}))
    two = self.journal('two.sqlite', ('2.21.0', {'A': (FAILED,)}))
    found = self.histories(two, one)
    self.assertEqual([point.status for point in found['A'].points], [PASSED, FAILED])

  def test_a_verdict_that_was_kept_counts_once(self):
    path = self.journal('run.sqlite', ('2.21.0', {'A': (PASSED, 0.2)}), ('2.21.0', {'A': None}))
    self.assertLen(self.histories(path)['A'].points, 1)
    self.assertFalse(self.histories(path)['A'].has_changed)


if __name__ == '__main__':
  absltest.main()
