"""Tests of tf2verify.diagnosis.rules.updates.centering."""

import dataclasses

from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.centering import centering


def _form(centered):
  settings = {'learning_rate': 0.1, 'rho': 0.9, 'momentum': 0.0, 'epsilon': 0.01}
  return Form('rmsprop', (*settings.items(), ('centered', float(centered))))


def _run(side, centered, known=True):
  run = simulated.run(side, _form(centered), slots={'squared gradient': 1.0, 'mean gradient': 0.0})
  if not centered:
    slots = [tuple(s for s in step.slots if s.role != 'mean gradient') for step in run.steps]
    run = simulated.with_steps(run, slots=slots)
  optimizers = run.optimizers if known else (simulated.record(Form('another', ())),)
  return dataclasses.replace(run, optimizers=optimizers)


def _cause(tf1, tf2, known=False):
  runs = (_run(side, on, known) for side, on in (('tf1', tf1), ('tf2', tf2)))
  return centering(training_evidence(*runs, simulated.PAIRS, 1))


class CenteringTest(absltest.TestCase):
  def test_one_side_alone(self):
    text = _cause(True, False).text
    self.assertStartsWith(text, 'TF1 is centered')
    self.assertIn('pass centered=True to the optimizer of the port', text)
    self.assertIn('pass centered=False', _cause(False, True).text)

  def test_silent(self):
    self.assertIsNone(_cause(True, True))
    self.assertIsNone(_cause(False, False))
    self.assertIsNone(_cause(True, False, known=True), 'the rules of both sides tell more')


if __name__ == '__main__':
  absltest.main()
