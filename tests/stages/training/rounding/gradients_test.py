"""Gradients that are zero but for rounding, scaled up by an optimizer."""

import contextlib
import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

import tf2verify
from tests.sides import recorded_cases
from tests.stages.training import rounding_models as models
from tf2verify.numerics.noise import RUNS
from tf2verify.records.observation import TensorRecord
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.training import OptimizerRecord, TrainingRun, TrainingStep
from tf2verify.stages.training.rounding.gradients import RoundingElements, RoundingWatch
from tf2verify.stages.training.steps.quantities import SLOT, UPDATE, QuantityPair

v1 = tf.compat.v1


def verified(case):
  return tf2verify.verify(case, stages=['training_steps']).stages[-1]


class TrainingStepsTest(parameterized.TestCase):
  @parameterized.parameters(*range(3))
  def test_the_key_third_of_a_fused_bias(self, seed):
    class Case(models.FusedBias):
      def make_inputs(self):
        return tf2verify.normal_inputs((2, 6, 8), seed=seed)

    verdict = verified(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn('8 of 24 elements of a/bias were left out', ' '.join(verdict.notes))

  def test_a_bias_in_front_of_a_batch_norm(self):
    class Case(models.NormalizedBias):
      pass

    verdict = verified(Case)
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())
    self.assertIn('4 of 4 elements of c/bias were left out', ' '.join(verdict.notes))

  def test_recorded(self):
    class Case(models.NormalizedBias):
      pass

    folder = os.path.join(self.enter_context(tempfile.TemporaryDirectory()), 'recording')
    verdict = verified(recorded_cases.record(Case, folder))
    self.assertIs(verdict.status, tf2verify.Status.PASSED, verdict.to_text())

  def test_a_fault_in_the_live_elements_of_the_same_tensor(self):
    class Case(models.FusedBias):
      def make_tf2_optimizer(self):
        return models.with_added([0.0] * 5 + [1e-5] + [0.0] * 18)

    verdict = verified(Case)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    (found,) = [d for d in verdict.differences if d.run == 'step 1']
    self.assertEqual((found.subject, found.array.index), ('a/bias', (5,)))
    self.assertEqual(found.array.mismatched, 1)

  def test_the_cause_beside_elements_that_are_rounding(self):
    class Case(models.FusedBias):
      def make_tf2_optimizer(self):
        return v1.train.AdamOptimizer(1e-3, beta2=0.98)

    verdict = verified(Case)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())
    hints = {difference.hint for difference in verdict.differences}
    self.assertIn('0.98', ' '.join(hints), verdict.to_text())

  def test_more_than_rounding_makes_of_a_gradient_that_is_rounding(self):
    class Case(models.FusedBias):
      def make_tf2_optimizer(self):
        return models.with_added([0.0] * 8 + [0.01] * 8 + [0.0] * 8)

    verdict = verified(Case)
    self.assertIs(verdict.status, tf2verify.Status.FAILED, verdict.to_text())

  def test_a_gradient_that_the_port_has_cut(self):
    class Case(models.FusedBias):
      def make_tf2_layer(self):
        return models.Shim(lambda x: models.attention(x, tf.nn.softmax, models.first_cut))

    verdict = verified(Case)
    self.assertIs(verdict.status, tf2verify.Status.BLOCKED, verdict.to_text())


class _Steps:
  """One step of one variable by the sign of its gradient, as Adam's first step is."""

  def __init__(self, side, gradient):
    self._side, self._gradient = side, np.asarray(gradient, np.float32)

  def run(self):
    before = (TensorRecord('w', np.zeros(2, np.float32)),)
    return TrainingRun(self._side, '', (OptimizerRecord('Adam', (), 'adam'),), before, (), ())

  def take(self):
    gradients = (TensorRecord('w', self._gradient),)
    variables = (TensorRecord('w', -np.float32(1e-3) * np.sign(self._gradient)),)
    return TrainingStep(1, np.float32(0), 1e-3, 1, gradients, gradients, variables, ())


