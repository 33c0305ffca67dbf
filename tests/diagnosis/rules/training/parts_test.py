import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules.training import simulated
from tf2verify.diagnosis.evidence.training import training_evidence
from tf2verify.diagnosis.formulas.update_rules import Form
from tf2verify.diagnosis.rules.training.parts import (
  averages_at_rest,
  lazy_rows,
  pruned,
  step_without_effect,
)

_SGD = Form('sgd', (('learning_rate', 0.1),))
_RMSPROP = Form(
  'rmsprop',
  (('learning_rate', 0.1), ('rho', 0.9), ('momentum', 0.0), ('centered', 0.0), ('epsilon', 1e-7)),
)
_MOMENTUM = Form('momentum', (('learning_rate', 0.1), ('momentum', 0.9)))


def frozen(name):
  return lambda gradients: {n: g * (n != name) for n, g in gradients.items()}


def without(training_run, name):
  """Returns a run whose updates are given no gradient for a variable."""
  given = [
    tuple(record for record in step.applied_gradients if record.name != name)
    for step in training_run.steps
  ]
  return simulated.with_steps(training_run, applied_gradients=given)


def first_rows(count_of_call):
  """Returns a clip that leaves the second row without gradient from the second step on."""
  calls = []

  def clip(gradients):
    calls.append(None)
    masked = dict(gradients)
    if len(calls) > count_of_call:
      masked['kernel'] = gradients['kernel'] * np.array([[1], [0], [1]])
    return masked

  return clip


def evidence(tf1, tf2, number=1):
  return training_evidence(tf1, tf2, simulated.PAIRS, number)


class PrunedTest(absltest.TestCase):
  def test_variable_that_only_the_port_moves(self):
    tf1 = without(simulated.run('tf1', _SGD, clip=frozen('kernel')), 'kernel')
    found = pruned(evidence(tf1, simulated.run('tf2', _SGD)))
    self.assertIn('does not update kernel, that of the port does', found.text)
    self.assertEqual(found.variables, ('kernel',))

  def test_variable_that_only_tf1_moves(self):
    tf2 = without(simulated.run('tf2', _SGD, clip=frozen('bias')), 'bias')
    found = pruned(evidence(simulated.run('tf1', _SGD), tf2))
    self.assertIn('the step of TF1 updates bias, that of the port does not', found.text)

  def test_a_gradient_of_rounding_is_something_else(self):
    # The port starts from TF1's value after the step, say, where that is left out.
    for size, is_found in ((1e-7, False), (0.01, True)):

      def small(gradients, size=size):
        return {**gradients, 'bias': gradients['bias'] * np.float32(size)}

      tf1 = simulated.run('tf1', _SGD, clip=small)
      tf2 = without(simulated.run('tf2', _SGD, clip=frozen('bias')), 'bias')
      self.assertEqual(pruned(evidence(tf1, tf2)) is not None, is_found, size)

  def test_gradient_of_zero_is_something_else(self):
    # The other side moves it by a weight decay, say.
    for side in ('kernel', 'bias'):
      rests = simulated.run('tf1', _SGD, clip=frozen(side))
      self.assertIsNone(pruned(evidence(rests, simulated.run('tf2', _SGD))))
      self.assertIsNone(pruned(evidence(simulated.run('tf1', _SGD), rests)))

  def test_all_of_them_is_something_else(self):
    tf2 = simulated.run('tf2', _SGD, rates=[0.0] * 3)
    self.assertIsNone(pruned(evidence(simulated.run('tf1', _SGD), tf2)))

  def test_updates_that_cancel_are_something_else(self):
    # As of two Adams that step the same variable, one up and one down.
    tf2 = simulated.run('tf2', _SGD)
    start = next(record for record in tf2.values_before if record.name == 'bias')
    variables = [
      tuple(start if record.name == 'bias' else record for record in step.variables)
      for step in tf2.steps
    ]
    tf2 = simulated.with_steps(tf2, variables=variables)
    self.assertIsNone(pruned(evidence(simulated.run('tf1', _SGD), tf2)))

  def test_the_same_is_no_cause(self):
    runs = (simulated.run(side, _SGD, clip=frozen('bias')) for side in ('tf1', 'tf2'))
    self.assertIsNone(pruned(evidence(*runs)))


class StepAtRestTest(absltest.TestCase):
  def test_port_that_changes_nothing(self):
    def none(gradients):
      return {name: 0 * gradient for name, gradient in gradients.items()}

    tf2 = simulated.run('tf2', _SGD, clip=none)
    found = step_without_effect(evidence(simulated.run('tf1', _SGD), tf2))
    self.assertIn('the step of the port changes no variable', found.text)

  def test_a_learning_rate_of_zero_is_something_else(self):
    tf2 = simulated.run('tf2', _SGD, rates=[0.0, 0.05, 0.1])
    self.assertIsNone(step_without_effect(evidence(simulated.run('tf1', _SGD), tf2)))

  def test_others(self):
    one, rests = simulated.run('tf1', _SGD), simulated.run('tf1', _SGD, rates=[0.0] * 3)
    partly = simulated.run('tf2', _SGD, clip=frozen('kernel'))
    for tf1, tf2 in ((one, one), (rests, rests), (rests, one), (one, partly)):
      self.assertIsNone(step_without_effect(evidence(tf1, tf2)))


