import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import StepPair, VariableStep, training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.training.averages import (
  called_again,
  moving_average,
  paced_otherwise,
)
from tf2verify.records.training import Slot

_FORM = Form('sgd', (('learning_rate', 0.1),))


def averaged(side, decay, starts_after=False, starts_at=1.0, rates=None):
  """Returns a run with shadows; `decay` takes the count of steps."""
  run = simulated.run(side, _FORM, rates=rates)
  shadows = {record.name: starts_at * record.value for record in run.values_before}
  slots = []
  for step in run.steps:
    for record in step.variables:
      kept = 0.0 if starts_after and step.number == 1 else decay(step.number)
      shadow = kept * shadows[record.name] + (1 - kept) * record.value
      shadows[record.name] = shadow.astype(np.float32)
    slots.append(
      tuple(Slot('shadow', name, f'{name}/ema', value.copy()) for name, value in shadows.items())
    )
  return simulated.with_steps(run, slots=slots)


def _late_start(number):
  """The decay that averages seem to have which are applied before the update."""
  return 1.0 if number == 1 else 0.9


def late(side, decay, names):
  """Returns a run whose shadows of some variables follow the values from before each step."""
  run = averaged(side, decay)
  shadows = {record.name: record.value for record in run.values_before}
  values, slots = shadows.copy(), []
  for step in run.steps:
    kept = decay(step.number)
    for name in names:
      apart = shadows[name] - values[name]
      shadows[name] = (shadows[name] - (1 - kept) * apart).astype(np.float32)
    values = {record.name: record.value for record in step.variables}
    slots.append(
      tuple(
        Slot('shadow', s.variable, s.name, shadows[s.variable] if s.variable in names else s.value)
        for s in step.slots
      )
    )
  return simulated.with_steps(run, slots=slots)


def ramp(decay):
  return lambda number: min(decay, (1 + number) / (10 + number))


def cause(tf1, tf2, number=1):
  return moving_average(training_evidence(tf1, tf2, simulated.PAIRS, number))


