"""Tests of tf2verify.diagnosis.rules.updates.own_steps."""

import dataclasses
import math

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.updates.own_steps import (
  own_clipping,
  own_nesterov,
  own_velocity,
  slot_starts,
)
from tf2verify.records.observation import Slices

# How many times as large the norm of a gradient is by its rows as they are.
_ROWS = {'kernel': 1.25}
_FORM = Form(
  'rmsprop',
  (('learning_rate', 0.1), ('rho', 0.9), ('momentum', 0.0), ('epsilon', 0.01), ('centered', 0.0)),
)


def _run(side, start, form=_FORM, known=True):
  run = simulated.run(side, form, slots={'squared gradient': start})
  return run if known else dataclasses.replace(run, optimizers=())


def _cause(port, number=1):
  return slot_starts(training_evidence(_run('tf1', 1.0), port, simulated.PAIRS, number))


class SlotStartsTest(absltest.TestCase):
  def test_another_start(self):
    found = _cause(_run('tf2', 0.0, known=False))
    self.assertIn('with a squared gradient that starts at 0; in TF1', found.text)
    self.assertIn('start it at 1 in the port', found.text)
    self.assertTrue(found.is_proven)

  def test_silent(self):
    self.assertIsNone(_cause(_run('tf2', 1.0, known=False)))
    self.assertIsNone(_cause(_run('tf2', 0.0)), 'the rules of known optimizers tell more')
    self.assertIsNone(_cause(_run('tf2', 0.0, known=False), number=2))
    other = _FORM.replaced(learning_rate=0.2)
    self.assertIsNone(_cause(_run('tf2', 1.0, other, known=False)))
    self.assertIsNone(_cause(_run('tf2', 0.5, known=False)))

  def test_silent_where_the_port_does_not_move(self):
    # With a second moment of 1 the step of Adam is so small that none at all is as near.
    settings = {'learning_rate': 0.1, 'beta_1': 0.9, 'beta_2': 0.999, 'epsilon': 1e-8}
    form = Form('adam', tuple(settings.items()))
    tf1 = simulated.run('tf1', form, slots={'first moment': 0.0, 'second moment': 0.0})
    at_rest = simulated.run('tf2', form.replaced(learning_rate=0.0))
    port = dataclasses.replace(at_rest, optimizers=())
    self.assertIsNone(slot_starts(training_evidence(tf1, port, simulated.PAIRS, 1)))


def _clip(kind, limit):
  def clipped(gradients):
    if kind == 'values':
      return {name: np.clip(value, -limit, limit) for name, value in gradients.items()}
    norms = {name: float(np.sqrt(np.sum(np.square(g)))) for name, g in gradients.items()}
    norm = float(np.sqrt(sum(n**2 for n in norms.values())))
    of = dict.fromkeys(norms, norm) if kind == 'joint' else norms
    return {n: (g * min(1.0, limit / of[n])).astype(np.float32) for n, g in gradients.items()}

  return clipped


