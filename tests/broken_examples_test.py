"""The examples that are wrong on purpose fail at the stage that their page names, and say why."""

import importlib
import inspect
import pathlib
import re

from absl.testing import absltest, parameterized

import tf2verify
from examples.broken import broken_case as broken
from examples.checkpoint_conversion import broken_case as checkpoint_conversion
from examples.simple_model import broken_case as simple_model
from examples.slim_rmsprop_ema import broken_case as slim_rmsprop_ema
from tf2verify.case import EquivalenceCase

_EXAMPLES = pathlib.Path(__file__).parents[1] / 'examples'
_LONGEST_CASE = 40


def _cases(path):
  """Returns the case classes that a file of the examples defines."""
  name = '.'.join(path.relative_to(_EXAMPLES.parent).with_suffix('').parts)
  members = vars(importlib.import_module(name)).values()
  classes = [member for member in members if isinstance(member, type)]
  return [c for c in classes if issubclass(c, EquivalenceCase) and c.__module__ == name]


class BrokenExamplesTest(parameterized.TestCase):
  @parameterized.named_parameters(
    ('scaling', broken.BrokenScalingCase, 'no_new_variables', ['offset']),
    (
      'schedule',
      simple_model.FrozenScheduleCase,
      'training_steps',
      ['[step 2]', 'the learning rate stays at 0.001 in the port, the value of its first step'],
    ),
    (
      'rmsprop',
      slim_rmsprop_ema.PlainRmspropCase,
      'training_steps',
      ['the accumulated squared gradient starts at 0 in tf.keras.optimizers.RMSprop, at 1 in TF1'],
    ),
    (
      'nothing',
      checkpoint_conversion.RestoredByObjectCase,
      'checkpoint',
      ['bars/stem/kernel', 'kept its value: not restored', '0 of 7 variables restored'],
    ),
    (
      'name',
      checkpoint_conversion.MissedNameCase,
      'checkpoint',
      ['5 of 7 variables restored', 'keys unread: classifier/fc/kernel, classifier/fc/bias'],
    ),
  )
  def test_fails_where_its_page_says(self, case, stage, words):
    verdict = tf2verify.verify(case)
    text = verdict.to_text()
    self.assertIs(verdict.status, tf2verify.Status.FAILED, text)
    self.assertEqual(verdict.first_failure.stage, stage, text)
    self.assertRegex(text, '(?s)' + '.*'.join(re.escape(word) for word in words))

  def test_cases_are_short(self):
    for path in sorted(_EXAMPLES.glob('*/*_test.py')):
      for case in _cases(path):
        self.assertLessEqual(len(inspect.getsourcelines(case)[0]), _LONGEST_CASE, case)

  def test_every_broken_case_is_run_here(self):
    found = {case for path in _EXAMPLES.glob('*/broken_case.py') for case in _cases(path)}
    run = {
      broken.BrokenScalingCase,
      simple_model.FrozenScheduleCase,
      slim_rmsprop_ema.PlainRmspropCase,
      checkpoint_conversion.RestoredByObjectCase,
      checkpoint_conversion.MissedNameCase,
    }
    self.assertEqual(found, run)


if __name__ == '__main__':
  absltest.main()