class PortMovedTest(parameterized.TestCase):
  """The port's steps run eagerly, and take longest: they are moved only where that decides."""

  def _watched(self, port, port_noise, other=1.0, sees=False):
    self.began = began = []

    def begin(side, gradient, noise):
      @contextlib.contextmanager
      def begun(perturber):
        began.append((side, perturber is None))
        shift = 0.0 if perturber is None else noise
        yield _Steps(side, [gradient + shift, other])

      return begun

    watch = RoundingWatch(begin('tf1', 1e-9, 2e-9), begin('tf2', port, port_noise), {'w': 'w'}, 1)
    if sees:
      watch.see(_Steps('tf2', [port, other]).take())
    updates = -1e-3 * np.ones(2), 1e-3 * np.array([1, -1])
    pairs = [QuantityPair(UPDATE, 'w', 'w', *updates)]
    is_excused = watch.look(pairs, 1, pairs)
    return watch, (is_excused, began.count(('tf2', False)))

  def test_within_the_noise_of_the_reference(self):
    _, found = self._watched(-1e-9, 2e-9)
    self.assertEqual(found, (True, 0))

  def test_beyond_it_but_within_its_own(self):
    _, found = self._watched(-2e-8, 4e-8)
    self.assertEqual(found, (True, RUNS))

  def test_beyond_both(self):
    _, found = self._watched(-2e-8, 1e-9)
    self.assertEqual(found, (False, RUNS))

  @parameterized.parameters((-1e-9, 2e-9), (-2e-8, 4e-8), (-2e-8, 1e-9))
  def test_steps_under_way_are_not_taken_again(self, port, noise):
    seen, found = self._watched(port, noise, sees=True)
    self.assertEqual(self.began.count(('tf2', True)), 0)
    elements = seen.elements(1)
    seen.holds()  # from here on the port's steps are not its own
    again = seen.elements(1)
    self.assertEqual(self.began.count(('tf2', True)), 1)
    self.assertEqual(elements.keys(), again.keys())
    _, without = self._watched(port, noise)
    self.assertEqual(self.began.count(('tf2', True)), 1)
    self.assertEqual(found, without)

  def test_zero_on_both_sides_is_not_left_out(self):
    updates = np.zeros(2), np.array([0, 1e-3])  # a step of momentum in a row that is not looked up
    watch, _ = self._watched(0.0, 0.0, other=0.0)
    pair = QuantityPair(UPDATE, 'w', 'w', *updates)
    watch.look([pair], 1, [pair])
    np.testing.assert_array_equal(watch.left(pair).tf2, updates[1])

  def test_a_gradient_that_is_exactly_zero_is_none_of_rounding(self):
    watch, _ = self._watched(-1e-9, 2e-9, other=0.0)
    np.testing.assert_array_equal(watch.elements(1)['w'], [True, False])


class RoundingElementsTest(absltest.TestCase):
  def _elements(self, tf1=1e-9, tf2=4e-9):
    where = np.array([True, True, False])
    return RoundingElements(
      where, tf1, tf2, {TensorKey(*k): 1e-3 for k in ((UPDATE, 'w'), (SLOT, 'm of w'))}
    )

  def _pair(self, *port, quantity=UPDATE, subject='w'):
    tf1 = np.array([1e-4, 0.0, 2e-3])
    return QuantityPair(quantity, subject, 'w', tf1, np.array(port))

  def test_no_more_than_rounding_makes(self):
    found = self._elements().excused(self._pair(-3e-3, 9e-3, 1.0), {})
    np.testing.assert_array_equal(found, [True, False, False])

  def test_a_slot_may_hold_a_square(self):
    pair = self._pair(0.03, 0.0, 1.0, quantity=SLOT, subject='m of w')
    self.assertIsNone(RoundingElements(np.zeros(3, bool), 1e-9, 4e-9, {}).excused(pair, {}))
    whole = RoundingElements(np.ones(3, bool), 1e-9, 4e-9, {TensorKey(SLOT, 'm of w'): 1e-3})
    np.testing.assert_array_equal(whole.excused(pair, {}), [True, True, False])

  def test_a_gradient_that_is_exactly_zero_moves_no_further_than_others(self):
    elements, pair = self._elements(tf1=0.0), self._pair(1e-3, 3e-3, 1.0)
    np.testing.assert_array_equal(
      elements.excused(pair, {(UPDATE, ''): 2e-3}), [True, False, False]
    )
    self.assertIsNone(elements.excused(pair, {}))


if __name__ == '__main__':
  absltest.main()