class MovingAverageTest(absltest.TestCase):
  def test_num_updates(self):
    tf1, tf2 = averaged('tf1', ramp(0.999)), averaged('tf2', lambda _: 0.999)
    found = cause(tf1, tf2)
    self.assertIn('(EMA) is 0.181818 in TF1', found.text)
    self.assertIn('0.999', found.text)
    self.assertIn('num_updates=optimizer.iterations', found.text)
    self.assertIn('num_updates', cause(tf1, tf2, number=2).text)

  def test_start_at_zero(self):
    runs = {at: [averaged(s, lambda _: 0.9, starts_at=at) for s in ('tf1', 'tf2')] for at in (0, 1)}
    found = cause(runs[1][0], runs[0][1])
    self.assertIn('of the port start at 0', found.text)
    self.assertIn('0.1 of the variables', found.text)
    self.assertIn('of TF1 start at 0', cause(runs[0][0], runs[1][1]).text)
    self.assertIsNone(cause(*runs[0]), 'on both sides')

  def test_num_updates_of_the_port(self):
    found = cause(averaged('tf1', lambda _: 0.999), averaged('tf2', ramp(0.999)))
    self.assertIn('leave num_updates out', found.text)

  def test_num_updates_that_counts_from_another_step(self):
    tf2 = averaged('tf2', lambda number: ramp(0.999)(number - 1))
    found = cause(averaged('tf1', ramp(0.999)), tf2)
    self.assertIn('num_updates that is greater by 1 in TF1', found.text)

  def test_decay(self):
    found = cause(averaged('tf1', lambda _: 0.99), averaged('tf2', lambda _: 0.9))
    self.assertIn('pass a decay of 0.99', found.text)

  def test_start(self):
    tf2 = averaged('tf2', lambda _: 0.9, starts_after=True)
    self.assertIn('start at the values after', cause(averaged('tf1', lambda _: 0.9), tf2).text)

  def test_start_that_is_known(self):
    tf2 = averaged('tf2', lambda _: 0.9, starts_after=True)
    tf2 = dataclasses.replace(tf2, slots_before=tf2.steps[0].slots)
    self.assertIn('start at the values after', cause(averaged('tf1', lambda _: 0.9), tf2).text)
    tf2 = dataclasses.replace(averaged('tf2', lambda _: 0.9), slots_before=tf2.slots_before)
    self.assertNotIn('start at', str(cause(averaged('tf1', lambda _: 0.9), tf2)))

  def test_before_the_update(self):
    found = cause(averaged('tf1', lambda _: 0.9), averaged('tf2', _late_start))
    self.assertIn('apply them after apply_gradients', found.text)

  def test_before_the_first_update_of_all(self):
    """As gradients are gathered in the first step."""
    rates = [0.0, 0.1, 0.1]
    found = cause(
      averaged('tf1', lambda _: 0.9, rates=rates),
      averaged('tf2', lambda number: 1.0 if number < 3 else 0.9, rates=rates),
      number=2,
    )
    self.assertIn('after the first update the moving averages of the port are still', found.text)
    self.assertIn('apply them after apply_gradients', found.text)

  def test_in_no_step(self):
    found = cause(averaged('tf1', lambda _: 0.9), averaged('tf2', lambda _: 1.0))
    self.assertIn('no step of the port updates the moving averages of', found.text)

  def test_in_every_other_step(self):
    """As an average that is updated only where accumulated gradients are applied."""

    def rests_later(number):
      return 1.0 if number == 2 else 0.9

    found = cause(averaged('tf1', lambda _: 0.9), averaged('tf2', rests_later), number=2)
    self.assertIn('the port leaves its moving averages (EMA) as they are at step 2', found.text)
    self.assertIn('update them in every step', found.text)
    self.assertNotIn('no variable', found.text)  # which all move there
    found = cause(averaged('tf1', rests_later), averaged('tf2', lambda _: 0.9), number=2)
    self.assertIn('TF1 leaves its moving averages (EMA) as they are at step 2', found.text)

  def test_before_the_update_of_a_variable_that_hardly_moves(self):
    """What storing its average leaves is more than a thousandth of its movement."""

    def nearly_at_rest(run, decay, units):
      (name, *_), start = simulated.NAMES, run.values_before[0].value
      self.assertEqual(run.values_before[0].name, name)
      end = (start * np.float32(1.0 + 2e-6)).astype(np.float32)
      shadow = (decay * start + (1 - decay) * end + units * np.spacing(start)).astype(np.float32)
      step = run.steps[0]
      records = tuple(
        dataclasses.replace(r, value=end) if r.name == name else r for r in step.variables
      )
      others = (s.value + units * np.spacing(s.value) for s in step.slots)
      slots = tuple(
        dataclasses.replace(s, value=shadow if s.variable == name else other)
        for s, other in zip(step.slots, others, strict=True)
      )
      step = dataclasses.replace(step, variables=records, slots=slots)
      return dataclasses.replace(run, steps=(step, *run.steps[1:]))

    tf1 = nearly_at_rest(averaged('tf1', lambda _: 0.9), 0.9, 0)
    tf2 = nearly_at_rest(averaged('tf2', lambda _: 1.0), 1.0, 1)
    self.assertIn('apply them after apply_gradients', cause(tf1, tf2).text)

  def test_before_the_update_in_tf1(self):
    found = cause(late('tf1', lambda _: 0.9, simulated.NAMES), averaged('tf2', lambda _: 0.9))
    self.assertIn('TF1 applies them before the update', found.text)

  def test_one_step_behind_for_a_variable(self):
    found = cause(late('tf1', ramp(0.9), ['kernel']), averaged('tf2', ramp(0.9)))
    self.assertIn('TF1 averages the values of kernel from before each step', found.text)
    self.assertEqual(found.variables, ('kernel',))

  def test_one_step_behind_and_another_decay(self):
    found = cause(late('tf1', lambda _: 0.9, ['kernel']), averaged('tf2', lambda _: 0.99))
    self.assertIn('pass a decay of 0.9 to', found.text)

  def test_one_step_behind_and_before_the_update(self):
    found = cause(late('tf1', lambda _: 0.9, ['kernel']), averaged('tf2', _late_start))
    self.assertIn('apply them after apply_gradients', found.text)

  def test_one_step_behind_on_both_sides_is_no_cause(self):
    runs = (late(side, ramp(0.9), ['kernel']) for side in ('tf1', 'tf2'))
    self.assertIsNone(cause(*runs))

  def test_missing(self):
    found = cause(averaged('tf1', lambda _: 0.9), simulated.run('tf2', _FORM))
    self.assertIn('keeps moving averages of bias, kernel, the port keeps none', found.text)

  def test_not_copied(self):
    port = simulated.run('tf2', _FORM)
    for word, called in (('ema', ' (ema)'), ('', '')):
      port = dataclasses.replace(port, not_copied=((word, 'kernel'), (word, 'bias')))
      found = cause(averaged('tf1', lambda _: 0.9), port)
      self.assertIn(f'in their place{called} are the variables themselves', found.text)
      self.assertNotIn('the port keeps none', found.text)

  def test_the_same_is_no_cause(self):
    self.assertIsNone(cause(averaged('tf1', ramp(0.9)), averaged('tf2', ramp(0.9))))

  def test_none_is_no_cause(self):
    self.assertIsNone(cause(simulated.run('tf1', _FORM), simulated.run('tf2', _FORM)))


