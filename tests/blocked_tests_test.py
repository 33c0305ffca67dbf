from absl.testing import absltest, parameterized

from tf2verify.blocked_tests import ShownFailures, is_shown_elsewhere, shown_by_test
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, StageVerdict
from tf2verify.selection import all_stages_except
from tf2verify.stages import STAGES

_ALL = frozenset(stage.name for stage in STAGES)


def _blocked(stage, by):
  return StageVerdict.blocked(stage, 6, by, Status.FAILED)


class ElsewhereTest(parameterized.TestCase):
  @parameterized.parameters(
    # The test of the stage that failed is to run: it fails, in whichever process.
    (_ALL, 'gradients', True),
    (('zero_randomness', 'gradients'), 'gradients', True),
    # It is not: the first of those that depend on it fails, and the others are skipped.
    (('gradients', 'loss'), 'gradients', False),
    (('gradients', 'loss'), 'loss', True),
    (('loss',), 'loss', False),
    (('variable_inventory', 'loss'), 'loss', False),
    # Depends on it through others.
    (('seeded_num_random_ops', 'training_steps'), 'training_steps', True),
    # No test runner has said what is to run.
    ((), 'gradients', False),
  )
  def test_one_test_shows_it(self, to_run, stage, elsewhere):
    self.assertEqual(is_shown_elsewhere(stage, 'zero_randomness', to_run, ()), elsewhere)

  def test_a_stage_that_is_left_out_shows_nothing(self):
    to_run = ('gradients', 'loss')
    self.assertFalse(is_shown_elsewhere('loss', 'zero_randomness', to_run, ('gradients',)))

  def test_what_ends_the_case_in_one_process_may_not_in_others(self):
    # As a recording does that cannot be read, at the first stage that a process runs.
    self.assertFalse(is_shown_elsewhere('no_new_variables', 'variable_inventory', _ALL, ()))


class ShownTest(absltest.TestCase):
  def test_without_a_session_the_first_test_shows_it(self):
    shown = ShownFailures()
    stages = all_stages_except(loss='why')
    self.assertTrue(shown.shows(_blocked('gradients', 'loss'), 'loss', stages))
    self.assertFalse(shown.shows(_blocked('training_steps', 'loss'), 'loss', stages))

  def test_a_test_that_is_repeated_fails_again(self):
    shown, stages = ShownFailures(), all_stages_except()
    failed = StageVerdict('loss', 7, Status.FAILED)
    for verdict in (_blocked('training_steps', 'loss'), failed):
      for _ in range(2):
        self.assertTrue(shown.shows(verdict, 'loss', stages), verdict)

  def test_what_blocks_it_is_shown_and_not_what_failed_first(self):
    one, two = (StageVerdict(name, n, Status.FAILED) for n, name in ((1, 'a'), (2, 'b')))
    case = CaseVerdict('Case', 'case.py', (one, two, _blocked('c', 'b')))
    self.assertEqual(shown_by_test(case, case.stages[2]), two)
    self.assertEqual(shown_by_test(case, one), one)


if __name__ == '__main__':
  absltest.main()
