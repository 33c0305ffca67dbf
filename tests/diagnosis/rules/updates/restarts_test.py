"""Tests of tf2verify.diagnosis.rules.updates.restarts."""

import dataclasses

from absl.testing import absltest, parameterized

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import FIRST, SECOND, Form
from tf2verify.diagnosis.rules.updates.restarts import restarted_slots

_FORMS = {
  'rmsprop': (
    {'learning_rate': 0.1, 'rho': 0.9, 'momentum': 0.0, 'epsilon': 0.01, 'centered': 0.0},
    {'squared gradient': 1.0, 'momentum': 0.0},
  ),
  'adam': (
    {'learning_rate': 0.1, 'beta1': 0.9, 'beta2': 0.99, 'epsilon': 0.01},
    {FIRST: 0.0, SECOND: 0.0},
  ),
}


def _form(rule):
  settings, slots = _FORMS[rule]
  return Form(rule, tuple(settings.items())), slots


def _restarted(form, slots):
  """A run of which each step starts with the slots, and the count, of the first one."""
  once = simulated.run('tf2', form, 1, slots=slots)
  values = {record.name: record.value for record in once.steps[0].variables}
  before = dict(simulated._START)
  simulated._START.update(values)
  try:
    again = simulated.run('tf2', form, 1, slots=slots)
  finally:
    simulated._START.update(before)
  second = dataclasses.replace(again.steps[0], number=2)
  return dataclasses.replace(once, steps=(once.steps[0], second))


class RestartedSlotsTest(parameterized.TestCase):
  @parameterized.parameters('rmsprop', 'adam')
  def test_slots_that_start_anew(self, rule):
    form, slots = _form(rule)
    tf1 = simulated.run('tf1', form, 2, slots=slots)
    found = restarted_slots(training_evidence(tf1, _restarted(form, slots), simulated.PAIRS, 2))
    self.assertIn('in step 2 the port starts again from the slots', found.text)
    self.assertEqual('the count of steps' in found.text, rule == 'adam')

  def test_silent(self):
    form, slots = _form('rmsprop')
    tf1, same = (simulated.run(side, form, 2, slots=slots) for side in ('tf1', 'tf2'))
    self.assertIsNone(restarted_slots(training_evidence(tf1, same, simulated.PAIRS, 2)))
    other = simulated.run('tf2', form.replaced(rho=0.5), 2, slots=slots)
    self.assertIsNone(restarted_slots(training_evidence(tf1, other, simulated.PAIRS, 2)))
    restarted = _restarted(form, slots)
    self.assertIsNone(restarted_slots(training_evidence(tf1, restarted, simulated.PAIRS, 1)))


if __name__ == '__main__':
  absltest.main()
