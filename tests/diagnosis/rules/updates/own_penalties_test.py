"""Tests of tf2verify.diagnosis.rules.updates.own_penalties."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.own_penalties import own_penalty

_FORM = Form('sgd', (('learning_rate', 0.1),))
_KERNEL = np.array([[0.5, -1.0], [0.25, 0.75], [-0.5, 0.125]], np.float32)
_FACTOR = 0.3


def _joint(limit):
  def clip(gradients):
    size = np.sqrt(sum(np.sum(np.square(g)) for g in gradients.values()))
    return {name: g * np.float32(min(1.0, limit / size)) for name, g in gradients.items()}

  return clip


_TF1 = _joint(0.2)


def _late(limit, factor=_FACTOR):
  """The gradients of TF1 have the penalty; the port clips without it, and adds it then."""

  def clip(gradients):
    penalty = np.float32(factor) * _KERNEL
    made = _joint(limit)({**gradients, 'kernel': gradients['kernel'] - penalty})
    return {**made, 'kernel': made['kernel'] + penalty}

  return clip


def _cause(clip, tf1=_TF1, known=False):
  port = simulated.run('tf2', _FORM, clip=clip)
  steps = tuple(dataclasses.replace(s, gradients=(), applied_gradients=()) for s in port.steps)
  optimizers = port.optimizers if known else ()
  port = dataclasses.replace(port, optimizers=optimizers, steps=steps)
  return own_penalty(
    training_evidence(simulated.run('tf1', _FORM, clip=tf1), port, simulated.PAIRS, 1)
  )


class OwnPenaltyTest(absltest.TestCase):
  def test_a_penalty_that_is_added_after_the_clipping(self):
    found = _cause(_late(0.2))
    self.assertIn('(0.3 times the variable of kernel) added after clipping', found.text)

  def test_silent(self):
    self.assertIsNone(_cause(_joint(0.2)))
    self.assertIsNone(_cause(_joint(0.3)))
    self.assertIsNone(_cause(_late(0.2), known=True))
    self.assertIsNone(_cause(_late(0.2), tf1=None))

    def decayed_otherwise(gradients):
      return {**_joint(0.2)(gradients), 'kernel': np.square(gradients['kernel'])}

    self.assertIsNone(_cause(decayed_otherwise))


if __name__ == '__main__':
  absltest.main()
