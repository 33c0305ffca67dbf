"""Tests of tf2verify.diagnosis.rules.updates.clipped_slots."""

import dataclasses

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.clipped_slots import clipping_in_slots

_SETTINGS = {'learning_rate': 0.1, 'beta1': 0.9, 'beta2': 0.999, 'epsilon': 1e-6}
_FORM = Form('adam', tuple(_SETTINGS.items()))


def _joint(limit):
  def clip(gradients):
    norm = np.sqrt(sum(np.sum(gradient**2) for gradient in gradients.values()))
    return {name: gradient * min(1, limit / norm) for name, gradient in gradients.items()}

  return clip


def _values(limit):
  return lambda gradients: {name: np.clip(g, -limit, limit) for name, g in gradients.items()}


def _doubled(gradients):
  return {name: 2.3 * gradient for name, gradient in gradients.items()}


def _cause(tf1, port, number=1, form=_FORM, start=0.0):
  slots = {'first moment': start, 'second moment': 0.0}
  one = simulated.run('tf1', _FORM, slots=slots, clip=tf1)
  # An optimizer of TF1's own, whose rule is not known; and one of the port's own, which also
  # applies what is in no record, and calls its slots something else.
  one = dataclasses.replace(one, optimizers=(dataclasses.replace(one.optimizers[0], rule=''),))
  other = simulated.run('tf2', form, slots=slots, clip=port)
  named = [tuple(dataclasses.replace(s, role=s.role[0]) for s in t.slots) for t in other.steps]
  before = tuple(dataclasses.replace(slot, role=slot.role[0]) for slot in other.slots_before)
  other = dataclasses.replace(other, optimizers=(), slots_before=before)
  other = simulated.with_steps(other, applied_gradients=[()] * 3, slots=named)
  return clipping_in_slots(training_evidence(one, other, simulated.PAIRS, number))


class ClippingInSlotsTest(parameterized.TestCase):
  @parameterized.parameters(
    (_joint(0.2), None, 'TF1 scales all gradients by their global norm, to 0.2; the port leaves'),
    (_joint(0.2), _joint(0.5), 'the port scales all gradients by their global norm, to 0.5: pass'),
    (_values(0.2), None, 'TF1 clips each element at 0.2; the port leaves'),
    (None, _joint(0.2), 'TF1 leaves the gradients of this step unchanged; the port scales all'),
  )
  def test_is_named(self, tf1, port, words):
    found = _cause(tf1, port)
    self.assertIn(words, found.text)
    self.assertIn('gains 0.1 times', found.evidence)

  def test_silent(self):
    self.assertIsNone(_cause(_joint(0.2), _joint(0.2)))
    self.assertIsNone(_cause(_joint(0.2), _doubled))
    self.assertIsNone(_cause(_joint(0.2), None, number=2))
    self.assertIsNone(_cause(_joint(0.2), None, start=0.5), 'what is gained is not known')
    other = _FORM.replaced(beta1=0.963)
    self.assertIsNone(_cause(_joint(0.2), None, form=other), 'may be another limit as well')
    self.assertIsNone(_cause(None, None, form=other))


if __name__ == '__main__':
  absltest.main()
