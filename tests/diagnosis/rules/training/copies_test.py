"""Tests of tf2verify.diagnosis.rules.training.copies."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.training.copies import soft_copies
from tf2verify.diagnosis.rules.training.parts import averages_at_rest
from tf2verify.records.observation import TensorRecord

_SGD = Form('sgd', (('learning_rate', 0.1),))
_COPIES = ('target/bias', 'target/kernel')
_PAIRS = (*simulated.PAIRS, *((name, name) for name in _COPIES))


def _values(records):
  return {record.name: record.value for record in records}


def _run(side, share, late=True, noise=0.0):
  """A run with copies of both variables, which are moved by a share of the way to them."""
  run = simulated.run(side, _SGD)
  trained = _values(run.values_before)
  copies = {f'target/{name}': np.float32(0.5) * value for name, value in trained.items()}
  before = (*run.values_before, *simulated.tensors(copies))
  steps = []
  for step in run.steps:
    after = _values(step.variables)
    for name, copy in copies.items():
      followed = (after if late else trained)[name.removeprefix('target/')]
      moved = copy + share * (followed - copy) + noise * np.square(copy)
      copies[name] = moved.astype(np.float32)
    trained = after
    steps.append(tuple(TensorRecord(name, value.copy()) for name, value in copies.items()))
  variables = [(*step.variables, *more) for step, more in zip(run.steps, steps, strict=True)]
  return dataclasses.replace(simulated.with_steps(run, variables=variables), values_before=before)


def _evidence(tf1, tf2):
  return training_evidence(tf1, tf2, _PAIRS, 1)


class SoftCopiesTest(absltest.TestCase):
  def cause(self, *options, **more):
    return soft_copies(_evidence(_run('tf1', 0.05), _run('tf2', *options, **more)))

  def test_another_share(self):
    text = self.cause(0.01).text
    self.assertIn('by 0.05 of the way to trained variables of their shapes', text)
    self.assertIn('that of the port by 0.01', text)

  def test_in_another_step(self):
    for shares, told, later in (
      ((0.0, 1.0), 'the port moves target/bias', (frozenset(_COPIES), frozenset())),
      ((1.0, 0.0), 'TF1 moves target/bias', (frozenset(), frozenset(_COPIES))),
    ):
      runs = [_run(side, share) for side, share in zip(('tf1', 'tf2'), shares, strict=True)]
      found = soft_copies(training_evidence(*runs, _PAIRS, 1, moved_later=later))
      self.assertIn(told, found.text)
      self.assertIn('and moves them in a later step', found.text)
      never = soft_copies(training_evidence(*runs, _PAIRS, 1))
      self.assertNotIn('in a later step', '' if never is None else never.text)

  def test_another_moment(self):
    text = self.cause(0.05, late=False).text
    self.assertIn('(their values after the update)', text)
    self.assertIn('to their values before the update: move them after apply_gradients', text)

  def test_the_port_moves_none(self):
    found = _evidence(_run('tf1', 0.05), _run('tf2', 0.0))
    self.assertIn('that of the port leaves them unchanged', soft_copies(found).text)
    self.assertEqual(soft_copies(found).variables, _COPIES)
    self.assertIsNone(averages_at_rest(found), 'no call of the model in training mode moves them')

  def test_the_port_leaves_some_and_rounds_others(self):
    tf1, tf2 = _run('tf1', 1.0), _run('tf2', 1.0)
    start = _values(tf2.values_before)['target/kernel']

    def edited(step):
      values = _values(step.variables)
      # Such rounding comes from the update of the variable that is copied.
      rounded = values['target/bias'] * np.float32(1 + 1e-5)
      return simulated.tensors({**values, 'target/kernel': start, 'target/bias': rounded})

    tf2 = simulated.with_steps(tf2, variables=[edited(step) for step in tf2.steps])
    found = soft_copies(_evidence(tf1, tf2))
    self.assertIn('sets target/kernel to trained variables of their shapes, as kernel', found.text)
    self.assertIn('the port leaves them unchanged, and moves target/bias: are they', found.text)
    self.assertEqual(found.variables, ('target/kernel',))

  def test_a_copy_of_one_number_tells_nothing(self):
    """Any variable of its shape explains how it moves, by some share."""

    def with_number(run, end):
      before = (*run.values_before, TensorRecord('target/one', np.float32([1.0])))
      variables = [
        (*step.variables, TensorRecord('target/one', np.float32([end]))) for step in run.steps
      ]
      return dataclasses.replace(
        simulated.with_steps(run, variables=variables), values_before=before
      )

    runs = with_number(_run('tf1', 0.05), 0.9), with_number(_run('tf2', 0.0), 1.0)
    pairs = (*_PAIRS, ('target/one', 'target/one'))
    found = soft_copies(training_evidence(*runs, pairs, 1))
    self.assertIn('that of the port leaves them unchanged', found.text)

  def test_silent(self):
    self.assertIsNone(self.cause(0.05))
    self.assertIsNone(self.cause(0.05, noise=0.1))
    other = _run('tf1', 0.05, noise=0.1)
    self.assertIsNone(soft_copies(_evidence(other, _run('tf2', 0.05))))


if __name__ == '__main__':
  absltest.main()