class AveragesAtRestTest(absltest.TestCase):
  def run_with_state(self, side, moves, loss=1.0):
    run = simulated.run(side, _SGD)
    gradients = [step.gradients[:1] for step in run.steps]  # the kernel is a state
    variables = [
      step.variables if moves else (step.variables[0], run.values_before[1]) for step in run.steps
    ]
    return simulated.with_steps(
      run,
      gradients=gradients,
      applied_gradients=gradients,
      variables=variables,
      loss=[np.float32(loss)] * 3,
    )

  def test_inference_mode(self):
    tf1, tf2 = self.run_with_state('tf1', True), self.run_with_state('tf2', False, loss=2.0)
    found = averages_at_rest(evidence(tf1, tf2))
    self.assertIn('updates kernel, that of the port leaves them', found.text)
    self.assertEqual(found.variables, ())

  def test_where_the_losses_agree_only_the_averages_are_explained(self):
    tf1, tf2 = self.run_with_state('tf1', True), self.run_with_state('tf2', False)
    self.assertEqual(averages_at_rest(evidence(tf1, tf2)).variables, ('kernel',))

  def test_others(self):
    for one, other in ((True, True), (False, False), (False, True)):
      tf1, tf2 = self.run_with_state('tf1', one), self.run_with_state('tf2', other)
      self.assertIsNone(averages_at_rest(evidence(tf1, tf2)))


class LazyRowsTest(absltest.TestCase):
  def lazy(self, side):
    """A run whose second row rests when it has no gradient."""
    run = simulated.run(side, _MOMENTUM, clip=first_rows(1))
    rows, before = [], None
    for step in run.steps:
      kernel = next(r.value for r in step.variables if r.name == 'kernel').copy()
      if step.number > 1:
        kernel[1] = before[1]
      before = kernel
      rows.append(simulated.tensors({'bias': _of(step, 'bias'), 'kernel': kernel}))
    return simulated.with_steps(run, variables=rows)

  def test_the_port_moves_them(self):
    tf2 = simulated.run('tf2', _MOMENTUM, clip=first_rows(1))
    found = lazy_rows(evidence(self.lazy('tf1'), tf2, number=2))
    self.assertIn(
      'the rows whose gradient is zero at step 2 (1 of 3) still change in the port', found.text
    )

  def test_tf1_moves_them(self):
    tf1 = simulated.run('tf1', _MOMENTUM, clip=first_rows(1))
    found = lazy_rows(evidence(tf1, self.lazy('tf2'), number=2))
    self.assertIn('still change in TF1', found.text)

  def test_optimizers_are_named(self):
    tf1 = self.lazy('tf1')
    names = 'tf.compat.v1.train.MomentumOptimizer', 'tf.keras.optimizers.SGD'
    optimizers = [simulated.record(_MOMENTUM, name) for name in names]
    tf1 = dataclasses.replace(tf1, optimizers=(optimizers[0],))
    tf2 = simulated.run('tf2', _MOMENTUM, clip=first_rows(1), optimizer=optimizers[1])
    found = lazy_rows(evidence(tf1, tf2, number=2))
    self.assertIn(f'{names[0]} updates only the rows that were looked up, {names[1]}', found.text)

  def test_slot_whose_rows_decay_in_the_port_alone(self):
    """A mean of squares: of rows that no batch looks up it shows before the variable does."""
    tf1, tf2 = (
      simulated.run(side, _RMSPROP, slots={'squared gradient': 1.0}, clip=first_rows(0))
      for side in ('tf1', 'tf2')
    )
    slots = []
    for step in tf1.steps:
      known = {slot.variable: slot.value.copy() for slot in step.slots}
      known['kernel'][1] = 1.0
      slots.append(
        simulated.slot_records({n: {'squared gradient': one} for n, one in known.items()})
      )
    lazy = simulated.with_steps(tf1, slots=slots)
    found = lazy_rows(evidence(lazy, tf2))
    self.assertIn(
      'of the squared gradient of kernel, the rows whose gradient is zero at step 1 (1 of 3) still '
      'change in the port and stay unchanged in TF1',
      found.text,
    )
    self.assertEqual(found.variables, ('kernel',))
    self.assertIsNone(lazy_rows(evidence(tf1, tf2)))

  def test_where_other_rows_differ_nothing_is_said(self):
    tf2 = simulated.run('tf2', _MOMENTUM, rates=[0.1, 0.2, 0.1], clip=first_rows(1))
    self.assertIsNone(lazy_rows(evidence(self.lazy('tf1'), tf2, number=2)))

  def test_the_same_is_no_cause(self):
    self.assertIsNone(lazy_rows(evidence(self.lazy('tf1'), self.lazy('tf2'), number=2)))


def _of(step, name):
  return next(record.value for record in step.variables if record.name == name)


if __name__ == '__main__':
  absltest.main()