class OwnClippingTest(parameterized.TestCase):
  def _cause(self, clip, rate=0.1):
    slots = {'squared gradient': 1.0}
    tf1 = simulated.run('tf1', _FORM, slots=slots, clip=_clip('values', 0.2))
    port = simulated.run('tf2', _FORM.replaced(learning_rate=rate), slots=slots, clip=clip)
    port = dataclasses.replace(port, optimizers=())
    return own_clipping(training_evidence(tf1, port, simulated.PAIRS, 1))

  @parameterized.parameters(
    (_clip('each', 0.2), 'scales each gradient by its own norm, to 0.2'),
    (_clip('joint', 0.2), 'scales all gradients by their global norm, to 0.2'),
    (None, 'leaves the gradients of this step unchanged'),
  )
  def test_another_clipping(self, clip, words):
    found = self._cause(clip)
    self.assertIn(f'that of TF1 if it {words}; TF1 clips each element at 0.2', found.text)
    self.assertIn('tf.clip_by_value', found.text)
    self.assertTrue(found.is_proven)

  def test_a_limit_that_tf1_does_not_reach(self):
    slots = {'squared gradient': 1.0}
    tf1 = simulated.run('tf1', _FORM, slots=slots, clip=_clip('values', 100.0))
    port = simulated.run('tf2', _FORM, slots=slots, clip=_clip('each', 0.1))
    port = dataclasses.replace(port, optimizers=())
    found = own_clipping(training_evidence(tf1, port, simulated.PAIRS, 1))
    self.assertIn('if it scales each gradient by its own norm, to 0.1; TF1 leaves', found.text)

  def test_the_norm_of_repeated_rows_that_are_added_up(self):
    """TF1 takes the norm of the rows as they are; the port's step makes them dense before."""

    def of_rows(gradients):
      scaled = _clip('joint', 0.2)(gradients)
      dense = math.hypot(*(float(np.linalg.norm(g)) for g in gradients.values()))
      norm = math.hypot(
        *(float(np.linalg.norm(g)) * _ROWS.get(n, 1.0) for n, g in gradients.items())
      )
      return {name: (g * (dense / norm)).astype(np.float32) for name, g in scaled.items()}

    slots = {'squared gradient': 1.0}
    tf1 = simulated.run('tf1', _FORM, slots=slots, clip=of_rows)
    step = tf1.steps[0]
    gradients = tuple(
      dataclasses.replace(g, slices=Slices(7, _ROWS[g.name] * float(np.linalg.norm(g.value))))
      if g.name in _ROWS
      else g
      for g in step.gradients
    )
    tf1 = dataclasses.replace(tf1, steps=(dataclasses.replace(step, gradients=gradients),))
    for clip, is_told in ((_clip('joint', 0.2), True), (of_rows, False)):
      port = simulated.run('tf2', _FORM, slots=slots, clip=clip)
      port = dataclasses.replace(port, optimizers=(), steps=port.steps[:1])
      found = own_clipping(training_evidence(tf1, port, simulated.PAIRS, 1))
      self.assertEqual(found is not None, is_told)
      if found is not None:
        self.assertIn('the port adds up rows of kernel that occur several times', found.text)
        self.assertTrue(found.is_proven)

  def _of_a_row_that_is_cleared(self, clip, pairs=simulated.PAIRS):
    def cleared(gradients):
      kernel = gradients['kernel'] * np.array([[1.0], [0.0], [1.0]], np.float32)
      return {**gradients, 'kernel': kernel}

    slots = {'squared gradient': 1.0}
    each = _clip('each', 0.2)
    tf1 = simulated.run('tf1', _FORM, slots=slots, clip=lambda g: cleared(each(g)))
    port = simulated.run('tf2', _FORM, slots=slots, clip=lambda g: clip(g, cleared))
    names = dict(pairs)

    def renamed(records):
      return tuple(dataclasses.replace(record, name=names[record.name]) for record in records)

    step = dataclasses.replace(
      port.steps[0],
      **{
        field: renamed(getattr(port.steps[0], field))
        for field in ('gradients', 'applied_gradients', 'variables')
      },
      slots=(),
    )
    before = renamed(port.values_before)
    port = dataclasses.replace(port, optimizers=(), steps=(step,), values_before=before)
    port = dataclasses.replace(port, slots_before=())
    return own_clipping(training_evidence(tf1, port, pairs, 1))

  def test_elements_that_are_set_to_0_before_the_clipping(self):
    found = self._of_a_row_that_is_cleared(lambda g, cleared: _clip('each', 0.2)(cleared(g)))
    self.assertIn('TF1 if it sets elements of gradients to 0, and then scales each', found.text)
    self.assertIn('pass clipnorm=0.2 (or apply tf.clip_by_norm) before elements', found.text)
    same = self._of_a_row_that_is_cleared(lambda g, cleared: cleared(_clip('each', 0.2)(g)))
    self.assertIsNone(same)

  def test_variables_that_the_port_holds_in_one(self):
    pairs = tuple((name, f'all[{name}]') for name in simulated.NAMES)
    found = self._of_a_row_that_is_cleared(
      lambda g, cleared: cleared(_clip('joint', 0.2)(g)), pairs
    )
    self.assertIn('the port holds bias, kernel in one variable and takes the norm', found.text)
    self.assertTrue(found.is_proven)

  def test_silent(self):
    self.assertIsNone(self._cause(_clip('values', 0.2)))
    self.assertIsNone(self._cause(None, rate=0.3))