def _moved(factor, update, elements=6):
  start = np.linspace(0.5, 1.5, elements).astype(np.float32)
  ends = (start + np.float32(update), start + np.float32(update * factor))
  return StepPair('bn/moving_mean', *(VariableStep(start, end, None, {}) for end in ends))


def _trained(noise):
  start = np.linspace(-1.0, 1.0, 40).astype(np.float32)
  end = start - np.float32(0.01)
  other = end.copy()
  other[3] += np.float32(noise)
  return StepPair(
    'kernel', VariableStep(start, end, None, {}), VariableStep(start, other, None, {})
  )


class CalledAgainTest(absltest.TestCase):
  def cause(self, *states, noise=0.0, number=1):
    tf1, tf2 = (simulated.run(side, _FORM) for side in ('tf1', 'tf2'))
    evidence = training_evidence(tf1, tf2, simulated.PAIRS, number)
    return called_again(dataclasses.replace(evidence, states=states, moves=(_trained(noise),)))

  def test_second_call(self):
    found = self.cause(_moved(1.95, 0.1), _moved(1.93, -0.05))
    self.assertIn('1.94 times as much', found.text)
    self.assertIn('call it once in a step', found.text)

  def test_beside_rounding_of_a_trained_variable(self):
    self.assertIsNotNone(self.cause(_moved(1.95, 0.1), noise=2e-6))
    self.assertIsNone(self.cause(_moved(1.95, 0.1), noise=1e-3), 'another update is another cause')

  def test_silent(self):
    self.assertIsNone(self.cause(_moved(1.1, 0.1)))
    self.assertIsNone(self.cause(_moved(2.5, 0.1)))
    self.assertIsNone(self.cause(_moved(1.4, 0.1), _moved(1.9, 0.1)), 'no one factor')
    self.assertIsNone(self.cause(_moved(1.95, 0.1), number=2))
    self.assertIsNone(self.cause())


class PacedOtherwiseTest(absltest.TestCase):
  def cause(self, *states, number=2):
    tf1, tf2 = (simulated.run(side, _FORM) for side in ('tf1', 'tf2'))
    evidence = training_evidence(tf1, tf2, simulated.PAIRS, number)
    return paced_otherwise(dataclasses.replace(evidence, states=states))

  def test_one_factor(self):
    found = self.cause(_moved(3.0, 0.1), _moved(3.0, -0.05))
    self.assertIn('from step 2 on: 1 - decay is 3 times that of TF1', found.text)
    self.assertIn('if the decay of TF1 is 0.75', found.text)

  def test_silent(self):
    self.assertIsNone(self.cause(_moved(3.0, 0.1), _moved(2.0, 0.1)), 'no one factor')
    self.assertIsNone(self.cause(_moved(3.0, 0.1), number=1), 'another momentum is seen before')
    self.assertIsNone(self.cause(_moved(1.0, 0.1)))
    self.assertIsNone(self.cause(_moved(0.0, 0.1)), 'it stops moving')
    self.assertIsNone(self.cause())


if __name__ == '__main__':
  absltest.main()