class OwnNesterovTest(parameterized.TestCase):
  def _cause(self, one, other, own=0.9, clip=None):
    settings = ('learning_rate', 0.1), ('momentum', 0.9), ('nesterov', one)
    form, slots = Form('momentum', settings), {'momentum': 0.3}
    tf1 = simulated.run('tf1', form, slots=slots, clip=clip)
    # What is applied is not always known: gradients that were accumulated, say.
    steps = [dataclasses.replace(step, applied_gradients=()) for step in tf1.steps]
    port = simulated.run('tf2', form.replaced(nesterov=other, momentum=own), slots=slots, clip=clip)
    tf1, port = dataclasses.replace(tf1, steps=steps), dataclasses.replace(port, optimizers=())
    return own_nesterov(training_evidence(tf1, port, simulated.PAIRS, 1))

  @parameterized.parameters(
    (1.0, 0.0, "with the momentum itself, without Nesterov's", 'gradient + momentum * slot'),
    (0.0, 1.0, "with Nesterov's momentum", 'rate * (slot)'),
  )
  def test_on_one_side_alone(self, one, other, words, advice):
    for clip in (None, _clip('each', 0.2)):
      found = self._cause(one, other, clip=clip)
      self.assertIn(f'the step of the port is that of TF1 {words}', found.text)
      self.assertIn(advice, found.text)
      self.assertTrue(found.is_proven)

  def test_silent(self):
    self.assertIsNone(self._cause(1.0, 1.0))
    self.assertIsNone(self._cause(1.0, 1.0, own=0.5))
    self.assertIsNone(self._cause(1.0, 0.0, own=0.5))


class OwnVelocityTest(absltest.TestCase):
  def _cause(self, rule, rates=(0.1, 0.05), own=0.9, clip=None, nesterov=0.0):
    settings = ('learning_rate', 0.1), ('momentum', 0.9), ('nesterov', nesterov)
    form, more = Form('momentum', settings), {'count': 2, 'rates': rates, 'clip': clip}
    tf1 = simulated.run('tf1', form, slots={'momentum': 0.0}, **more)
    form = dataclasses.replace(form, rule=rule).replaced(momentum=own)
    port = dataclasses.replace(simulated.run('tf2', form, **more), optimizers=())
    return own_velocity(training_evidence(tf1, port, simulated.PAIRS, 2))

  def test_rate_within(self):
    for clip in (None, _clip('each', 0.2)):
      found = self._cause('velocity', clip=clip)
      self.assertIn("the momentum of the port's step holds each gradient times", found.text)
      self.assertIn('changed from 0.1 to 0.05 before step 2', found.text)
      self.assertTrue(found.is_proven)

  def test_rate_within_of_nesterov(self):
    found = self._cause('velocity', nesterov=1.0)
    self.assertIn('w -= r·g + m·v), that of TF1', found.text)
    self.assertTrue(found.is_proven)

  def test_silent(self):
    self.assertIsNone(self._cause('velocity', rates=(0.1, 0.1)))
    self.assertIsNone(self._cause('velocity', own=0.5, nesterov=1.0))
    self.assertIsNone(self._cause('momentum'))
    self.assertIsNone(self._cause('momentum', own=0.5))
    self.assertIsNone(self._cause('velocity', own=0.5))


if __name__ == '__main__':
  absltest.main()
